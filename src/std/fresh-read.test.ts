import { expect, it } from 'vitest'
import { FreshRead } from './fresh-read.ts'

const settled = () => new Promise(resolve => setImmediate(resolve))

it('begins a read after each call, one at a time, and shares it', async () => {
  const ends: (() => void)[] = []
  const fresh = new FreshRead(() => new Promise<number>(resolve => ends.push(() => resolve(ends.length))))
  const first = fresh.run()
  const [second, third] = [fresh.run(), fresh.run()]
  await settled()
  expect(ends).toHaveLength(1)
  ends[0]?.()
  await settled()
  expect(ends).toHaveLength(2)
  const fourth = fresh.run() // the second read has begun
  ends[1]?.()
  expect(await Promise.all([first, second, third])).toEqual([1, 2, 2])
  await settled()
  ends[2]?.()
  expect(await fourth).toBe(3)
})

it('reads on after a read that failed', async () => {
  let reads = 0
  const fresh = new FreshRead(async () => {
    if (++reads === 1) throw new Error('away')
    return reads
  })
  const [first, second] = [fresh.run(), fresh.run()]
  await expect(first).rejects.toThrow('away')
  expect(await second).toBe(2)
})

it('ends for each caller while others go on calling', async () => {
  const fresh = new FreshRead(settled)
  let calls = 0
  const callAgain = (): void => {
    if (++calls < 1000) void fresh.run().then(callAgain)
  }
  for (let at = 0; at < 10; at++) callAgain()
  await fresh.run()
  expect(calls).toBeLessThan(100)
})
