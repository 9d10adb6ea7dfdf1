import { describe, expect, test } from 'vitest'
import { callerOf } from '../../test/support/embedded.ts'
import { Abort } from '../protocol/cancellation.ts'
import type { Caller, Exchange, Frame } from '../protocol/exchange.ts'
import { CHANGING_LISTS } from '../protocol/notifications.ts'
import { Json } from '../wire/json/json.ts'
import { createHotSwap, type HotSwapStep } from './hot-swap.ts'

const ALL = { notifications: { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true } }
const ACK: Frame = { kind: 'notice', method: 'notifications/subscriptions/acknowledged', params: Json.of(ALL) }
const notice = (method: string): Frame => ({ kind: 'notice', method, params: Json.empty })

/** One target: records its exchanges. */
const target = () => {
  const got: Exchange[] = []
  return {
    got,
    dispatch: (exchange: Exchange) => void got.push(exchange),
    say: (frame: Frame) => got.at(-1)?.sink(frame),
  }
}

const listener = (caller: Partial<Caller> = {}) => {
  const received: string[] = []
  const abort = new Abort()
  const exchange: Exchange = {
    kind: 'request',
    method: 'subscriptions/listen',
    params: Json.of(ALL),
    caller: callerOf(caller),
    signal: abort,
    sink: frame =>
      void received.push(frame.kind === 'notice' ? frame.method.replace('notifications/', '') : frame.kind),
  }
  return { received, abort, exchange }
}

const step = (more: Partial<HotSwapStep> = {}): HotSwapStep => ({
  changed: CHANGING_LISTS,
  drained: Promise.resolve(),
  renew: caller => caller,
  ...more,
})

const settled = () => new Promise(resolve => setImmediate(resolve))

test('calls go to the current target', () => {
  const [before, after] = [target(), target()]
  const hotSwap = createHotSwap(before.dispatch)
  const call = { ...listener().exchange, method: 'tools/list' }
  hotSwap.dispatch(call)
  hotSwap.swap(after.dispatch, step())
  hotSwap.dispatch(call)
  expect([before.got, after.got]).toEqual([[call], [call]])
})

test('a subscription moves to the new target and is notified of changes at once', async () => {
  const [before, after, { received, exchange }] = [target(), target(), listener()]
  const hotSwap = createHotSwap(before.dispatch)
  hotSwap.dispatch(exchange)
  before.say(ACK)
  hotSwap.swap(after.dispatch, step({ changed: ['tools'] }))
  before.say(notice('notifications/resources/updated'))
  expect(received).toEqual(['subscriptions/acknowledged', 'tools/list_changed', 'resources/updated'])
  after.say(ACK)
  before.say(notice('notifications/tools/list_changed'))
  after.say(notice('notifications/prompts/list_changed'))
  expect(received.slice(3)).toEqual(['prompts/list_changed'])
  await settled()
  expect(before.got[0]?.signal.reason).toEqual({ kind: 'gone' })
  expect(after.got[0]?.signal.reason).toBeUndefined()
})

test('the subscription at the old target ends only when its calls have ended', async () => {
  const [before, after, { exchange }] = [target(), target(), listener()]
  const hotSwap = createHotSwap(before.dispatch)
  hotSwap.dispatch(exchange)
  before.say(ACK)
  let drain = (): void => {}
  hotSwap.swap(after.dispatch, step({ drained: new Promise(resolve => (drain = resolve)) }))
  after.say(ACK)
  await settled()
  expect(before.got[0]?.signal.reason).toBeUndefined()
  drain()
  await settled()
  expect(before.got[0]?.signal.reason).toEqual({ kind: 'gone' })
})

test('a client that leaves ends the subscription at every target', () => {
  const [before, after, { abort, exchange }] = [target(), target(), listener()]
  const hotSwap = createHotSwap(before.dispatch)
  hotSwap.dispatch(exchange)
  hotSwap.swap(after.dispatch, step({ drained: new Promise(() => {}) }))
  abort.abort({ kind: 'cancelled', text: 'enough' })
  for (const { got } of [before, after]) expect(got[0]?.signal.reason).toEqual({ kind: 'cancelled', text: 'enough' })
})

test('only acknowledged changes are notified, those of the new target included', () => {
  const [before, after, { received, exchange }] = [target(), target(), listener()]
  const acknowledge = (flag: string): Frame =>
    ({ ...ACK, params: Json.of({ notifications: { [flag]: true } }) }) as Frame
  const hotSwap = createHotSwap(before.dispatch)
  hotSwap.dispatch(exchange)
  before.say(acknowledge('promptsListChanged'))
  hotSwap.swap(after.dispatch, step())
  expect(received.slice(1)).toEqual(['prompts/list_changed'])
  after.say(acknowledge('toolsListChanged'))
  expect(received.slice(2)).toEqual(['tools/list_changed'])
})

