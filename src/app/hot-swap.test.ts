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

/** One side of the door: keeps what it gets. */
const side = () => {
  const got: Exchange[] = []
  return {
    got,
    dispatch: (exchange: Exchange) => void got.push(exchange),
    say: (frame: Frame) => got.at(-1)?.sink(frame),
  }
}

const listener = (caller: Partial<Caller> = {}) => {
  const heard: string[] = []
  const abort = new Abort()
  const exchange: Exchange = {
    kind: 'request',
    method: 'subscriptions/listen',
    params: Json.of(ALL),
    caller: callerOf(caller),
    signal: abort,
    sink: frame => void heard.push(frame.kind === 'notice' ? frame.method.replace('notifications/', '') : frame.kind),
  }
  return { heard, abort, exchange }
}

const turn = (more: Partial<HotSwapStep> = {}): HotSwapStep => ({
  changed: CHANGING_LISTS,
  drained: Promise.resolve(),
  renew: caller => caller,
  ...more,
})

const settled = () => new Promise(resolve => setImmediate(resolve))

test('calls go to whatever is behind the door now', () => {
  const [before, after] = [side(), side()]
  const relay = createHotSwap(before.dispatch)
  const call = { ...listener().exchange, method: 'tools/list' }
  relay.dispatch(call)
  relay.swap(after.dispatch, turn())
  relay.dispatch(call)
  expect([before.got, after.got]).toEqual([[call], [call]])
})

test('a listener goes over without noticing, and is told at once what changed', async () => {
  const [before, after, { heard, exchange }] = [side(), side(), listener()]
  const relay = createHotSwap(before.dispatch)
  relay.dispatch(exchange)
  before.say(ACK)
  relay.swap(after.dispatch, turn({ changed: ['tools'] }))
  before.say(notice('notifications/resources/updated'))
  expect(heard).toEqual(['subscriptions/acknowledged', 'tools/list_changed', 'resources/updated'])
  after.say(ACK)
  before.say(notice('notifications/tools/list_changed'))
  after.say(notice('notifications/prompts/list_changed'))
  expect(heard.slice(3)).toEqual(['prompts/list_changed'])
  await settled()
  expect(before.got[0]?.signal.reason).toEqual({ kind: 'gone' })
  expect(after.got[0]?.signal.reason).toBeUndefined()
})

test('the old side hears of the end only when its calls are over', async () => {
  const [before, after, { exchange }] = [side(), side(), listener()]
  const relay = createHotSwap(before.dispatch)
  relay.dispatch(exchange)
  before.say(ACK)
  let drain = (): void => {}
  relay.swap(after.dispatch, turn({ drained: new Promise(resolve => (drain = resolve)) }))
  after.say(ACK)
  await settled()
  expect(before.got[0]?.signal.reason).toBeUndefined()
  drain()
  await settled()
  expect(before.got[0]?.signal.reason).toEqual({ kind: 'gone' })
})

test('a client that leaves leaves every side', () => {
  const [before, after, { abort, exchange }] = [side(), side(), listener()]
  const relay = createHotSwap(before.dispatch)
  relay.dispatch(exchange)
  relay.swap(after.dispatch, turn({ drained: new Promise(() => {}) }))
  abort.abort({ kind: 'cancelled', text: 'enough' })
  for (const { got } of [before, after]) expect(got[0]?.signal.reason).toEqual({ kind: 'cancelled', text: 'enough' })
})

test('only what was promised is told, and what the new side promises besides', () => {
  const [before, after, { heard, exchange }] = [side(), side(), listener()]
  const acknowledge = (flag: string): Frame =>
    ({ ...ACK, params: Json.of({ notifications: { [flag]: true } }) }) as Frame
  const relay = createHotSwap(before.dispatch)
  relay.dispatch(exchange)
  before.say(acknowledge('promptsListChanged'))
  relay.swap(after.dispatch, turn())
  expect(heard.slice(1)).toEqual(['prompts/list_changed'])
  after.say(acknowledge('toolsListChanged'))
  expect(heard.slice(2)).toEqual(['tools/list_changed'])
})

test('a session that is never acknowledged is told what it asked for', () => {
  const [before, after, { heard, exchange }] = [side(), side(), listener({ session: 's', revision: '2025-11-25' })]
  const relay = createHotSwap(before.dispatch)
  relay.dispatch(exchange)
  relay.swap(after.dispatch, turn({ changed: ['tools', 'prompts'] }))
  expect(heard).toEqual(['tools/list_changed', 'prompts/list_changed'])
})

