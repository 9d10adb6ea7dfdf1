import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { FakeSession } from '../../../test/support/fake-session.ts'
import { exchangeWith } from '../../../test/support/scripted-server.ts'
import { leaseSession } from './lease.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const lease = () => {
  const close = vi.fn(async () => {})
  return { close, peer: leaseSession(new FakeSession(close)) }
}

it('closes the session if its caller sends nothing within 30 seconds', () => {
  const { close } = lease()
  vi.advanceTimersByTime(29_000)
  expect(close).not.toHaveBeenCalled()
  vi.advanceTimersByTime(2000)
  expect(close).toHaveBeenCalledOnce()
})

it('keeps the session while a long request is under way', () => {
  const { close, peer } = lease()
  exchangeWith(peer, 'tools/call')
  vi.advanceTimersByTime(60_000)
  expect(close).not.toHaveBeenCalled()
})
