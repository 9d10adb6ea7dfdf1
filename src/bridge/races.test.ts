import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { observedExchanges } from '../../test/support/observed-exchange.ts'
import { Abort } from '../protocol/cancellation.ts'
import type { Answer, Caller, Exchange, Frame, Peer, Question } from '../protocol/exchange.ts'
import { Json } from '../wire/json/json.ts'
import { createParking } from './parking/parking.ts'
import { SessionQuestions } from './shared-session/shared-call.ts'
import { SharedSession } from './shared-session/shared-session.ts'
import { LegacySubscriptions } from './subscriptions.ts'

let sent: Exchange[]
let standings: Exchange[]
let session: SharedSession
const start = (correlates: boolean): void => {
  sent = []
  standings = []
  const peer: Peer = {
    revision: '2025-11-25',
    asks: true,
    correlates,
    dispatch: e => void (e.method === 'subscriptions/listen' ? standings.push(e) : sent.push(e)),
  }
  session = new SharedSession(peer)
}
beforeEach(() => vi.useFakeTimers())
afterEach(() => vi.useRealTimers())
const exch = observedExchanges({ elicitation: {} }, 'me')
const call = (name: string, who: Partial<Caller> = {}, method = 'tools/call') => {
  const x = exch(method, { name }, who)
  session.dispatch(x.e)
  return x
}
const question = (answers: Answer[] = []): Question => ({
  kind: 'question',
  method: 'elicitation/create',
  params: Json.of({}),
  withdrawn: new Abort(),
  answer: r => void answers.push(r),
})
const finish = (e: Exchange | undefined) => e?.sink({ kind: 'result', result: Json.empty })

test('a held question that a call carries is not refused by the hold timer', () => {
  start(true)
  call('list', {}, 'tools/list')
  finish(sent[0])
  const answers: Answer[] = []
  void standings[0]?.sink(question(answers))
  const c = call('a')
  expect(c.frames.map(f => f.kind)).toEqual(['question'])
  vi.advanceTimersByTime(25_000)
  expect(answers).toEqual([])
})

test('the session subscription closes after a held question has expired', () => {
  start(true)
  call('complete', {}, 'completion/complete')
  void standings[0]?.sink(question())
  finish(sent[0])
  vi.advanceTimersByTime(120_000)
  expect(standings[0]?.signal.reason).toBeDefined()
})

test('a question of the running call never goes to a call that waits for its turn', () => {
  start(false)
  const a = call('a')
  const b = call('b')
  expect(sent.length).toBe(1)
  void standings[0]?.sink(question())
  expect([a.frames.length, b.frames.length]).toEqual([1, 0])
})

test('of two log levels requested at once the more verbose one stays', () => {
  start(true)
  call('a', { logLevel: 'debug' })
  call('b', { logLevel: 'error' })
  const levels = () => sent.filter(e => e.method === 'logging/setLevel').map(e => e.params.get('level')?.asString())
  for (const e of sent.filter(e => e.method === 'logging/setLevel')) finish(e)
  expect(levels().at(-1)).toBe('debug')
})

test('a log level that could not be set is requested again', () => {
  start(true)
  call('a', { logLevel: 'debug' })
  void sent[0]?.sink({ kind: 'failure', error: { code: -32603, message: 'timeout' } })
  call('b', { logLevel: 'debug' })
  expect(sent.filter(e => e.method === 'logging/setLevel').length).toBe(2)
})

test('duplicate URIs are unsubscribed', async () => {
  start(true)
  const l = exch('subscriptions/listen', { notifications: { resourceSubscriptions: ['a:', 'a:'] } })
  session.dispatch(l.e)
  void standings[0]?.sink({
    kind: 'notice',
    method: 'notifications/subscriptions/acknowledged',
    params: Json.of({ notifications: {} }),
  })
  for (const e of [...sent]) finish(e)
  await vi.advanceTimersByTimeAsync(10)
  l.abort.abort({ kind: 'gone' })
  expect(sent.map(e => e.method)).toContain('resources/unsubscribe')
})

