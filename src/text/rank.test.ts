import { expect, test } from 'vitest'
import { queryTerms } from './query.ts'
import { fuse, interleave, overlapWith } from './rank.ts'

test('a key of several lists comes before a key of one list at the same rank', () => {
  const fused = fuse(
    [
      { keys: ['a', 'b', 'c'], weight: 1 },
      { keys: ['c', 'd'], weight: 1 },
    ],
    10,
  )
  expect([...fused.keys()]).toEqual(['c', 'a', 'b', 'd'])
})

test('a list of twice the weight comes first', () => {
  const lists = [
    { keys: ['weak'], weight: 1 },
    { keys: ['strong'], weight: 2 },
  ]
  expect([...fuse(lists, 10).keys()]).toEqual(['strong', 'weak'])
})

test('one list keeps its order', () => {
  const keys = Array.from({ length: 300 }, (_, index) => index)
  expect([...fuse([{ keys, weight: 2 }], 10).keys()]).toEqual(keys)
})

test('items are interleaved by source; items without a source are each a source of their own', () => {
  const items = ['a1', 'a2', 'b1', 'x', 'a3', 'b2', 'x']
  const sourceOf = (item: string) => (item === 'x' ? undefined : item[0])
  expect(interleave(items, sourceOf, 10)).toEqual(['a1', 'b1', 'x', 'x', 'a2', 'b2', 'a3'])
  expect(interleave(items, sourceOf, 3)).toEqual(['a1', 'b1', 'x'])
  expect(interleave([], sourceOf, 3)).toEqual([])
})

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

test('without terms the overlap is 0', () => {
  expect(overlapWith([], ['a'])('a')).toBe(0)
})