describe('before the acknowledgement a modern listener hears nothing', () => {
  const updated = (uri: string): Frame => ({
    kind: 'notice',
    method: 'notifications/resources/updated',
    params: Json.of({ uri }),
  })

  test('and then everything that was said meanwhile, equal notices once', () => {
    const [only, { heard, exchange }] = [side(), listener()]
    createHotSwap(only.dispatch).dispatch(exchange)
    for (const list of ['tools', 'tools', 'prompts']) only.say(notice(`notifications/${list}/list_changed`))
    for (const uri of ['a:1', 'a:2', 'a:1']) only.say(updated(uri))
    for (const _ of [1, 2]) only.say(notice('notifications/message'))
    expect(heard).toEqual([])
    only.say(ACK)
    expect(heard).toEqual([
      'subscriptions/acknowledged',
      'tools/list_changed',
      'prompts/list_changed',
      'resources/updated',
      'resources/updated',
      'message',
      'message',
    ])
    only.say(notice('notifications/tools/list_changed'))
    expect(heard).toHaveLength(8)
  })

  test('of a change of the configuration either, and the new side may be the one that acknowledges', async () => {
    const [before, after, { heard, exchange }] = [side(), side(), listener()]
    const relay = createHotSwap(before.dispatch)
    relay.dispatch(exchange)
    relay.swap(after.dispatch, turn({ changed: ['tools'] }))
    await settled()
    expect(heard).toEqual([])
    after.say(ACK)
    expect(heard).toEqual(['subscriptions/acknowledged', 'tools/list_changed'])
    before.say(ACK)
    expect(heard).toHaveLength(2)
  })

  test('and a server that never acknowledges fills no memory', () => {
    const [only, { heard, exchange }] = [side(), listener()]
    createHotSwap(only.dispatch).dispatch(exchange)
    for (let i = 0; i < 1000; i++) only.say(updated(`a:${i}`))
    only.say(ACK)
    expect(heard).toHaveLength(257)
  })

  test('and one that ends first says only that', () => {
    const [only, { heard, exchange }] = [side(), listener()]
    createHotSwap(only.dispatch).dispatch(exchange)
    only.say(notice('notifications/tools/list_changed'))
    only.say({ kind: 'failure', error: { code: -32603, message: 'no' } })
    expect(heard).toEqual(['failure'])
  })
})

test('a new side that refuses ends the whole; an old one that ends does not', () => {
  const [before, after, { heard, exchange }] = [side(), side(), listener()]
  const relay = createHotSwap(before.dispatch)
  relay.dispatch(exchange)
  before.say(ACK)
  relay.swap(after.dispatch, turn({ changed: [] }))
  after.say(ACK)
  before.say({ kind: 'result', result: Json.empty })
  expect(heard).toEqual(['subscriptions/acknowledged'])
  after.say({ kind: 'failure', error: { code: -32603, message: 'no' } })
  expect(heard.slice(1)).toEqual(['failure'])
  relay.swap(before.dispatch, turn())
  expect(before.got).toHaveLength(1)
})

test('whoever may see something else now goes over even where nothing else changed, others stay', () => {
  const [only, bounded, free] = [side(), listener({ principal: 'ada' }), listener({ principal: 'bob' })]
  const relay = createHotSwap(only.dispatch)
  for (const { exchange } of [bounded, free]) relay.dispatch(exchange)
  const policy = { allow: {}, deny: {}, readOnly: true }
  relay.swap(only.dispatch, turn({ renew: caller => (caller.principal === 'ada' ? { ...caller, policy } : caller) }))
  expect(only.got.map(({ caller }) => [caller.principal, caller.policy])).toEqual([
    ['ada', undefined],
    ['bob', undefined],
    ['ada', policy],
  ])
})

test('when there is nothing behind the door any more, those who listen hear that this was all', () => {
  const [only, session, modern] = [side(), listener({ session: 's' }), listener()]
  const relay = createHotSwap(only.dispatch)
  for (const { exchange } of [session, modern]) relay.dispatch(exchange)
  relay.end(caller => caller.session === undefined)
  expect([session.heard, modern.heard]).toEqual([[], ['result']])
  relay.end(() => true)
  expect(session.heard).toEqual(['result'])
  expect(only.got.map(({ signal }) => signal.reason)).toEqual([{ kind: 'gone' }, { kind: 'gone' }])
})
