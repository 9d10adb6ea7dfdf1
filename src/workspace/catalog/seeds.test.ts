import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { type ScriptedMember, scriptedMember, toolsOf } from '../../../test/support/scripted-member.ts'
import { toolsIn, workspaceOf } from '../../../test/support/workspace.ts'
import type { Exchange } from '../../protocol/exchange.ts'
import { MODERN } from '../../protocol/revisions.ts'
import { Json, type PlainObject } from '../../wire/json/json.ts'
import type { LearntServer } from './learnt-server.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const CHANGED = 'notifications/tools/list_changed'
const LISTEN = { notifications: { toolsListChanged: true } }
const CALLED = { content: [] }

const learntWith = (...names: string[]): LearntServer => ({
  revision: MODERN,
  discovery: Json.of({ capabilities: { tools: {} }, instructions: `Learnt: ${names}.` }),
  lists: { tools: { items: toolsOf(...names).map(tool => ({ original: String(tool.name), native: Json.of(tool) })) } },
})

/** A member of which the gateway has learnt something; its own answers come when the test says so. */
const learntMember = (server: string, learnt: LearntServer | undefined, more: Partial<ScriptedMember> = {}) => {
  const held: (() => void)[] = []
  const listeners = new Set<() => void>()
  let known = learnt
  let list: (exchange: Exchange) => string[] = () => ['own']
  const answer = (_: Json, exchange: Exchange): Promise<PlainObject> =>
    new Promise(resolve => held.push(() => resolve({ tools: toolsOf(...list(exchange)) })))
  const member = scriptedMember(server, { answers: { 'tools/list': answer, 'tools/call': () => CALLED } })
  return {
    member: {
      ...member,
      ...more,
      learnt: {
        get: () => known,
        onLearnt: (listener: () => void) => {
          listeners.add(listener)
          return () => void listeners.delete(listener)
        },
      },
    },
    listeners,
    learn: (next: LearntServer) => {
      known = next
      for (const listener of listeners) listener()
    },
    answerAll: (names: typeof list) => {
      list = names
      for (const release of held.splice(0)) release()
    },
  }
}

/** The answer within the moment that a caller's own list has. */
const soon = async <T>(work: Promise<T>): Promise<T> => {
  await vi.advanceTimersByTimeAsync(25)
  return work
}

test('every principal gets what was learnt at first, and then its own list, which no other principal gets', async () => {
  const { member, answerAll } = learntMember('a', learntWith('x', 'y'))
  const w = workspaceOf([member], { names: 'prefix' })
  const ask = (principal?: string) => w.ask('tools/list', {}, { principal })
  expect(toolsIn(await soon(ask('ann')))).toEqual(['a__x', 'a__y'])
  answerAll(({ caller }) => ['x', `for_${caller.principal}`])
  await vi.advanceTimersByTimeAsync(0)
  expect(toolsIn(await ask('ann'))).toEqual(['a__x', 'a__for_ann'])
  expect(toolsIn(await soon(ask('bob')))).toEqual(['a__x', 'a__y'])
  expect(toolsIn(await soon(ask()))).toEqual(['a__x', 'a__y'])
  w.close()
})

test('what was learnt is shown with the rules and overlays of the workspace', async () => {
  const overlays = new Map([['x', { name: 'renamed', hidden: false, fixed: {}, defaults: {} }]])
  const { member } = learntMember('a', learntWith('x', 'y', 'z'), { overlays })
  const policy = { allow: {}, deny: { tools: ['a/y'] }, readOnly: false }
  const w = workspaceOf([member], { names: 'prefix', policy })
  expect(toolsIn(await soon(w.ask('tools/list')))).toEqual(['a__renamed', 'a__z'])
  const token = { allow: {}, deny: { tools: ['a/z'] }, readOnly: false }
  expect(toolsIn(await soon(w.ask('tools/list', {}, { policy: token })))).toEqual(['a__renamed'])
  w.close()
})

