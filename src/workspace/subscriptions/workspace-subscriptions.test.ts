import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { scriptedMember, toolsOf } from '../../../test/support/scripted-member.ts'
import { callerOf, toolsIn, workspaceOf } from '../../../test/support/workspace.ts'
import { createHotSwap } from '../../app/hot-swap.ts'
import { Abort } from '../../protocol/cancellation.ts'
import type { Exchange, Frame, Peer } from '../../protocol/exchange.ts'
import { NEWEST_LEGACY } from '../../protocol/revisions.ts'
import { Json, type PlainObject } from '../../wire/json/json.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged'
const CHANGED = 'notifications/tools/list_changed'
const UPDATED = 'notifications/resources/updated'
const TOOLS = { notifications: { toolsListChanged: true } }
const ALL = { notifications: { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true } }

/** A member whose list of tools a test may change. */
const changing = (server: string, more: Parameters<typeof scriptedMember>[1] = {}) => {
  const names = ['x']
  const member = scriptedMember(server, {
    ...more,
    answers: { 'tools/list': () => ({ tools: toolsOf(...names) }), ...more.answers },
  })
  return { ...member, names }
}

test('the acknowledgement follows the answers of all members, at the latest after five seconds', async () => {
  const a = changing('a')
  const never = { ...changing('b'), bridged: { open: () => new Promise<never>(() => {}), close: async () => {} } }
  const w = workspaceOf([a, never])
  const listener = w.begin('subscriptions/listen', ALL)
  await vi.advanceTimersByTimeAsync(4999)
  expect(listener.notices).toEqual([])
  await vi.advanceTimersByTimeAsync(1)
  expect(listener.frames[0]).toMatchObject({ kind: 'notice', method: ACKNOWLEDGED })
  expect(paramsOf(listener.frames[0])).toEqual(ALL)
  const quick = workspaceOf([changing('a'), changing('b')])
  const other = quick.begin('subscriptions/listen', TOOLS)
  await vi.advanceTimersByTimeAsync(0)
  expect(paramsOf(other.frames[0])).toEqual(TOOLS)
  w.close()
  quick.close()
})

test('changes of several members within 200 ms are one notification', async () => {
  const [a, b] = [changing('a'), changing('b')]
  const w = workspaceOf([a, b])
  await w.ask('tools/list')
  const listener = w.begin('subscriptions/listen', TOOLS)
  await vi.advanceTimersByTimeAsync(2000)
  a.names.push('y')
  b.names.push('z')
  a.say(CHANGED)
  b.say(CHANGED)
  await vi.advanceTimersByTimeAsync(1000)
  expect(listener.notices).toEqual([ACKNOWLEDGED, CHANGED])
  expect(toolsIn(await w.ask('tools/list'))).toEqual(['a__x', 'a__y', 'b__x', 'b__z'])
  w.close()
})

test('a change notification without a visible change is dropped', async () => {
  const [a, b] = [changing('a'), changing('b')]
  const w = workspaceOf([a, b], { policy: { allow: {}, deny: { tools: ['a/secret'] }, readOnly: false } })
  await w.ask('tools/list')
  const listener = w.begin('subscriptions/listen', TOOLS)
  await vi.advanceTimersByTimeAsync(2000)
  a.say(CHANGED)
  await vi.advanceTimersByTimeAsync(2000)
  expect(a.count('tools/list')).toBe(2)
  a.names.push('secret')
  a.say(CHANGED)
  await vi.advanceTimersByTimeAsync(2000)
  expect(a.count('tools/list')).toBe(3)
  expect(listener.notices).toEqual([ACKNOWLEDGED])
  w.close()
})

test('while a member is down, a modern client gets changes only after the acknowledgement', async () => {
  const a = changing('a')
  const away = { ...changing('b'), bridged: { open: () => new Promise<never>(() => {}), close: async () => {} } }
  const w = workspaceOf([a, away])
  await w.ask('tools/list')
  const heard: string[] = []
  createHotSwap(w.dispatch).dispatch({
    kind: 'request',
    method: 'subscriptions/listen',
    params: Json.of(TOOLS),
    caller: callerOf(),
    signal: new Abort(),
    sink: frame => void heard.push(frame.kind === 'notice' ? frame.method : frame.kind),
  })
  await vi.advanceTimersByTimeAsync(100)
  a.names.push('y')
  a.say(CHANGED)
  await vi.advanceTimersByTimeAsync(3000)
  expect(heard).toEqual([])
  await vi.advanceTimersByTimeAsync(2000)
  expect(heard).toEqual([ACKNOWLEDGED, CHANGED])
  w.close()
})

