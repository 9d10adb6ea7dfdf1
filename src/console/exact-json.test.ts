import { describe, expect, test } from 'vitest'
import { ExactNumber, isSameJson, JsonTextError, parseExact, readNumber, stringifyExact } from './exact-json.ts'

describe('numbers keep their digits', () => {
  test.each([
    '9007199254740993',
    '-123456789012345678901234567890',
    '0.1234567890123456789',
    '1e400',
    '{"a":[1,{"id":9223372036854775807}],"b":"9223372036854775807"}',
    '[1e2,1.0e-3]',
  ])('%s', text => {
    expect(stringifyExact(parseExact(text))).toBe(text)
  })

  test('ordinary numbers are JavaScript numbers', () => {
    expect(parseExact('[1,-2.5,0]')).toEqual([1, -2.5, 0])
    expect(readNumber('12')).toBe(12)
    expect(readNumber('1.0')).toEqual(new ExactNumber('1.0'))
  })

  test.each(['', '1.', '.5', '01', '+1', '0x10', 'NaN', '1e', ' 1'])('%j is no number', text => {
    expect(readNumber(text)).toBeUndefined()
  })
})

describe('parsing', () => {
  test('reads what JSON.parse reads', () => {
    const text = '{ "a" : [ 1, true, null, "x\\u00e9\\n\\"" , {} , [] ], "__proto__" : {"x": 12345678901234567890} }'
    expect(JSON.parse(stringifyExact(parseExact(text)))).toEqual(JSON.parse(text))
    expect(Object.keys(parseExact(text) as object)).toEqual(['a', '__proto__'])
  })

  test.each([
    ['', 1, 1, 'expected a value, found the end'],
    ['{\n  "a": 1,\n}', 3, 1, 'expected a name in double quotes, found "}"'],
    ['{"a" 1}', 1, 6, 'expected ":", found "1"'],
    ['[1 2]', 1, 4, 'expected "," or "]", found "2"'],
    ['[1] x', 1, 5, 'expected the end, found "x"'],
    ['"abc', 1, 1, 'this text has no end, or an invalid character or escape'],
    ["{'a':1}", 1, 2, 'expected a name in double quotes, found "\'"'],
  ])('%j fails at %i:%i', (text, line, column, problem) => {
    let caught: unknown
    try {
      parseExact(text)
    } catch (error) {
      caught = error
    }
    expect(caught).toBeInstanceOf(JsonTextError)
    expect(caught).toMatchObject({ line, column, message: `Line ${line}, column ${column}: ${problem}` })
  })

  test('a text that is nested too deep is an error, not a crash', () => {
    expect(() => parseExact(`${'['.repeat(100_000)}1234567890123456789`)).toThrow(/more than 600 levels/)
    expect(() => parseExact('['.repeat(9000) + ']'.repeat(9000))).toThrow(/more than 600 levels/)
    expect(stringifyExact(parseExact('['.repeat(512) + ']'.repeat(512)))).toHaveLength(1024)
  })
})

describe('writing', () => {
  test('indents like JSON.stringify', () => {
    const value = { a: [1, { b: 'x' }], c: {}, d: [], e: undefined }
    expect(stringifyExact(value, '  ')).toBe(JSON.stringify(value, undefined, 2))
    expect(stringifyExact(value)).toBe(JSON.stringify(value))
  })
})

test('values are compared without the order of members', () => {
  expect(isSameJson({ a: 1, b: [1, 2] }, { b: [1, 2], a: 1 })).toBe(true)
  expect(isSameJson([1, 2], [2, 1])).toBe(false)
  expect(isSameJson(new ExactNumber('10000000000000001'), 10000000000000000)).toBe(false)
})
