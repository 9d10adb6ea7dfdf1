import { describe, expect, it } from 'vitest'
import { BlockIndex, GONE } from './block-index.ts'

const filled = (count: number): BlockIndex => {
  const index = new BlockIndex()
  for (let order = 1; order <= count; order++) {
    index.begin(order)
    index.set(order, order * 10)
  }
  return index
}

describe('the index of recordings', () => {
  it('finds every block while it grows', () => {
    const index = filled(5000)
    expect(index.written).toBe(5000)
    for (let order = 1; order <= 5000; order++) expect(index.get(order)).toBe(order * 10)
    expect(index.get(5001)).toBe(GONE)
  })

  it('stays as large as it is while as many blocks go as come', () => {
    const index = filled(1000)
    const { bytes } = index
    for (let order = 1001; order <= 50_000; order++) {
      index.begin(order)
      index.set(order, order * 10)
      index.remove(order - 1000, (order - 1000) * 10)
    }
    expect(index.bytes).toBe(bytes)
    expect([...index.ordersBefore(Number.MAX_SAFE_INTEGER)]).toHaveLength(1000)
    expect([index.get(49_000), index.get(49_001), index.get(50_000)]).toEqual([GONE, 490_010, 500_000])
  })

  it('keeps the later block of an exchange whose earlier one is gone', () => {
    const index = filled(2)
    index.set(1, 70)
    expect(index.remove(1, 10)).toBe(false)
    expect(index.get(1)).toBe(70)
    expect(index.written).toBe(2)
  })

  it('finds an exchange that got its first block after all later ones were gone', () => {
    const index = new BlockIndex()
    index.begin(1)
    index.begin(2)
    index.set(2, 20)
    expect(index.remove(2, 20)).toBe(true)
    index.set(1, 30)
    expect(index.get(1)).toBe(30)
    expect([...index.ordersBefore(3)]).toEqual([1])
    expect(index.remove(1, 30)).toBe(true)
    expect([index.get(1), index.written]).toEqual([GONE, 0])
  })

  it('forgets everything at once', () => {
    const index = filled(3000)
    index.clear(3000)
    expect([index.bytes, index.written, index.get(3000)]).toEqual([0, 0, GONE])
    index.begin(3001)
    index.set(3001, 5)
    expect([...index.ordersBefore(Number.MAX_SAFE_INTEGER)]).toEqual([3001])
  })
})
