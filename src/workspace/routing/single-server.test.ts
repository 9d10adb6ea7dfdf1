import { expect, test, vi } from 'vitest'
import { callerOf, talk } from '../../../test/support/embedded.ts'
import { Abort } from '../../protocol/cancellation.ts'
import type { Caller, Dispatch, Exchange, Frame, Upstream } from '../../protocol/exchange.ts'
import { SILENT } from '../../telemetry/log.ts'
import { Json, type PlainObject } from '../../wire/json/json.ts'
import type { Member } from '../member.ts'
import { createSingleServerRoute } from './single-server.ts'

const memberOf = (upstream: Upstream): Member => ({
  server: 'github',
  bridged: upstream,
  native: upstream,
  isRemote: true,
  isProcess: false,
  overlays: new Map(),
  isUp: () => true,
})

/** A server that lists the given names, answers with the called name, and keeps its listeners. */
const scripted = (pages: string[][]) => {
  const lists: Caller[] = []
  const listeners: Exchange[] = []
  const dispatch: Dispatch = exchange => {
    const { method, params, sink } = exchange
    if (method === 'subscriptions/listen') return void listeners.push(exchange)
    if (method.endsWith('/list')) {
      lists.push(exchange.caller)
      const page = Number(params.get('cursor')?.asString() ?? 0)
      const items = (pages[page] ?? []).map(name => ({ name }))
      const more: PlainObject = page + 1 < pages.length ? { nextCursor: String(page + 1) } : {}
      return void sink({ kind: 'result', result: Json.of({ [method.slice(0, method.indexOf('/'))]: items, ...more }) })
    }
    return void sink({ kind: 'result', result: Json.of({ called: params.get('name') ?? null }) })
  }
  const upstream: Upstream = {
    open: async caller => ({ revision: caller.revision, asks: false, dispatch }),
    close: async () => {},
  }
  const { dispatch: route } = createSingleServerRoute(memberOf(upstream), SILENT)
  const routed: Upstream = {
    open: async caller => ({ revision: caller.revision, asks: false, dispatch: route }),
    close: async () => {},
  }
  const call = async (name: string, caller: Partial<Caller> = { principal: 'ada' }, method = 'tools/call') =>
    ((await (await talk(routed, method, { name }, { caller })).result()) as { called: string }).called
  const listen = async () => {
    await talk(routed, 'subscriptions/listen', {}, { caller: { principal: 'ada' } })
    return (frame: Frame) => listeners.at(-1)?.sink(frame)
  }
  return { call, listen, lists, pages, route }
}

test('the bare name, <server>__name and <server>/name all mean the same tool', async () => {
  const { call } = scripted([['list_issues']])
  for (const name of ['list_issues', 'github__list_issues', 'github/list_issues'])
    expect(await call(name)).toBe('list_issues')
})

test('prompts have the same forms', async () => {
  const { call } = scripted([['greet']])
  expect(await call('github/greet', {}, 'prompts/get')).toBe('greet')
  expect(await call('github/greet', {}, 'acme/call')).toBe('github/greet')
})

test("a listed name that starts with the server's name is kept, whatever page it is on", async () => {
  const { call } = scripted([['github__search'], ['github/x']])
  expect(await call('github__search')).toBe('github__search')
  expect(await call('github/x')).toBe('github/x')
  expect(await call('github/search')).toBe('search')
})

test('other names fetch no list, and one list is cached for a caller', async () => {
  const { call, lists } = scripted([['list_issues']])
  await call('list_issues')
  await call('other__x')
  expect(lists).toEqual([])
  await call('github/a')
  await call('github/b')
  expect(lists).toHaveLength(1)
  await call('github/a', { principal: 'bob' })
  expect(lists.map(({ principal }) => principal)).toEqual(['ada', 'bob'])
  await call('github/a', { principal: undefined })
  await call('github/a', { principal: undefined })
  expect(lists).toHaveLength(4) // an anonymous caller has no cache
})

test('the cache is cleared by a change notification, or after a minute', async () => {
  vi.useFakeTimers({ toFake: ['Date'] })
  const { call, listen, pages } = scripted([['x']])
  const say = await listen()
  expect(await call('github/x')).toBe('x')
  pages[0] = ['github/x']
  expect(await call('github/x')).toBe('x')
  void say({ kind: 'notice', method: 'notifications/tools/list_changed', params: Json.empty })
  expect(await call('github/x')).toBe('github/x')
  pages[0] = ['x']
  vi.advanceTimersByTime(60_000)
  expect(await call('github/x')).toBe('x')
  vi.useRealTimers()
})

test('a call cancelled while its name is looked up is not sent', async () => {
  const { route, lists } = scripted([['x']])
  const abort = new Abort()
  const frames: Frame[] = []
  const params = Json.of({ name: 'github/x' })
  const caller = callerOf({ principal: 'ada' })
  const sink = (frame: Frame) => void frames.push(frame)
  route({ kind: 'request', method: 'tools/call', params, caller, signal: abort, sink })
  abort.abort({ kind: 'gone' })
  await expect.poll(() => lists.length).toBe(1)
  route({ kind: 'request', method: 'tools/call', params, caller, signal: new Abort(), sink })
  await expect.poll(() => frames.length).toBe(1)
})

test('a server whose list fails is called by the bare name', async () => {
  const { dispatch: route } = createSingleServerRoute(memberOf(failing()), SILENT)
  const routed: Upstream = {
    open: async caller => ({ revision: caller.revision, asks: false, dispatch: route }),
    close: async () => {},
  }
  expect(await (await talk(routed, 'tools/call', { name: 'github/x' })).result()).toEqual({ called: 'x' })
})

const failing = (): Upstream => ({
  open: async caller => ({
    revision: caller.revision,
    asks: false,
    dispatch: ({ method, params, sink }) =>
      void sink(
        method === 'tools/list'
          ? { kind: 'failure', error: { code: -32601, message: 'no' } }
          : { kind: 'result', result: Json.of({ called: params.get('name') ?? null }) },
      ),
  }),
  close: async () => {},
})
