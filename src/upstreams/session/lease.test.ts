import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { exchangeWith } from '../../../test/support/scripted-server.ts'
import { leaseOf } from './lease.ts'
import type { Pooled } from './pool.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const lease = () => {
  const close = vi.fn(async () => {})
  const session: Pooled = {
    revision: '2025-11-25',
    asks: true,
    correlates: true,
    isBusy: false,
    lastUsed: 0,
    dispatch: () => {},
    close,
  }
  return { close, peer: leaseOf(session) }
}

it('ends a session whose caller left before he sent anything', () => {
  const { close } = lease()
  vi.advanceTimersByTime(29_000)
  expect(close).not.toHaveBeenCalled()
  vi.advanceTimersByTime(2000)
  expect(close).toHaveBeenCalledOnce()
})

it('leaves the session of a long request alone', () => {
  const { close, peer } = lease()
  exchangeWith(peer, 'tools/call')
  vi.advanceTimersByTime(60_000)
  expect(close).not.toHaveBeenCalled()
})
