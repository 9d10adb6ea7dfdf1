import { expect, test } from 'vitest'
import { BoundedCache } from './bounded-cache.ts'

const FOREVER = Number.POSITIVE_INFINITY

test('the least recently used entry is evicted, and reported', () => {
  const left: number[] = []
  const lru = new BoundedCache<number>(2, FOREVER, { onEvict: value => left.push(value) })
  lru.set('a', 1)
  lru.set('b', 2)
  lru.get('b')
  lru.get('a')
  lru.get('a')
  lru.set('c', 3)
  expect([lru.entries(), left]).toEqual([
    [
      ['a', 1],
      ['c', 3],
    ],
    [2],
  ])
})

test('entries stay in the order of their last use, whichever of them is used or deleted', () => {
  const order = (change: (lru: BoundedCache<number>) => unknown): string => {
    const lru = new BoundedCache<number>(10, FOREVER)
    for (const [at, key] of ['a', 'b', 'c', 'd'].entries()) lru.set(key, at)
    change(lru)
    return lru
      .entries()
      .map(([key]) => key)
      .join('')
  }
  expect(order(lru => lru.get('a'))).toBe('bcda')
  expect(order(lru => lru.get('b'))).toBe('acdb')
  expect(order(lru => lru.get('d'))).toBe('abcd')
  expect(order(lru => lru.delete('a'))).toBe('bcd')
  expect(order(lru => lru.delete('c'))).toBe('abd')
  expect(order(lru => [lru.delete('d'), lru.get('a')])).toBe('bca')
  expect(order(lru => lru.deleteOldest())).toBe('bcd')
  expect(order(lru => [lru.clear(), lru.set('e', 4), lru.set('f', 5), lru.get('e')])).toBe('fe')
})

test('what was deleted and comes back is the latest again', () => {
  const lru = new BoundedCache<number>(2, FOREVER)
  lru.set('a', 1)
  lru.set('b', 2)
  lru.delete('b')
  lru.set('c', 3)
  lru.get('a')
  lru.set('b', 4)
  expect(lru.entries()).toEqual([
    ['a', 1],
    ['b', 4],
  ])
})

test('a group that is full makes room among its own', () => {
  const lru = new BoundedCache<number>(10, FOREVER, { mostPerGroup: 2 })
  lru.set('other', 0, 'b')
  for (const [at, key] of ['a1', 'a2', 'a3', 'a4'].entries()) lru.set(key, at, 'a')
  expect(lru.entries().map(([key]) => key)).toEqual(['other', 'a3', 'a4'])
  lru.delete('a3')
  lru.set('a5', 5, 'a')
  expect(lru.entries().map(([key]) => key)).toEqual(['other', 'a4', 'a5'])
})
