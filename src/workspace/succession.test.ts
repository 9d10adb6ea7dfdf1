import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { scriptedMember, toolsOf } from '../../test/support/scripted-member.ts'
import { CURSOR_KEYS, callerOf, toolsIn, workspaceOf } from '../../test/support/workspace.ts'
import { defaultRules } from '../config/snapshot.ts'
import { Abort } from '../protocol/cancellation.ts'
import { EVERYTHING } from '../protocol/policy.ts'
import { NEWEST_LEGACY } from '../protocol/revisions.ts'
import { SILENT } from '../telemetry/log.ts'
import { Json } from '../wire/json/json.ts'
import { openWorkspace } from './workspace.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void
const isGone = (reference: WeakRef<object>): boolean => {
  collect()
  return reference.deref() === undefined
}

const CHANGED = 'notifications/tools/list_changed'
const listing = (server: string, ...names: string[]) =>
  scriptedMember(server, { answers: { 'tools/list': () => ({ tools: toolsOf(...names) }) } })

/** A workspace that took the place of another while one of its two servers was down. */
const succeedWhileDown = async () => {
  const [a, b] = [listing('a', 'x'), listing('b', 'y')]
  const before = workspaceOf([a, b])
  await before.ask('tools/list')
  b.turn('down')
  before.say('b', 'down')
  await vi.advanceTimersByTimeAsync(60_000)
  const after = workspaceOf([a, b], {}, { previous: before })
  before.close()
  return { a, b, after }
}

test('a server that was down during a configuration change is announced when it is back', async () => {
  const { b, after } = await succeedWhileDown()
  const listener = after.begin('subscriptions/listen', { notifications: { toolsListChanged: true } })
  await vi.advanceTimersByTimeAsync(5000)
  b.turn('up')
  after.say('b', 'ready')
  await vi.advanceTimersByTimeAsync(5000)
  expect(listener.notices.filter(method => method === CHANGED)).toEqual([CHANGED])
  after.close()
})

test('the list of a server that was down during a configuration change expires as before', async () => {
  const { after } = await succeedWhileDown()
  expect(toolsIn(await after.ask('tools/list'))).toEqual(['a__x', 'b__y'])
  await vi.advanceTimersByTimeAsync(9 * 60_000 - 1000)
  expect(toolsIn(await after.ask('tools/list'))).toEqual(['a__x', 'b__y'])
  await vi.advanceTimersByTimeAsync(2000)
  const list = await after.ask('tools/list')
  expect(toolsIn(list)).toEqual(['a__x'])
  expect(list).toMatchObject({ _meta: { 'dragoman/unavailable': ['b'] } })
  after.close()
})

test('after a configuration change, links still lead to their server', async () => {
  const link = { content: [{ type: 'resource_link', uri: 'x://1', name: 'n' }] }
  const having = (server: string) =>
    scriptedMember(server, {
      answers: {
        'tools/list': () => ({ tools: toolsOf('give') }),
        'tools/call': () => link,
        'resources/read': () => ({ contents: [{ uri: 'x://1', text: server }] }),
      },
    })
  const [a, b] = [having('a'), having('b')]
  const before = workspaceOf([a, b])
  await before.ask('tools/call', { name: 'b__give' })
  const after = workspaceOf([a, b, listing('c', 'x')], {}, { previous: before })
  before.close()
  expect(await after.ask('resources/read', { uri: 'x://1' })).toMatchObject({ contents: [{ text: 'b' }] })
  expect(await after.ask('resources/read', { uri: 'x://1' }, { principal: 'bob' })).toMatchObject({
    contents: [{ text: 'a' }],
  })
  after.close()
})

test('after a configuration change, a session keeps its own list until it ends', async () => {
  const a = scriptedMember('a', {
    revision: NEWEST_LEGACY,
    answers: {
      'tools/list': (_, { caller }) => ({ tools: toolsOf('x', ...(caller.session === 's' && isIn ? ['mine'] : [])) }),
    },
  })
  let isIn = false
  const [session, other] = [
    { session: 's', revision: NEWEST_LEGACY },
    { session: 't', revision: NEWEST_LEGACY },
  ]
  const before = workspaceOf([a, listing('b', 'y')])
  const wanted = { notifications: { toolsListChanged: true } }
  await before.ask('server/discover', {}, other)
  before.begin('subscriptions/listen', wanted, session)
  await before.ask('tools/list', {}, other)
  isIn = true
  a.say(CHANGED)
  await vi.advanceTimersByTimeAsync(2000)
  const after = workspaceOf([a, listing('b', 'y')], {}, { previous: before })
  const listener = after.begin('subscriptions/listen', wanted, session)
  before.close()
  expect(toolsIn(await after.ask('tools/list', {}, session))).toContain('a__mine')
  expect(toolsIn(await after.ask('tools/list', {}, other))).not.toContain('a__mine')
  listener.abort.abort({ kind: 'gone' })
  expect(after.catalog?.hasSessionLists(callerOf(session))).toBe(false)
  after.close()
})

test('a workspace of one server without rules does not keep the previous one in memory', async () => {
  vi.useRealTimers()
  const a = listing('a', 'x')
  const config = { name: 'w', servers: ['a'], ...defaultRules(1) }
  const open = (before?: ReturnType<typeof openWorkspace>) =>
    openWorkspace(config, [a], { log: SILENT, identity: Json.empty, cursorKeys: CURSOR_KEYS, previous: before })
  const list = (workspace: ReturnType<typeof openWorkspace>) =>
    new Promise(resolve => {
      const exchange = { kind: 'request' as const, method: 'tools/list', params: Json.empty, signal: new Abort() }
      workspace.dispatch({ ...exchange, caller: callerOf({ policy: { ...EVERYTHING } }), sink: resolve as () => void })
    })
  const succession = async () => {
    const first = open()
    await list(first)
    const second = open(first)
    first.close()
    return { first: new WeakRef(first), second }
  }
  const { first, second } = await succession()
  await expect.poll(() => isGone(first)).toBe(true)
  expect(toolsIn(((await list(second)) as { result: Json }).result.toValue() as Record<string, unknown>)).toEqual(['x'])
  expect(a.count('tools/list')).toBe(1)
  second.close()
})