test('a second listener gets no acknowledgement of a subscription that the server refused', async () => {
  start(true)
  const n = { notifications: { resourceSubscriptions: ['a:'] } }
  const l1 = exch('subscriptions/listen', n)
  const l2 = exch('subscriptions/listen', n)
  session.dispatch(l1.e)
  session.dispatch(l2.e)
  void standings[0]?.sink({
    kind: 'notice',
    method: 'notifications/subscriptions/acknowledged',
    params: Json.of({ notifications: {} }),
  })
  void sent[0]?.sink({ kind: 'failure', error: { code: -32602, message: 'no' } })
  await vi.advanceTimersByTimeAsync(10)
  const acked = (x: typeof l1) =>
    x.frames.map(f => f.kind === 'notice' && f.params.at('notifications', 'resourceSubscriptions')?.toValue())
  expect(acked(l1)).toEqual([[]])
  expect(acked(l2)).toEqual([[]])
})

test('a listener is acknowledged within 5 s although the session sends nothing', async () => {
  start(true)
  const l1 = exch('subscriptions/listen', { notifications: { toolsListChanged: true } })
  session.dispatch(l1.e)
  await vi.advanceTimersByTimeAsync(60_000)
  expect(l1.frames.length).toBe(1)
})

// Parking
const ask = (x: Exchange, answers: Answer[] = []) => x.sink(question(answers))
const result = (f: Frame | undefined) => (f?.kind === 'result' ? f.result : undefined)

test('a new parked call does not evict a call that was resumed', async () => {
  const up: Exchange[] = []
  const parking = createParking({ questionTtlMs: 60_000, principalParkedCalls: 1 })
  const d = parking.at('far').wrap(e => void up.push(e))
  const one = exch('tools/call', { name: 'one' })
  d(one.e)
  void ask(up[0] as Exchange)
  vi.advanceTimersByTime(40)
  const state = result(one.frames[0])?.get('requestState')?.asString() ?? ''
  const again = exch('tools/call', {
    name: 'one',
    requestState: state,
    inputResponses: { q1: { action: 'accept', content: {} } },
  })
  d(again.e) // answered: runs on, attached
  const two = exch('tools/call', { name: 'two' })
  d(two.e)
  void ask(up[1] as Exchange)
  vi.advanceTimersByTime(40) // two is parked -> "oldest" is the running one
  vi.advanceTimersByTime(5000)
  expect(up[0]?.signal.reason).toBeUndefined()
})

test('a call that parks again does not expire itself', () => {
  const up: Exchange[] = []
  const parking = createParking({ questionTtlMs: 60_000, principalParkedCalls: 1 })
  const d = parking.at('far').wrap(e => void up.push(e))
  const one = exch('tools/call', { name: 'one' })
  d(one.e)
  const [a1, a2]: [Answer[], Answer[]] = [[], []]
  void ask(up[0] as Exchange, a1)
  void ask(up[0] as Exchange, a2)
  vi.advanceTimersByTime(40)
  const state = result(one.frames[0])?.get('requestState')?.asString() ?? ''
  const again = exch('tools/call', {
    name: 'one',
    requestState: state,
    inputResponses: { q1: { action: 'accept', content: {} } },
  })
  d(again.e)
  expect(result(again.frames[0])?.get('inputRequests')?.has('q2')).toBe(true)
  expect(a2).toEqual([]) // q2 is still open
  vi.advanceTimersByTime(5000)
  expect(up[0]?.signal.reason).toBeUndefined()
})

