import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ChunkBuffer } from './chunk-buffer.ts'

describe('ChunkBuffer', () => {
  it('gives back everything in order, time and again', () => {
    const size = fc.oneof(fc.nat({ max: 20 }), fc.nat({ max: 5000 }), fc.constantFrom(1023, 1024, 3999, 4000, 4001))
    fc.assert(
      fc.property(fc.array(fc.array(size, { maxLength: 12 }), { maxLength: 3 }), rounds => {
        const gather = new ChunkBuffer()
        let next = 0
        for (const sizes of rounds) {
          const chunks = sizes.map(length => Buffer.alloc(length, next++ % 256))
          for (const chunk of chunks) gather.push(chunk)
          const wanted = Buffer.concat(chunks)
          expect(gather.length).toBe(wanted.length)
          expect(gather.take().equals(wanted)).toBe(true)
          expect(gather.length).toBe(0)
        }
      }),
    )
  })

  it('fills its blocks to the last byte', () => {
    for (const last of [999, 1000, 1001])
      for (const next of [1, 2, 3]) {
        const gather = new ChunkBuffer()
        const chunks = [1, 1000, 1000, 1000, last, next, 5].map((length, i) => Buffer.alloc(length, i + 1))
        for (const chunk of chunks) gather.push(chunk)
        expect(gather.take().equals(Buffer.concat(chunks))).toBe(true)
      }
  })

  it('does not copy a single chunk', () => {
    const gather = new ChunkBuffer()
    const chunk = Buffer.from('a')
    gather.push(chunk)
    gather.push(Buffer.alloc(0))
    expect(gather.take()).toBe(chunk)
  })

  it('forgets when cleared', () => {
    const gather = new ChunkBuffer()
    gather.push(Buffer.from('abc'))
    gather.push(Buffer.from('def'))
    gather.clear()
    gather.push(Buffer.from('x'))
    gather.push(Buffer.from('y'))
    expect(gather.take().toString()).toBe('xy')
  })

  it('needs little more memory than the bytes that came one by one', () => {
    const gather = new ChunkBuffer()
    const before = process.memoryUsage()
    const chunk = Buffer.from('a')
    for (let i = 0; i < 2_000_000; i++) gather.push(chunk)
    const after = process.memoryUsage()
    expect(after.heapUsed + after.arrayBuffers - before.heapUsed - before.arrayBuffers).toBeLessThan(100_000_000)
    expect(gather.take().length).toBe(2_000_000)
  })
})
