import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { PROCESS, REMOTE } from '../../test/support/health.ts'
import { createTestLog } from '../../test/support/log.ts'
import { toolsOf } from '../../test/support/scripted-member.ts'
import type { ServerConfig } from '../config/snapshot.ts'
import { gatewayCaller } from '../health/probe-server.ts'
import type { Caller, Peer, Upstream } from '../protocol/exchange.ts'
import { MODERN } from '../protocol/revisions.ts'
import { Json } from '../wire/json/json.ts'
import { LearntServers } from './learnt-servers.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const SELF = gatewayCaller(Json.of({ name: 'test' }))
const DISCOVERED = Json.of({ capabilities: { tools: {} }, instructions: 'be kind' })

/** A process that lists these tools. */
const peerOf = (tools: () => readonly string[], more: { hasServedUsers?: boolean } = {}): Peer =>
  Object.assign(more, {
    revision: MODERN,
    asks: false,
    dispatch: ({ method, sink }: Parameters<Peer['dispatch']>[0]) =>
      void sink({
        kind: 'result',
        result: method === 'tools/list' ? Json.of({ tools: toolsOf(...tools()) }) : DISCOVERED,
      }),
  })

const upstreamOf = (open: (caller: Caller) => Peer): Upstream => ({
  open: async caller => open(caller),
  close: async () => {},
})

const NEVER = upstreamOf(() => {
  throw new Error('not to be opened')
})

/** A store in memory. */
const storeOf = () => {
  const texts = new Map<string, Buffer>()
  let saves = 0
  const store = {
    load: async (key: string) => texts.get(key),
    save: async (key: string, bytes: Buffer) => {
      saves++
      texts.set(key, bytes)
    },
  }
  return { store, texts, saves: () => saves }
}

const start = (given = storeOf()) => {
  const { log, lines } = createTestLog()
  return { ...given, lines, servers: new LearntServers(given.store, log) }
}

const namesIn = (source: { get(): ReturnType<NonNullable<ReturnType<LearntServers['accessTo']>>['source']['get']> }) =>
  source.get()?.lists.tools?.items.map(({ original }) => original)

test.each<[string, ServerConfig]>([
  ['a remote server with headers per caller', { ...REMOTE, personal: { values: {} } } as ServerConfig],
  ['a process with variables per caller', { ...PROCESS, personal: { values: {} } } as ServerConfig],
  ['a built-in server', { name: 'x', disabled: false, kind: 'builtin', builtin: 'demo' }],
  ['a server of the embedding program', { name: 'x', disabled: false, kind: 'embedded', upstream: NEVER }],
])('%s is never learnt', (_, config) => {
  const { servers } = start()
  expect(servers.accessTo(config, NEVER)).toBeUndefined()
  servers.keepOnly([config])
})

