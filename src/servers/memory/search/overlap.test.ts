import { expect, test } from 'vitest'
import { queryTerms } from '../text/query.ts'
import { overlapWith } from './overlap.ts'

test('a rare word counts more than a common one', () => {
  const overlap = overlapWith(queryTerms('garden tortoise'), ['the garden', 'our garden', 'a tortoise in the garden'])
  expect(overlap('the tortoise')).toBeGreaterThan(overlap('the garden'))
  expect(overlap('tortoises in gardens')).toBeCloseTo(1)
  expect(overlap('nothing')).toBe(0)
})

test('scripts without spaces overlap by their letters', () => {
  const overlap = overlapWith(queryTerms('北京'), ['我住在北京', '上海'])
  expect(overlap('我住在北京')).toBe(1)
  expect(overlap('上海')).toBe(0)
})

test('no terms overlap with nothing', () => {
  expect(overlapWith([], ['a'])('a')).toBe(0)
})