test('a change back to the cached list, after a missed one, is notified', async () => {
  const a = changing('a')
  const w = workspaceOf([a, changing('b')])
  await w.ask('tools/list')
  const before = w.begin('subscriptions/listen', TOOLS)
  await vi.advanceTimersByTimeAsync(2000)
  before.abort.abort({ kind: 'gone' })
  const listener = w.begin('subscriptions/listen', TOOLS)
  await vi.advanceTimersByTimeAsync(300)
  expect(listener.notices).toEqual([ACKNOWLEDGED])
  a.say(CHANGED)
  await vi.advanceTimersByTimeAsync(300)
  expect(listener.notices).toEqual([ACKNOWLEDGED, CHANGED])
  w.close()
})

test('the same for the first listener, and only once', async () => {
  const a = changing('a')
  const w = workspaceOf([a, changing('b')])
  await w.ask('tools/list')
  const listener = w.begin('subscriptions/listen', TOOLS)
  await vi.advanceTimersByTimeAsync(300)
  a.say(CHANGED) // the list may have changed and changed back since it was fetched
  await vi.advanceTimersByTimeAsync(300)
  expect(listener.notices).toEqual([ACKNOWLEDGED, CHANGED])
  a.say(CHANGED)
  await vi.advanceTimersByTimeAsync(3000)
  expect(listener.notices).toEqual([ACKNOWLEDGED, CHANGED])
  w.close()
})

test('a process is not started for a known list, and what it announces at its start is notified only if it differs', async () => {
  let isRunning = true
  const a = { ...changing('a'), isProcess: true, runsFor: () => isRunning }
  const w = workspaceOf([a, changing('b')])
  await w.ask('tools/list')
  isRunning = false
  await vi.advanceTimersByTimeAsync(120_000)
  const listener = w.begin('subscriptions/listen', TOOLS)
  await w.ask('tools/list')
  await w.ask('tools/call', { name: 'unknown' })
  await vi.advanceTimersByTimeAsync(2000)
  expect(a.count('tools/list')).toBe(1)
  isRunning = true
  a.say(CHANGED)
  await vi.advanceTimersByTimeAsync(2000)
  expect(a.count('tools/list')).toBe(2)
  expect(listener.notices).toEqual([ACKNOWLEDGED])
  a.names.push('y')
  a.say(CHANGED)
  await vi.advanceTimersByTimeAsync(2000)
  expect(listener.notices).toEqual([ACKNOWLEDGED, CHANGED])
  w.close()
})

test('a change without listeners is found by the next listener', async () => {
  const a = changing('a')
  const w = workspaceOf([a, changing('b')])
  await w.ask('tools/list')
  const before = w.begin('subscriptions/listen', TOOLS)
  await vi.advanceTimersByTimeAsync(2000)
  before.abort.abort({ kind: 'gone' })
  a.names.push('y')
  const listener = w.begin('subscriptions/listen', TOOLS)
  await vi.advanceTimersByTimeAsync(300)
  expect(listener.notices).toEqual([ACKNOWLEDGED, CHANGED])
  expect(toolsIn(await w.ask('tools/list'))).toEqual(['a__x', 'a__y', 'b__x'])
  w.close()
})

test('a list that changes a hundred times a second is fetched and notified once a second', async () => {
  const a = changing('a')
  const w = workspaceOf([a, changing('b')])
  await w.ask('tools/list')
  const listener = w.begin('subscriptions/listen', TOOLS)
  await vi.advanceTimersByTimeAsync(2000)
  for (let i = 0; i < 1000; i++) {
    a.names[0] = `t${i}`
    a.say(CHANGED)
    await vi.advanceTimersByTimeAsync(10)
  }
  await vi.advanceTimersByTimeAsync(3000)
  expect(a.count('tools/list')).toBeLessThanOrEqual(17)
  expect(listener.notices.length).toBeLessThanOrEqual(17)
  expect(toolsIn(await w.ask('tools/list'))).toEqual(['a__t999', 'b__x'])
  w.close()
})

test('a member that goes down does not end the stream; when it is back there is one list_changed', async () => {
  const [a, b] = [changing('a'), changing('b')]
  const w = workspaceOf([a, b])
  await w.ask('tools/list')
  const listener = w.begin('subscriptions/listen', TOOLS)
  await vi.advanceTimersByTimeAsync(2000)
  b.turn('down')
  w.say('b', 'down')
  await vi.advanceTimersByTimeAsync(60_000)
  expect(listener.notices).toEqual([ACKNOWLEDGED])
  b.turn('up')
  w.say('b', 'ready')
  await vi.advanceTimersByTimeAsync(5000)
  expect(b.listeners.size).toBe(1)
  expect(listener.notices).toEqual([ACKNOWLEDGED, CHANGED])
  expect(listener.frames.map(({ kind }) => kind)).not.toContain('result')
  w.close()
})

