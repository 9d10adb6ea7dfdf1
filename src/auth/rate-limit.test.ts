import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createRateLimiter } from './inbound-auth.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

/** How many of so many requests at once come through. */
const through = async (request: () => Promise<number | undefined>, count: number): Promise<number> => {
  let taken = 0
  for (let sent = 0; sent < count; sent++) if ((await request()) === undefined) taken++
  return taken
}

describe('the rate limiter', () => {
  it('allows the configured number in each second', async () => {
    const meter = createRateLimiter({ perPrincipal: { perSecond: 3, burst: 0 } })
    for (let second = 0; second < 3; second++) {
      expect(await through(() => meter('ada', 'default'), 5)).toBe(3)
      vi.advanceTimersByTime(1000)
    }
  })

  it('returns the time to wait, after which a request is allowed', async () => {
    const meter = createRateLimiter({ perPrincipal: { perSecond: 1, burst: 0 } })
    await meter('ada', 'default')
    vi.advanceTimersByTime(400)
    expect(await meter('ada', 'default')).toBe(600)
    vi.advanceTimersByTime(599)
    expect(await meter('ada', 'default')).toBe(1)
    vi.advanceTimersByTime(1)
    expect(await meter('ada', 'default')).toBeUndefined()
  })

  it('allows a burst, and another one ten seconds later', async () => {
    const meter = createRateLimiter({ perPrincipal: { perSecond: 2, burst: 5 } })
    const taken: number[] = []
    for (let second = 0; second < 11; second++) {
      taken.push(await through(() => meter('ada', 'default'), 20))
      vi.advanceTimersByTime(1000)
    }
    expect(taken).toEqual([7, 2, 2, 2, 2, 2, 2, 2, 2, 2, 7])
  })

  it('counts each principal and each workspace separately', async () => {
    const meter = createRateLimiter({
      perPrincipal: { perSecond: 2, burst: 0 },
      perWorkspace: { perSecond: 3, burst: 0 },
    })
    expect(await through(() => meter('ada', 'a'), 9)).toBe(2)
    expect(await through(() => meter('bob', 'a'), 9)).toBe(1) // the workspace is full
    expect(await through(() => meter('cy', 'b'), 9)).toBe(2)
  })

  it('counts for the workspace only what the principal was allowed', async () => {
    const meter = createRateLimiter({
      perPrincipal: { perSecond: 1, burst: 0 },
      perWorkspace: { perSecond: 2, burst: 0 },
    })
    await through(() => meter('ada', 'a'), 9)
    expect(await through(() => meter('bob', 'a'), 1)).toBe(1)
  })

  it('drops its counters after their window', async () => {
    const meter = createRateLimiter({ perPrincipal: { perSecond: 1, burst: 1 } })
    for (let caller = 0; caller < 100; caller++) await through(() => meter(`caller ${caller}`, 'a'), 2)
    expect(vi.getTimerCount()).toBe(200)
    vi.advanceTimersByTime(10_000)
    expect(vi.getTimerCount()).toBe(0)
  })
})
