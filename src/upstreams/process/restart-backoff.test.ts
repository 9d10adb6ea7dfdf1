import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { FailureDetails } from '../failures.ts'
import { RestartBackoff } from './restart-backoff.ts'

const CRASH: FailureDetails = { reason: 'upstream_lost', text: 'exited with code 1; it last wrote: no key' }

beforeEach(() => {
  vi.useFakeTimers()
  vi.spyOn(Math, 'random').mockReturnValue(1)
})
afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

const create = () => new RestartBackoff('far', { backoffMs: 100, breakAfter: 3, breakMs: 10_000, steadyMs: 5000 })

/** How long the next start has to wait. */
const waitOf = async (restarts: RestartBackoff): Promise<number> => {
  const from = Date.now()
  const turn = restarts.wait()
  await vi.runAllTimersAsync()
  await turn
  return Date.now() - from
}

describe('a server that crashes', () => {
  it('is restarted with a growing delay', async () => {
    const restarts = create()
    expect(await waitOf(restarts)).toBe(0)
    restarts.recordCrash(CRASH, 0)
    expect(await waitOf(restarts)).toBe(100)
    restarts.recordCrash(CRASH, 0)
    expect(await waitOf(restarts)).toBe(200)
  })

  it('too often in a row is not restarted for a while, and callers get the reason', async () => {
    const restarts = create()
    for (let i = 0; i < 3; i++) restarts.recordCrash(CRASH, 0)
    await expect(restarts.wait()).rejects.toThrow(
      'Server "far" exited with code 1; it last wrote: no key. It failed 3 times and is tried again in 10 s',
    )
    vi.advanceTimersByTime(10_000)
    expect(await waitOf(restarts)).toBe(0)
    restarts.recordCrash(CRASH, 0)
    await expect(restarts.wait()).rejects.toThrow('It failed 4 times and is tried again in 20 s')
  })

  it('after a steady run has the first delay again', async () => {
    const restarts = create()
    for (let i = 0; i < 3; i++) restarts.recordCrash(CRASH, 0)
    restarts.recordCrash(CRASH, 5000)
    expect(restarts.crashes).toBe(1)
    expect(await waitOf(restarts)).toBe(100)
  })
})