test('a member that was down at the start is subscribed to later without a health event', async () => {
  const [a, b] = [changing('a'), changing('b')]
  b.turn('down')
  const w = workspaceOf([a, b])
  const listener = w.begin('subscriptions/listen', TOOLS)
  await vi.advanceTimersByTimeAsync(10)
  expect(listener.notices).toEqual([ACKNOWLEDGED])
  b.turn('up')
  await vi.advanceTimersByTimeAsync(40_000)
  expect(listener.notices).toEqual([ACKNOWLEDGED, CHANGED])
  w.close()
})

test('a member that ends its streams is subscribed to again; what it changed meanwhile is notified', async () => {
  const a = changing('a')
  const w = workspaceOf([a, changing('b')])
  await w.ask('tools/list')
  const listener = w.begin('subscriptions/listen', TOOLS)
  await vi.advanceTimersByTimeAsync(0)
  const endStream = async (): Promise<void> => {
    const [stream] = [...a.listeners]
    a.listeners.clear()
    void stream?.sink({ kind: 'result', result: Json.empty })
    await vi.advanceTimersByTimeAsync(5000)
    expect(a.listeners.size).toBe(1)
  }
  await endStream()
  expect(listener.notices).toEqual([ACKNOWLEDGED, CHANGED]) // the list was fetched before the client listened
  await endStream()
  expect(listener.notices).toEqual([ACKNOWLEDGED, CHANGED]) // the list is the same
  a.names.push('y')
  await endStream()
  expect(listener.notices).toEqual([ACKNOWLEDGED, CHANGED, CHANGED])
  w.close()
})

test('a subscription ends at every member when its client leaves or the workspace closes', async () => {
  const [a, b] = [changing('a'), changing('b')]
  const w = workspaceOf([a, b])
  const [one, two] = [w.begin('subscriptions/listen', TOOLS), w.begin('subscriptions/listen', TOOLS)]
  await vi.advanceTimersByTimeAsync(0)
  expect([a.listeners.size, b.listeners.size]).toEqual([2, 2])
  one.abort.abort({ kind: 'gone' })
  expect([a.listeners.size, b.listeners.size]).toEqual([1, 1])
  expect(w.watchers()).toBe(1)
  w.close()
  expect([a.listeners.size, b.listeners.size]).toEqual([0, 0])
  expect(two.frames.at(-1)?.kind).toBe('result')
  expect(w.watchers()).toBe(0)
  expect(vi.getTimerCount()).toBe(0)
})

test.each([1, 2])('a server learns that a client left while its session was being opened (%s members)', async count => {
  const dispatched: Exchange[] = []
  let opened: (peer: Peer) => void = () => {}
  const open = () => new Promise<Peer>(resolve => (opened = resolve))
  const slow = { ...changing('slow'), bridged: { open, close: async () => {} } }
  const w = workspaceOf([slow, changing('b')].slice(0, count))
  const listener = w.begin('subscriptions/listen', TOOLS, callerOf({ session: 's', revision: NEWEST_LEGACY }))
  await vi.advanceTimersByTimeAsync(0)
  listener.abort.abort({ kind: 'gone' })
  opened({ revision: NEWEST_LEGACY, asks: true, dispatch: exchange => void dispatched.push(exchange) })
  await vi.advanceTimersByTimeAsync(0)
  expect(dispatched.map(({ method, signal }) => [method, signal.reason?.kind])).toEqual([
    ['subscriptions/listen', 'gone'],
  ])
  w.close()
})

test('a session whose server session announces a change has its own list from then on', async () => {
  const own = new Map<string | undefined, string[]>()
  const a = scriptedMember('a', {
    revision: NEWEST_LEGACY,
    answers: { 'tools/list': (_, { caller }) => ({ tools: toolsOf('x', ...(own.get(caller.session) ?? [])) }) },
  })
  const w = workspaceOf([a, changing('b')])
  const [one, two] = [
    { session: 's1', revision: NEWEST_LEGACY },
    { session: 's2', revision: NEWEST_LEGACY },
  ]
  await w.ask('server/discover', {}, one)
  const listener = w.begin('subscriptions/listen', ALL, one)
  expect(toolsIn(await w.ask('tools/list', {}, one))).toEqual(['a__x', 'b__x'])
  own.set('s1', ['mine'])
  for (const exchange of a.listeners) void exchange.sink({ kind: 'notice', method: CHANGED, params: Json.empty })
  await vi.advanceTimersByTimeAsync(2000)
  expect(listener.notices).toContain(CHANGED)
  expect(toolsIn(await w.ask('tools/list', {}, one))).toEqual(['a__x', 'a__mine', 'b__x'])
  expect(toolsIn(await w.ask('tools/list', {}, two))).toEqual(['a__x', 'b__x'])
  await vi.advanceTimersByTimeAsync(2000)
  expect(toolsIn(await w.ask('tools/list', {}, two))).toEqual(['a__x', 'b__x'])
  w.close()
})

