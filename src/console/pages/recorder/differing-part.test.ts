import { expect, test } from 'vitest'
import { differingPart } from './differing-part.ts'

test.each([
  ['"a": 1,', '"a": 2,', ['"a": ', '1', ',']],
  ['"a": 1,', '"a": 2', ['"a": ', '1', ',']],
  ['"a": 2', '"a": 1,', ['"a": ', '2', '']],
  ['"a": "x"', '"a": "xy",', ['"a": "x', '', '"']],
  ['"a": "xy",', '"a": "x"', ['"a": "x', 'y', '",']],
  ['accept: a,', 'accept: a, b', ['accept: a', '', ',']],
  ['same', 'same', ['same', '', '']],
  ['', 'x', ['', '', '']],
])('%s beside %s', (text, other, expected) => {
  expect(differingPart(text, other)).toEqual(expected)
  expect(differingPart(text, other).join('')).toBe(text)
})
