import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { Abort } from '../protocol/cancellation.ts'
import { backoffMs, sleep, within } from './time.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

describe('within', () => {
  test('settles like the work when that is in time, and leaves no timer behind', async () => {
    await expect(within(100, Promise.resolve('done'), () => 'late')).resolves.toBe('done')
    await expect(within(100, Promise.reject(new Error('broken')), () => 'late')).rejects.toThrow('broken')
    expect(vi.getTimerCount()).toBe(0)
  })

  test('settles like `late` when the work takes longer, also where that throws', async () => {
    const never = new Promise<string>(() => {})
    const late = within(100, never, () => 'late')
    const thrown = within(100, never, () => {
      throw new Error('timed out')
    })
    const both = Promise.all([expect(late).resolves.toBe('late'), expect(thrown).rejects.toThrow('timed out')])
    await vi.advanceTimersByTimeAsync(100)
    await both
  })
})

test('sleep resolves after its delay and not before', async () => {
  let isAwake = false
  void sleep(50).then(() => {
    isAwake = true
  })
  await vi.advanceTimersByTimeAsync(49)
  expect(isAwake).toBe(false)
  await vi.advanceTimersByTimeAsync(1)
  expect(isAwake).toBe(true)
})

test('sleep ends with its signal and leaves no timer behind', async () => {
  const abort = new Abort()
  const asleep = sleep(50, abort)
  abort.abort({ kind: 'gone' })
  await asleep
  expect(vi.getTimerCount()).toBe(0)
})

test('a backoff doubles up to its bound and keeps at least half of each delay', () => {
  const bounds = { firstMs: 100, longestMs: 1000 }
  expect([0, 1, 2, 3, 4, 50].map(failures => backoffMs(bounds, failures, 1))).toEqual([100, 200, 400, 800, 1000, 1000])
  expect(backoffMs(bounds, 1, 0)).toBe(100)
})