test('a client that waits gets what is learnt meanwhile, and progress if it asked for it', async () => {
  const [a, b] = [learntMember('a', undefined), learntMember('b', undefined)]
  const w = workspaceOf([a.member, b.member])
  const asked = w.begin('tools/list', { _meta: { progressToken: 7 } })
  const quiet = w.begin('tools/list')
  await vi.advanceTimersByTimeAsync(3000)
  a.learn(learntWith('x'))
  await vi.advanceTimersByTimeAsync(3000)
  b.learn(learntWith('y'))
  await vi.advanceTimersByTimeAsync(0)
  const values = asked.frames.map(frame => ('params' in frame ? frame.params.toValue() : frame.kind))
  expect(values).toEqual([
    { progressToken: 7, progress: 0, total: 2, message: 'Waiting for "a", "b" to start' },
    { progressToken: 7, progress: 1, total: 2, message: 'Waiting for "b" to start' },
    'result',
  ])
  expect(quiet.frames.map(({ kind }) => kind)).toEqual(['result'])
  w.close()
  expect([a.listeners.size, b.listeners.size]).toEqual([0, 0])
})

test('a client that was answered without a server is told when it is learnt', async () => {
  const { member, learn } = learntMember('a', undefined)
  const w = workspaceOf([member])
  const listener = w.begin('subscriptions/listen', LISTEN)
  const asking = w.ask('tools/list')
  await vi.advanceTimersByTimeAsync(12_000)
  expect(toolsIn(await asking)).toEqual([])
  learn(learntWith('x'))
  await vi.advanceTimersByTimeAsync(200)
  expect(listener.notices.slice(1)).toEqual([CHANGED])
  expect(toolsIn(await soon(w.ask('tools/list')))).toEqual(['x'])
  w.close()
})

test('the first handshake has the instructions that were learnt', async () => {
  const members = ['a', 'b', 'c'].map(server => {
    const { member } = learntMember(server, learntWith(server))
    return { ...member, native: { ...member.native, open: () => new Promise<never>(() => {}) } }
  })
  const w = workspaceOf(members)
  const { instructions } = await soon(w.ask('server/discover', {}, { revision: '2025-06-18' }))
  expect(String(instructions).match(/Learnt: ./g)).toHaveLength(3)
  w.close()
})

test('nothing is shown of a server that is down before its first list', async () => {
  const { member } = learntMember('a', learntWith('x'), { isUp: () => false })
  const w = workspaceOf([member])
  expect(toolsIn(await w.ask('tools/list'))).toEqual([])
  w.close()
})

test('a call finds its server by what was learnt, and fetches no list', async () => {
  const [a, b] = [learntMember('a', learntWith('x')), learntMember('b', learntWith('y'))]
  const w = workspaceOf([a.member, b.member], { names: 'plain' })
  expect(await w.ask('tools/call', { name: 'y', arguments: {} })).toEqual(CALLED)
  expect([a.member.asked, b.member.count('tools/list')]).toEqual([[], 0])
  w.close()
})

test('what was learnt a moment ago is not fetched again where that could start a process', async () => {
  const hints = { fetchedAt: Date.now(), ttlMs: undefined, isPublic: false }
  const learnt = learntWith('x')
  const lists = { tools: { items: learnt.lists.tools?.items ?? [], hints } }
  const { member } = learntMember('a', { ...learnt, lists }, { isRemote: false, isProcess: true })
  const w = workspaceOf([member])
  expect(toolsIn(await w.ask('tools/list'))).toEqual(['x'])
  expect(member.count('tools/list')).toBe(0)
  const sampling = { capabilities: Json.of({ sampling: {} }) }
  expect(toolsIn(await w.ask('tools/list', {}, sampling))).toEqual(['x'])
  expect(member.count('tools/list')).toBe(0) // the client has its answer first
  await vi.advanceTimersByTimeAsync(100)
  expect(member.count('tools/list')).toBe(1)
  await vi.advanceTimersByTimeAsync(61_000)
  expect(toolsIn(await w.ask('tools/list'))).toEqual(['x'])
  await vi.advanceTimersByTimeAsync(100)
  expect(member.count('tools/list')).toBe(2)
  w.close()
})

test('a caller without capabilities gets what the gateway learnt, not what its principal was sent with others', async () => {
  const { member, answerAll } = learntMember('a', learntWith('x'))
  const w = workspaceOf([member])
  const [sampling, roots] = [{ capabilities: Json.of({ sampling: {} }) }, { capabilities: Json.of({ roots: {} }) }]
  await soon(w.ask('tools/list', {}, sampling))
  answerAll(() => ['x', 'sample'])
  await vi.advanceTimersByTimeAsync(0)
  expect(toolsIn(await soon(w.ask('tools/list', {}, roots)))).toEqual(['x', 'sample'])
  expect(toolsIn(await soon(w.ask('tools/list')))).toEqual(['x'])
  w.close()
})
