import { expect, test } from 'vitest'
import { fuse, spread } from './fuse.ts'

test('what several lists hold comes before what one holds at the same place', () => {
  const fused = fuse(
    [
      { keys: ['a', 'b', 'c'], weight: 1 },
      { keys: ['c', 'd'], weight: 1 },
    ],
    10,
  )
  expect([...fused.keys()]).toEqual(['c', 'a', 'b', 'd'])
})

test('a list of twice the weight leads', () => {
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

test('one of each source first, then the rest, and what has no source counts alone', () => {
  const items = ['a1', 'a2', 'b1', 'x', 'a3', 'b2', 'x']
  const sourceOf = (item: string) => (item === 'x' ? undefined : item[0])
  expect(spread(items, sourceOf, 10)).toEqual(['a1', 'b1', 'x', 'x', 'a2', 'b2', 'a3'])
  expect(spread(items, sourceOf, 3)).toEqual(['a1', 'b1', 'x'])
  expect(spread([], sourceOf, 3)).toEqual([])
})