test('a change for one principal is not notified to another', async () => {
  const a = scriptedMember('a', {
    answers: { 'tools/list': (_, { caller }) => ({ tools: toolsOf(...(lists[caller.principal ?? ''] ?? [])) }) },
  })
  const lists: Record<string, string[]> = { ann: ['x'], bob: ['x'] }
  const w = workspaceOf([a, changing('b')])
  const [ann, bob] = [
    w.begin('subscriptions/listen', TOOLS),
    w.begin('subscriptions/listen', TOOLS, { principal: 'bob' }),
  ]
  await Promise.all([w.ask('tools/list'), w.ask('tools/list', {}, { principal: 'bob' })])
  await vi.advanceTimersByTimeAsync(2000)
  lists.ann?.push('y')
  a.say(CHANGED)
  await vi.advanceTimersByTimeAsync(2000)
  expect(ann.notices).toEqual([ACKNOWLEDGED, CHANGED])
  expect(bob.notices).toEqual([ACKNOWLEDGED])
  w.close()
})

test("updates are sent for acknowledged subscriptions, with the client's URI", async () => {
  const resources: PlainObject = { resources: [{ uri: 'test://a', name: 'a' }] }
  const [a, b] = ['a', 'b'].map(server =>
    scriptedMember(server, { answers: { 'resources/list': () => resources, 'resources/templates/list': () => ({}) } }),
  ) as [ReturnType<typeof scriptedMember>, ReturnType<typeof scriptedMember>]
  const w = workspaceOf([a, b])
  const alias = 'x-mcp-b+test://a'
  const listener = w.begin('subscriptions/listen', { notifications: { resourceSubscriptions: [alias, 'test://none'] } })
  await vi.advanceTimersByTimeAsync(10)
  expect(paramsOf(listener.frames[0])).toEqual({ notifications: { resourceSubscriptions: [alias] } })
  expect(a.listeners.size).toBe(0)
  expect([...b.listeners].map(({ params }) => params.toValue())).toEqual([
    { notifications: { resourceSubscriptions: ['test://a'] } },
  ])
  b.say(UPDATED, { uri: 'test://a' })
  b.say(UPDATED, { uri: 'test://other' })
  expect(listener.frames.slice(1).map(paramsOf)).toEqual([{ uri: alias }])
  w.close()
})

test("questions outside any call and log messages pass, and a question has the server's name", async () => {
  const a = changing('a')
  const w = workspaceOf([a, changing('b')])
  const listener = w.begin('subscriptions/listen', ALL, { revision: NEWEST_LEGACY, session: 's' })
  await vi.advanceTimersByTimeAsync(0)
  a.say('notifications/message', { level: 'info', data: 'hello' })
  const [stream] = [...a.listeners]
  const withdrawn = { reason: undefined, onAbort: () => () => {} }
  const params = Json.of({ message: 'Sure?', requestedSchema: {} })
  void stream?.sink({ kind: 'question', method: 'elicitation/create', params, withdrawn, answer: () => {} })
  expect(listener.notices).toContain('notifications/message')
  const asked = listener.frames.find(frame => frame.kind === 'question')
  expect(paramsOf(asked)).toMatchObject({ message: '[a] Sure?' })
  w.close()
})

test.each<PlainObject>([{}, { notifications: 1 }, { notifications: { resourceSubscriptions: 'x' } }])(
  'a listen that cannot be read (%j) is refused',
  async params => {
    const w = workspaceOf([changing('a')])
    expect(await w.ask('subscriptions/listen', params)).toMatchObject({ code: -32602 })
    w.close()
  },
)

test('a slow client gets one notification for all changes meanwhile', async () => {
  const a = changing('a')
  const w = workspaceOf([a, changing('b')])
  await w.ask('tools/list')
  const frames: Frame[] = []
  let read: () => void = () => {}
  w.dispatch({
    kind: 'request',
    method: 'subscriptions/listen',
    params: Json.of(TOOLS),
    caller: callerOf(),
    signal: { reason: undefined, onAbort: () => () => {} },
    sink: frame => {
      frames.push(frame)
      return new Promise<void>(resolve => {
        read = resolve
      })
    },
  })
  for (let i = 0; i < 5; i++) {
    await vi.advanceTimersByTimeAsync(2000)
    a.names.push(`t${i}`)
    a.say(CHANGED)
  }
  await vi.advanceTimersByTimeAsync(2000)
  expect(frames).toHaveLength(2)
  read()
  await vi.advanceTimersByTimeAsync(2000)
  expect(frames).toHaveLength(3)
  w.close()
})

const paramsOf = (frame: Frame | undefined): unknown =>
  frame?.kind === 'notice' || frame?.kind === 'question' ? frame.params.toValue() : undefined