test('a subscription that is never acknowledged gets the changes it asked for', () => {
  const [before, after, { received, exchange }] = [
    target(),
    target(),
    listener({ session: 's', revision: '2025-11-25' }),
  ]
  const hotSwap = createHotSwap(before.dispatch)
  hotSwap.dispatch(exchange)
  hotSwap.swap(after.dispatch, step({ changed: ['tools', 'prompts'] }))
  expect(received).toEqual(['tools/list_changed', 'prompts/list_changed'])
})

describe('before the acknowledgement a modern subscription gets no notification', () => {
  const updated = (uri: string): Frame => ({
    kind: 'notice',
    method: 'notifications/resources/updated',
    params: Json.of({ uri }),
  })

  test('and then all held ones, equal ones once', () => {
    const [only, { received, exchange }] = [target(), listener()]
    createHotSwap(only.dispatch).dispatch(exchange)
    for (const list of ['tools', 'tools', 'prompts']) only.say(notice(`notifications/${list}/list_changed`))
    for (const uri of ['a:1', 'a:2', 'a:1']) only.say(updated(uri))
    for (const _ of [1, 2]) only.say(notice('notifications/message'))
    expect(received).toEqual([])
    only.say(ACK)
    expect(received).toEqual([
      'subscriptions/acknowledged',
      'tools/list_changed',
      'prompts/list_changed',
      'resources/updated',
      'resources/updated',
      'message',
      'message',
    ])
    only.say(notice('notifications/tools/list_changed'))
    expect(received).toHaveLength(8)
  })

  test('of a configuration change either, and the new target may acknowledge first', async () => {
    const [before, after, { received, exchange }] = [target(), target(), listener()]
    const hotSwap = createHotSwap(before.dispatch)
    hotSwap.dispatch(exchange)
    hotSwap.swap(after.dispatch, step({ changed: ['tools'] }))
    await settled()
    expect(received).toEqual([])
    after.say(ACK)
    expect(received).toEqual(['subscriptions/acknowledged', 'tools/list_changed'])
    before.say(ACK)
    expect(received).toHaveLength(2)
  })

  test('and the number of held ones is bounded', () => {
    const [only, { received, exchange }] = [target(), listener()]
    createHotSwap(only.dispatch).dispatch(exchange)
    for (let i = 0; i < 1000; i++) only.say(updated(`a:${i}`))
    only.say(ACK)
    expect(received).toHaveLength(257)
  })

  test('and one that ends first gets only its result', () => {
    const [only, { received, exchange }] = [target(), listener()]
    createHotSwap(only.dispatch).dispatch(exchange)
    only.say(notice('notifications/tools/list_changed'))
    only.say({ kind: 'failure', error: { code: -32603, message: 'no' } })
    expect(received).toEqual(['failure'])
  })
})

test('a failure of the new target ends the subscription; the end of an old one does not', () => {
  const [before, after, { received, exchange }] = [target(), target(), listener()]
  const hotSwap = createHotSwap(before.dispatch)
  hotSwap.dispatch(exchange)
  before.say(ACK)
  hotSwap.swap(after.dispatch, step({ changed: [] }))
  after.say(ACK)
  before.say({ kind: 'result', result: Json.empty })
  expect(received).toEqual(['subscriptions/acknowledged'])
  after.say({ kind: 'failure', error: { code: -32603, message: 'no' } })
  expect(received.slice(1)).toEqual(['failure'])
  hotSwap.swap(before.dispatch, step())
  expect(before.got).toHaveLength(1)
})

test('a subscription whose caller has a new policy moves even if the target is the same; others stay', () => {
  const [only, bounded, free] = [target(), listener({ principal: 'ada' }), listener({ principal: 'bob' })]
  const hotSwap = createHotSwap(only.dispatch)
  for (const { exchange } of [bounded, free]) hotSwap.dispatch(exchange)
  const policy = { allow: {}, deny: {}, readOnly: true }
  hotSwap.swap(only.dispatch, step({ renew: caller => (caller.principal === 'ada' ? { ...caller, policy } : caller) }))
  expect(only.got.map(({ caller }) => [caller.principal, caller.policy])).toEqual([
    ['ada', undefined],
    ['bob', undefined],
    ['ada', policy],
  ])
})

test('when the target is removed, subscriptions end with a result', () => {
  const [only, session, modern] = [target(), listener({ session: 's' }), listener()]
  const hotSwap = createHotSwap(only.dispatch)
  for (const { exchange } of [session, modern]) hotSwap.dispatch(exchange)
  hotSwap.end(caller => caller.session === undefined)
  expect([session.received, modern.received]).toEqual([[], ['result']])
  hotSwap.end(() => true)
  expect(session.received).toEqual(['result'])
  expect(only.got.map(({ signal }) => signal.reason)).toEqual([{ kind: 'gone' }, { kind: 'gone' }])
})
