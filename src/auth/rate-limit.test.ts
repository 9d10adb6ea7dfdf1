import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { MemoryCluster } from '../stores/state/memory-state.ts'
import { SILENT } from '../telemetry/log.ts'
import { createRateLimiter } from './rate-limiter.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

/** How many of so many requests at once come through. */
const through = async (
  request: () => undefined | number | Promise<number | undefined>,
  count: number,
): Promise<number> => {
  let taken = 0
  for (let sent = 0; sent < count; sent++) if ((await request()) === undefined) taken++
  return taken
}

describe('the rate limiter', () => {
  it('allows the configured number in each second', async () => {
    const { take: meter } = createRateLimiter({ perPrincipal: { perSecond: 3, burst: 0 } })
    for (let second = 0; second < 3; second++) {
      expect(await through(() => meter('ada', 'default'), 5)).toBe(3)
      vi.advanceTimersByTime(1000)
    }
  })

  it('returns the time to wait, after which a request is allowed', async () => {
    const { take: meter } = createRateLimiter({ perPrincipal: { perSecond: 1, burst: 0 } })
    await meter('ada', 'default')
    vi.advanceTimersByTime(400)
    expect(await meter('ada', 'default')).toBe(600)
    vi.advanceTimersByTime(599)
    expect(await meter('ada', 'default')).toBe(1)
    vi.advanceTimersByTime(1)
    expect(await meter('ada', 'default')).toBeUndefined()
  })

  it('allows a burst, and another one ten seconds later', async () => {
    const { take: meter } = createRateLimiter({ perPrincipal: { perSecond: 2, burst: 5 } })
    const taken: number[] = []
    for (let second = 0; second < 11; second++) {
      taken.push(await through(() => meter('ada', 'default'), 20))
      vi.advanceTimersByTime(1000)
    }
    expect(taken).toEqual([7, 2, 2, 2, 2, 2, 2, 2, 2, 2, 7])
  })

  it('counts each principal and each workspace separately', async () => {
    const { take: meter } = createRateLimiter({
      perPrincipal: { perSecond: 2, burst: 0 },
      perWorkspace: { perSecond: 3, burst: 0 },
    })
    expect(await through(() => meter('ada', 'a'), 9)).toBe(2)
    expect(await through(() => meter('bob', 'a'), 9)).toBe(1) // the workspace is full
    expect(await through(() => meter('cy', 'b'), 9)).toBe(2)
  })

  it('counts for the workspace only what the principal was allowed', async () => {
    const { take: meter } = createRateLimiter({
      perPrincipal: { perSecond: 1, burst: 0 },
      perWorkspace: { perSecond: 2, burst: 0 },
    })
    await through(() => meter('ada', 'a'), 9)
    expect(await through(() => meter('bob', 'a'), 1)).toBe(1)
  })

  it('drops its counters after their window', async () => {
    const limiter = createRateLimiter({ perPrincipal: { perSecond: 1, burst: 1 } })
    for (let caller = 0; caller < 100; caller++) await through(() => limiter.take(`caller ${caller}`, 'a'), 2)
    expect(limiter.size).toBe(100)
    vi.advanceTimersByTime(10_000)
    limiter.take('another', 'a')
    expect(limiter.size).toBe(1)
  })
})

describe('the rate limiters of several replicas', () => {
  type Spent = ReadonlyMap<string, number>
  const clusterOf = (replicas: number, perSecond: number, burst = 0) => {
    const store = new MemoryCluster().join()
    const failing = { is: false }
    const count = vi.fn((window: number, spent: Spent) =>
      failing.is ? Promise.reject(new Error('away')) : store.shared.count(window, spent),
    )
    const sharing = { replicas: () => replicas, count, log: SILENT }
    const limiters = Array.from({ length: replicas }, () =>
      createRateLimiter({ perPrincipal: { perSecond, burst } }, sharing),
    )
    return { limiters, count, failing }
  }
  const all = (limiters: ReturnType<typeof clusterOf>['limiters'], count: number) =>
    Promise.all(limiters.map(({ take }) => through(() => take('ada', 'default'), count))).then(each =>
      each.reduce((sum, taken) => sum + taken, 0),
    )

  it('admit as many together as one of them, within a tenth for each further one', async () => {
    const { limiters } = clusterOf(3, 100)
    for (let second = 0; second < 5; second++) {
      vi.setSystemTime(Math.ceil(Date.now() / 1000) * 1000)
      const taken = await all(limiters, 200)
      expect(taken).toBeGreaterThanOrEqual(100)
      expect(taken).toBeLessThanOrEqual(120)
      await vi.advanceTimersByTimeAsync(1000)
    }
  })

  it('admit steady requests that alternate between them without a wait, and exchange ten times a second', async () => {
    const { limiters, count } = clusterOf(2, 50)
    vi.setSystemTime(Math.ceil(Date.now() / 1000) * 1000)
    const taken: unknown[] = []
    for (let sent = 0; sent < 80; sent++) {
      taken.push(limiters[sent % 2]?.take('ada', 'default'))
      await vi.advanceTimersByTimeAsync(10)
    }
    expect(taken.filter(each => each instanceof Promise)).toEqual([])
    expect(taken.filter(each => each === undefined).length).toBeGreaterThanOrEqual(50)
    expect(taken.filter(each => each === undefined).length).toBeLessThanOrEqual(55)
    expect(count.mock.calls.length).toBeLessThanOrEqual(2 * 9)
  })

  it('divide a burst', async () => {
    const { limiters } = clusterOf(3, 1, 10)
    vi.setSystemTime(Math.ceil(Date.now() / 1000) * 1000)
    const taken = await all(limiters, 20)
    expect(taken).toBeGreaterThanOrEqual(1 + 9)
    expect(taken).toBeLessThanOrEqual(1 + 9 + 2)
  })

  it('apply the limit each for itself while the store is away, and together again afterwards', async () => {
    const { limiters, failing } = clusterOf(2, 20)
    vi.setSystemTime(Math.ceil(Date.now() / 1000) * 1000)
    failing.is = true
    expect(await all(limiters, 50)).toBe(40)
    failing.is = false
    await vi.advanceTimersByTimeAsync(6000)
    expect(await all(limiters, 50)).toBeLessThanOrEqual(22)
  })

  it('do not wait for a store that hangs', async () => {
    const { limiters, count } = clusterOf(2, 10)
    vi.setSystemTime(Math.ceil(Date.now() / 1000) * 1000)
    count.mockReturnValue(new Promise(() => {}))
    const taken = all(limiters, 10)
    await vi.advanceTimersByTimeAsync(600)
    expect(await taken).toBe(20)
  })

  it('need no exchange while there is one replica, nor after it is closed', async () => {
    const { limiters, count } = clusterOf(1, 5)
    expect(await all(limiters, 9)).toBe(5)
    await vi.advanceTimersByTimeAsync(1000)
    expect(count).not.toHaveBeenCalled()
    for (const limiter of limiters) limiter.close()
    expect(vi.getTimerCount()).toBe(0)
  })
})
