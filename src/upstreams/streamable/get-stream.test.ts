import { expect, test, vi } from 'vitest'
import type { HttpLink } from '../http/http-link.ts'
import { GetStream } from './get-stream.ts'
import { StreamableTraits } from './streamable-transport.ts'

const EVENTS = { 'content-type': 'text/event-stream' }

test('a server that ends its streams at once is asked less and less often; what was missed is announced once a minute', async () => {
  vi.useFakeTimers()
  let sent = 0
  let endsAtOnce = true
  const reopened: number[] = []
  const send = () => {
    sent++
    queueMicrotask(() => {
      stream.started(200, EVENTS)
      if (endsAtOnce) stream.ended({ kind: 'closed', isStream: true, resume: undefined })
    })
    return { abort: () => {} }
  }
  const stream = new GetStream({
    link: { http: { send }, target: '/', timeoutMs: 1000, maxBytes: 1000 } as unknown as HttpLink,
    traits: new StreamableTraits(),
    headers: () => [],
    message: () => {},
    gone: async () => {},
    cut: () => {},
    reopened: () => reopened.push(Date.now()),
  })
  void stream.start(500)
  await vi.advanceTimersByTimeAsync(600_000)
  expect(sent).toBeLessThan(50)
  const count = reopened.length // every gap of ten minutes is told
  expect(count).toBeGreaterThan(9)
  expect(count).toBeLessThan(15)
  endsAtOnce = false
  await vi.advanceTimersByTimeAsync(90_000)
  expect(reopened).toHaveLength(count + 1)
  stream.stop()
  expect(vi.getTimerCount()).toBe(0)
  vi.useRealTimers()
})