describe('what was read', () => {
  const learn = async (given?: ReturnType<typeof storeOf>) => {
    const started = start(given)
    const access = started.servers.accessTo(PROCESS, NEVER)
    await access?.readLists(
      peerOf(() => ['a', 'b']),
      SELF,
      DISCOVERED,
    )
    return { ...started, source: access?.source as NonNullable<typeof access>['source'] }
  }

  test('is there for listeners at once, and stored a moment later', async () => {
    const { source, servers, saves } = await learn()
    expect(namesIn(source)).toEqual(['a', 'b'])
    expect(saves()).toBe(0)
    await vi.advanceTimersByTimeAsync(500)
    expect(saves()).toBe(1)
    await servers.close()
    expect(saves()).toBe(1)
  })

  test('is stored when the gateway closes, and again only if it has changed', async () => {
    const first = await learn()
    await first.servers.close()
    const { store, texts } = first
    const again = start({ store, texts, saves: first.saves })
    await again.servers.load([PROCESS])
    const access = again.servers.accessTo(PROCESS, NEVER)
    expect(access && namesIn(access.source)).toEqual(['a', 'b'])
    let tools = ['a', 'b']
    const read = () =>
      access?.readLists(
        peerOf(() => tools),
        SELF,
        DISCOVERED,
      )
    await read()
    await again.servers.close()
    expect(first.saves()).toBe(1)
    tools = ['a', 'c']
    await read()
    await again.servers.close()
    expect(first.saves()).toBe(2)
  })

  test('keeps every member and number as the server wrote it', async () => {
    const { servers, store, texts } = start()
    const access = servers.accessTo(PROCESS, NEVER)
    const listed = '{"tools":[{"name":"a","inputSchema":{"maximum":12345678901234567890,"x":1.0},"later":[null]}]}'
    const result = Json.parse(Buffer.from(listed))
    const peer = peerOf(() => [])
    const dispatch: Peer['dispatch'] = exchange =>
      exchange.method === 'tools/list' ? void exchange.sink({ kind: 'result', result }) : peer.dispatch(exchange)
    await access?.readLists({ ...peer, dispatch }, SELF, DISCOVERED)
    await servers.close()
    const again = new LearntServers(store, createTestLog().log)
    await again.load([PROCESS])
    const item = again.accessTo(PROCESS, NEVER)?.source.get()?.lists.tools?.items[0]?.native
    expect(`{"tools":[${item}]}`).toBe(listed)
    expect(texts.size).toBe(1)
  })

  test.each([
    ['an entry with another argument', { ...PROCESS, args: ['-v'] }],
    ['an entry with another variable', { ...PROCESS, env: { TOKEN: 'x' } }],
    ['an entry of another name', { ...PROCESS, name: 'y' }],
  ])('is not used for %s', async (_, config) => {
    const { servers, store, texts, saves } = await learn()
    await servers.close()
    const again = start({ store, texts, saves })
    await again.servers.load([config])
    expect(again.servers.accessTo(config, NEVER)?.source.get()).toBeUndefined()
  })

  test.each([
    ['is cut off', (text: string) => text.slice(0, -20)],
    ['has a newer format', (text: string) => text.replace('"format":1', '"format":2')],
    ['belongs to another entry', (text: string) => text.replace(/"fingerprint":"./, '"fingerprint":"_')],
    ['is of another program', () => '{"tools":[]}'],
    ['lacks members', (text: string) => text.replace('"lists"', '"others"')],
    ['has an unknown revision', (text: string) => text.replace('2026-07-28', 'tomorrow')],
  ])('and %s is ignored with one line in the log', async (_, damage) => {
    const { servers, store, texts, saves } = await learn()
    await servers.close()
    for (const [key, bytes] of texts) texts.set(key, Buffer.from(damage(bytes.toString())))
    const again = start({ store, texts, saves })
    await again.servers.load([PROCESS])
    expect(again.servers.accessTo(PROCESS, NEVER)?.source.get()).toBeUndefined()
    expect(again.lines).toMatchObject([{ level: 'warn', fields: { server: 'x', reason: expect.any(String) } }])
  })
})

describe('a process that a user has used', () => {
  const setup = (users: { hasServedUsers?: boolean }) => {
    const opened: Caller[] = []
    const used = peerOf(() => ['shared', 'secret of Ann'], users)
    const { servers } = start()
    const upstream = upstreamOf(caller => {
      opened.push(caller)
      return caller.isHealthCheck ? used : peerOf(() => ['shared'], { hasServedUsers: true })
    })
    const access = servers.accessTo(PROCESS, upstream)
    return { opened, used, access: access as NonNullable<typeof access> }
  }

  test('is not learnt from; a process of its own is read instead', async () => {
    const { opened, used, access } = setup({ hasServedUsers: true })
    await access.readLists(used, SELF, DISCOVERED)
    await vi.advanceTimersByTimeAsync(0)
    expect(namesIn(access.source)).toEqual(['shared'])
    const { principal, session, isHealthCheck } = opened.at(-1) as Caller
    expect([principal, session, isHealthCheck]).toEqual([undefined, undefined, undefined])
  })

  test('while it was read is not learnt from either', async () => {
    const users = { hasServedUsers: false }
    const { used, access } = setup(users)
    const reading = access.readLists(used, SELF, DISCOVERED)
    users.hasServedUsers = true
    Object.assign(used, users)
    await reading
    expect(access.source.get()).toBeUndefined()
    await vi.advanceTimersByTimeAsync(0)
    expect(namesIn(access.source)).toEqual(['shared'])
  })
})

test('a server is read again when a caller is served from what is ten minutes old', async () => {
  const { servers } = start()
  let tools = ['a']
  const peer = peerOf(() => tools)
  const access = servers.accessTo(
    PROCESS,
    upstreamOf(() => peer),
  )
  await access?.readLists(peer, SELF, DISCOVERED)
  tools = ['b']
  await vi.advanceTimersByTimeAsync(9 * 60_000)
  expect(access && namesIn(access.source)).toEqual(['a'])
  await vi.advanceTimersByTimeAsync(2 * 60_000)
  expect(access && namesIn(access.source)).toEqual(['a'])
  await vi.advanceTimersByTimeAsync(0)
  expect(access && namesIn(access.source)).toEqual(['b'])
})
