import { expect, test, vi } from 'vitest'
import { Abort } from '../protocol/cancellation.ts'
import type { Caller, Exchange, Frame } from '../protocol/exchange.ts'
import { Json, type PlainObject } from '../wire/json/json.ts'
import { askInRounds } from './rounds.ts'
import { LegacySubscriptions } from './subscriptions.ts'

const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged'
const CALLER: Caller = {
  workspace: 'w',
  principal: 'ana',
  revision: '2025-11-25',
  session: 's1',
  capabilities: Json.of({ elicitation: {} }),
  headers: new Map(),
}

const exchangeOf = (method: string, params: PlainObject) => {
  const frames: Frame[] = []
  const exchange: Exchange = {
    kind: 'request',
    method,
    params: Json.of(params),
    caller: CALLER,
    signal: new Abort(),
    sink: frame => void frames.push(frame),
  }
  return { exchange, frames }
}

test('a session gets one acknowledgement, although each resource needs a new listen', () => {
  const subscriptions = new LegacySubscriptions()
  const sent: Exchange[] = []
  const dispatch = (exchange: Exchange) => void sent.push(exchange)
  const acknowledge = (at: number, resourceSubscriptions: string[]) =>
    void sent[at]?.sink({
      kind: 'notice',
      method: ACKNOWLEDGED,
      params: Json.of({ notifications: { toolsListChanged: true, resourceSubscriptions } }),
    })
  const standing = exchangeOf('subscriptions/listen', { notifications: { toolsListChanged: true } })
  subscriptions.listen(standing.exchange, dispatch)
  expect(standing.frames).toEqual([])
  acknowledge(0, [])
  expect(standing.frames).toMatchObject([{ kind: 'notice', method: ACKNOWLEDGED }])
  const [first] = standing.frames
  expect(first?.kind === 'notice' && first.params.at('notifications', 'toolsListChanged')?.asBoolean()).toBe(true)
  const watching = exchangeOf('resources/subscribe', { uri: 'a:' })
  subscriptions.subscribe(watching.exchange)
  acknowledge(1, ['a:'])
  expect(watching.frames).toMatchObject([{ kind: 'result' }])
  expect(standing.frames).toHaveLength(1)
})

test('a listener that comes too late takes nothing from the one of its session', () => {
  const subscriptions = new LegacySubscriptions()
  const sent: Exchange[] = []
  const dispatch = (exchange: Exchange) => void sent.push(exchange)
  subscriptions.listen(exchangeOf('subscriptions/listen', { notifications: {} }).exchange, dispatch)
  const signal = new Abort()
  signal.abort({ kind: 'gone' })
  subscriptions.listen({ ...exchangeOf('subscriptions/listen', { notifications: {} }).exchange, signal }, dispatch)
  expect(sent).toHaveLength(1)
  const watching = exchangeOf('resources/subscribe', { uri: 'a:' })
  subscriptions.subscribe(watching.exchange)
  expect(watching.frames).toEqual([]) // it waits for the acknowledgement
  expect(sent).toHaveLength(2)
})

test('a listen that is not acknowledged in time is ended, and the one in force stays', () => {
  vi.useFakeTimers()
  const subscriptions = new LegacySubscriptions()
  const sent: Exchange[] = []
  const dispatch = (exchange: Exchange) => void sent.push(exchange)
  const acknowledged = { kind: 'notice', method: ACKNOWLEDGED, params: Json.of({ notifications: {} }) } as const
  const standing = exchangeOf('subscriptions/listen', { notifications: {} })
  subscriptions.listen(standing.exchange, dispatch)
  void sent[0]?.sink(acknowledged)
  for (const at of [1, 2]) {
    const watching = exchangeOf('resources/subscribe', { uri: 'a:' })
    subscriptions.subscribe(watching.exchange)
    vi.advanceTimersByTime(5000)
    expect(watching.frames).toMatchObject([{ kind: 'failure', error: { code: -32602 } }])
    expect(sent[at]?.signal.reason).toEqual({ kind: 'expired' })
  }
  void sent[1]?.sink(acknowledged)
  expect(sent.map(({ signal }) => signal.reason !== undefined)).toEqual([false, true, true])
  vi.useRealTimers()
})

test('a subscription is answered although the server never acknowledges that it listens', () => {
  vi.useFakeTimers()
  const subscriptions = new LegacySubscriptions()
  const standing = exchangeOf('subscriptions/listen', { notifications: {} })
  subscriptions.listen(standing.exchange, () => {})
  const watching = exchangeOf('resources/subscribe', { uri: 'a:' })
  const leaving = exchangeOf('resources/unsubscribe', { uri: 'b:' })
  subscriptions.subscribe(watching.exchange)
  subscriptions.unsubscribe(leaving.exchange)
  expect(watching.frames).toEqual([])
  vi.advanceTimersByTime(5000)
  expect(watching.frames).toMatchObject([{ kind: 'failure', error: { code: -32602 } }])
  expect(leaving.frames).toMatchObject([{ kind: 'result' }])
  expect(vi.getTimerCount()).toBe(0)
  vi.useRealTimers()
})

test('a subscription waits for the listen of its session, for a while', () => {
  vi.useFakeTimers()
  const subscriptions = new LegacySubscriptions()
  const early = exchangeOf('resources/subscribe', { uri: 'a:' })
  subscriptions.subscribe(early.exchange)
  expect(early.frames).toEqual([])
  const standing = exchangeOf('subscriptions/listen', { notifications: {} })
  subscriptions.listen(standing.exchange, ({ params, sink }) => {
    void sink({ kind: 'notice', method: ACKNOWLEDGED, params })
  })
  expect(early.frames).toMatchObject([{ kind: 'result' }])
  ;(standing.exchange.signal as Abort).abort({ kind: 'gone' })
  const late = exchangeOf('resources/subscribe', { uri: 'a:' })
  subscriptions.subscribe(late.exchange)
  vi.advanceTimersByTime(5000)
  expect(late.frames).toMatchObject([{ kind: 'failure', error: { code: -32602 } }])
  expect(vi.getTimerCount()).toBe(0)
  vi.useRealTimers()
})

test.each([
  [1024, 'question'],
  [1025, 'result'],
] as const)('a round of %i questions becomes a %s for a legacy caller', (count, kind) => {
  const sent: Exchange[] = []
  const call = exchangeOf('tools/call', { name: 'ask' })
  askInRounds(exchange => void sent.push(exchange), { questionTtlMs: 1000 })(call.exchange)
  const question = { method: 'elicitation/create', params: { message: '?', requestedSchema: { type: 'object' } } }
  const inputRequests = Object.fromEntries(Array.from({ length: count }, (_, i) => [`q${i}`, question]))
  void sent[0]?.sink({ kind: 'result', result: Json.of({ resultType: 'input_required', inputRequests }) })
  expect(new Set(call.frames.map(frame => frame.kind))).toEqual(new Set([kind]))
  const [first] = call.frames
  if (kind === 'question') expect(call.frames).toHaveLength(count)
  else expect(first?.kind === 'result' && first.result.get('isError')?.asBoolean()).toBe(true)
  ;(call.exchange.signal as Abort).abort({ kind: 'gone' })
})
