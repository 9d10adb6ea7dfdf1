import { expect, test, vi } from 'vitest'
import { FakeSession } from '../../../test/support/fake-session.ts'
import { observedExchanges } from '../../../test/support/observed-exchange.ts'
import { Abort } from '../../protocol/cancellation.ts'
import type { Exchange, Peer, Question } from '../../protocol/exchange.ts'
import { leaseSession } from '../../upstreams/session/lease.ts'
import { Json } from '../../wire/json/json.ts'
import { createParking } from '../parking/parking.ts'
import { askForUrls } from '../url-elicitation.ts'
import { SharedSession } from './shared-session.ts'

const exch = observedExchanges({ elicitation: { url: {} } }, undefined)
test('an anonymous caller keeps its session while its user opens the URLs', async () => {
  const sent: Exchange[] = []
  let closed = false
  const session = new FakeSession(
    async () => {
      closed = true
    },
    e => void (e.method === 'tools/call' && sent.push(e)),
  )
  const d = askForUrls(new SharedSession(leaseSession(session)))
  const x = exch('tools/call', { name: 'a' })
  d(x.e)
  void sent[0]?.sink({
    kind: 'failure',
    error: {
      code: -32042,
      message: 'open',
      data: Json.of({ elicitations: [{ mode: 'url', elicitationId: 'e', url: 'https://x', message: 'm' }] }),
    },
  })
  expect(x.frames[0]?.kind).toBe('question')
  await new Promise(setImmediate)
  expect(closed).toBe(false)
})
test('a session subscription that fails at once still answers the listener', async () => {
  const peer: Peer = {
    revision: '2025-11-25',
    asks: true,
    dispatch: e => void e.sink({ kind: 'failure', error: { code: -32603, message: 'disconnected' } }),
  }
  const s = new SharedSession(peer)
  const l = exch('subscriptions/listen', { notifications: { toolsListChanged: true } })
  s.dispatch(l.e)
  await expect.poll(() => l.frames.length).toBeGreaterThan(0)
})
test('an already aborted call does not keep the turn', () => {
  const sent: Exchange[] = []
  const peer: Peer = {
    revision: '2025-11-25',
    asks: true,
    correlates: false,
    dispatch: e => void (e.method === 'tools/call' && sent.push(e)),
  }
  const s = new SharedSession(peer)
  const a = exch('tools/call', { name: 'a' })
  a.abort.abort({ kind: 'gone' })
  s.dispatch(a.e)
  s.dispatch(exch('tools/call', { name: 'b' }).e)
  expect(sent.length).toBe(1)
})
test('questions of an evicted call are answered', async () => {
  vi.useFakeTimers()
  const sent: Exchange[] = []
  const peer: Peer = {
    revision: '2025-11-25',
    asks: true,
    correlates: false,
    dispatch: e => void (e.method === 'tools/call' && sent.push(e)),
  }
  const parking = createParking({ questionTtlMs: 900_000 })
  const d = parking.at('far').wrap(new SharedSession(peer).dispatch)
  const a = exch('tools/call', { name: 'a' }, { capabilities: Json.of({ elicitation: {} }) })
  d(a.e)
  let answered = 0
  void sent[0]?.sink({
    kind: 'question',
    method: 'elicitation/create',
    params: Json.empty,
    withdrawn: new Abort(),
    answer: () => void answered++,
  } as Question)
  vi.advanceTimersByTime(40)
  const b = exch('tools/call', { name: 'b' }, { capabilities: Json.of({ elicitation: {} }) })
  d(b.e)
  await vi.advanceTimersByTimeAsync(6000)
  vi.useRealTimers()
  expect(sent.length).toBe(2)
  expect(answered).toBe(1)
})
test('a call whose user was asked just now is not evicted', () => {
  vi.useFakeTimers()
  const sent: Exchange[] = []
  const peer: Peer = {
    revision: '2025-11-25',
    asks: true,
    correlates: false,
    dispatch: e => void (e.method === 'tools/call' && sent.push(e)),
  }
  const d = new SharedSession(peer).dispatch
  const caps = { capabilities: Json.of({ elicitation: {} }) }
  const a = exch('tools/call', { name: 'a' }, caps)
  d(a.e)
  d(exch('tools/call', { name: 'b' }, caps).e)
  vi.advanceTimersByTime(4990)
  void sent[0]?.sink({
    kind: 'question',
    method: 'elicitation/create',
    params: Json.empty,
    withdrawn: new Abort(),
    answer: () => {},
  } as Question)
  vi.advanceTimersByTime(20)
  vi.useRealTimers()
  expect(sent[0]?.signal.reason).toBeUndefined()
})