test('a result that arrived while the call was parked is delivered to a late retry', () => {
  const up: Exchange[] = []
  const parking = createParking({ questionTtlMs: 60_000 })
  const d = parking.at('far').wrap(e => void up.push(e))
  const one = exch('tools/call', { name: 'one' })
  d(one.e)
  void ask(up[0] as Exchange)
  vi.advanceTimersByTime(40)
  const state = result(one.frames[0])?.get('requestState')?.asString() ?? ''
  finish(up[0])
  const again = exch('tools/call', {
    name: 'one',
    requestState: state,
    inputResponses: { q1: { action: 'accept', content: {} } },
  })
  d(again.e)
  expect(again.frames.length).toBe(1)
  expect(again.frames[0]?.kind).toBe('result')
})

// Subscriptions L->M
const LEGACY: Partial<Caller> = { revision: '2025-11-25', session: 's1' }
const ackNotice = (e: Exchange) =>
  e.sink({
    kind: 'notice',
    method: 'notifications/subscriptions/acknowledged',
    params: Json.of({
      notifications: { resourceSubscriptions: e.params.at('notifications', 'resourceSubscriptions') ?? [] },
    }),
  })

test('acknowledgements that overtake each other: each subscribe is answered and one listen is left', () => {
  const subs = new LegacySubscriptions()
  const up: Exchange[] = []
  const d = (e: Exchange) => void up.push(e)
  const st = exch('subscriptions/listen', { notifications: { toolsListChanged: true } }, LEGACY)
  subs.listen(st.e, d)
  void ackNotice(up[0] as Exchange)
  const s1 = exch('resources/subscribe', { uri: 'a:' }, LEGACY)
  const s2 = exch('resources/subscribe', { uri: 'b:' }, LEGACY)
  subs.subscribe(s1.e)
  subs.subscribe(s2.e)
  void ackNotice(up[2] as Exchange)
  if (!up[1]?.signal.reason) void ackNotice(up[1] as Exchange)
  const open = up.filter(e => !e.signal.reason).length
  expect({ s1: s1.frames.length, s2: s2.frames.length, open }).toEqual({ s1: 1, s2: 1, open: 1 })
})

test('a session that ends during make-before-break leaves no listen open', () => {
  const subs = new LegacySubscriptions()
  const up: Exchange[] = []
  const d = (e: Exchange) => void up.push(e)
  const st = exch('subscriptions/listen', { notifications: {} }, LEGACY)
  subs.listen(st.e, d)
  void ackNotice(up[0] as Exchange)
  subs.subscribe(exch('resources/subscribe', { uri: 'a:' }, LEGACY).e)
  st.abort.abort({ kind: 'gone' })
  expect(up.filter(e => !e.signal.reason).length).toBe(0)
})

test('a listen that cannot be replaced stays in force', () => {
  const subs = new LegacySubscriptions()
  const up: Exchange[] = []
  const d = (e: Exchange) => void up.push(e)
  const st = exch('subscriptions/listen', { notifications: { toolsListChanged: true } }, LEGACY)
  subs.listen(st.e, d)
  void ackNotice(up[0] as Exchange)
  const s1 = exch('resources/subscribe', { uri: 'a:' }, LEGACY)
  subs.subscribe(s1.e)
  void up[1]?.sink({ kind: 'failure', error: { code: -32602, message: 'no' } })
  expect(s1.frames[0]?.kind).toBe('failure')
  expect(up[0]?.signal.reason).toBeUndefined()
  expect(st.frames.map(({ kind }) => kind)).toEqual(['notice']) // the acknowledgement, once, and no end
})

test('a question that was withdrawn before it could be held is dropped', () => {
  const withdrawn = new Abort()
  withdrawn.abort({ kind: 'cancelled' })
  const held = new SessionQuestions({ opened: () => {}, closed: () => {} })
  const answers: Answer[] = []
  held.hold({ ...question(answers), withdrawn })
  expect(
    held.takeFor({
      workspace: 'w',
      principal: 'p',
      revision: '2026-07-28',
      capabilities: Json.empty,
      headers: new Map(),
    }),
  ).toEqual([])
  vi.advanceTimersByTime(60_000)
  expect(answers).toEqual([])
})
