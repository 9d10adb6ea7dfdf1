import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { PROCESS, REMOTE } from '../../test/support/health.ts'
import { createTestLog } from '../../test/support/log.ts'
import { toolsOf } from '../../test/support/scripted-member.ts'
import type { ServerConfig } from '../config/snapshot.ts'
import { gatewayCaller } from '../health/probe-server.ts'
import type { Caller, Peer, Upstream } from '../protocol/exchange.ts'
import { MODERN } from '../protocol/revisions.ts'
import { Json } from '../wire/json/json.ts'
import { publicKeyOf } from '../workspace/catalog/cache-owner.ts'
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
    ['belongs to another entry', (text: string) => text.replace(/"fingerprint":"./, '"fingerprint":"')],
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

test.each<[string, ServerConfig, number]>([
  ['ten minutes', REMOTE, 10],
  ['a day, if it has to be started,', PROCESS, 24 * 60],
])('a server is read again when a caller is served from what is %s old', async (_, config, minutes) => {
  const { servers } = start()
  let tools = ['a']
  const peer = peerOf(() => tools)
  const access = servers.accessTo(
    config,
    upstreamOf(() => peer),
  )
  await access?.readLists(peer, SELF, DISCOVERED)
  tools = ['b']
  await vi.advanceTimersByTimeAsync((minutes - 1) * 60_000)
  expect(access && namesIn(access.source)).toEqual(['a'])
  await vi.advanceTimersByTimeAsync(2 * 60_000)
  expect(access && namesIn(access.source)).toEqual(['a'])
  await vi.advanceTimersByTimeAsync(0)
  expect(access && namesIn(access.source)).toEqual(['b'])
})

describe('a process that lists by capabilities', () => {
  const SAMPLING = { revision: MODERN, capabilities: Json.of({ sampling: {} }) }
  const ROOTS = { revision: MODERN, capabilities: Json.of({ roots: {} }) }
  const KEYS = [SAMPLING, ROOTS].map(publicKeyOf)

  /** A server with one more tool for clients that can sample. */
  const setup = async (given: ReturnType<typeof storeOf>, plain: readonly string[]) => {
    const opened: Caller[] = []
    const { servers, ...rest } = start(given)
    await servers.load([PROCESS])
    const upstream = upstreamOf(caller => {
      opened.push(caller)
      return peerOf(() => (caller.capabilities.has('sampling') ? [...plain, 'sample'] : plain))
    })
    const { source, readLists } = servers.accessTo(PROCESS, upstream) as NonNullable<
      ReturnType<LearntServers['accessTo']>
    >
    const byClient = source.byClient as NonNullable<typeof source.byClient>
    const namesFor = () =>
      KEYS.map(key =>
        byClient
          .get(key)
          ?.lists.tools?.items.map(({ original }) => original)
          .join(' '),
      )
    const learnAll = async () => {
      for (const client of [SAMPLING, ROOTS, SAMPLING]) byClient.learn(client)
      await vi.advanceTimersByTimeAsync(0)
    }
    const read = () =>
      readLists(
        peerOf(() => plain),
        SELF,
        DISCOVERED,
      )
    return { ...rest, servers, opened, source, byClient, namesFor, learnAll, read }
  }

  test('is read once for each set, also across restarts, and again after its plain list has changed', async () => {
    const given = storeOf()
    const first = await setup(given, ['a'])
    await first.learnAll()
    expect(first.opened).toEqual([]) // nothing is known of it: the client itself has to ask
    await first.read()
    const told = vi.fn()
    first.source.onLearnt(told)
    await first.learnAll()
    await first.learnAll()
    expect(first.namesFor()).toEqual(['a sample', 'a'])
    expect(first.opened.map(({ capabilities }) => `${capabilities}`)).toEqual(['{"sampling":{}}', '{"roots":{}}'])
    for (const { principal, isHealthCheck } of first.opened)
      expect([principal, isHealthCheck]).toEqual([undefined, undefined])
    expect(told).toHaveBeenCalledTimes(2)
    await first.servers.close()

    const second = await setup(given, ['a'])
    expect(second.namesFor()).toEqual(['a sample', 'a'])
    expect(second.byClient.get(KEYS[0] ?? '')?.lists.tools?.hints).toBeUndefined() // not confirmed yet
    await second.read()
    await second.learnAll()
    expect(second.byClient.get(KEYS[0] ?? '')?.lists.tools?.hints).toBeDefined()
    expect(second.opened).toEqual([])
    await second.servers.close()

    const third = await setup(given, ['b'])
    await third.read()
    await vi.advanceTimersByTimeAsync(0)
    expect(third.namesFor()).toEqual(['b sample', 'b'])
  })

  test('and cannot be read is tried again after ten minutes', async () => {
    const { servers } = start()
    let tries = 0
    const upstream = upstreamOf(() => {
      tries++
      throw new Error('no')
    })
    const access = servers.accessTo(PROCESS, upstream)
    const readAgain = async () => {
      access?.source.byClient?.learn(ROOTS)
      await vi.advanceTimersByTimeAsync(0)
    }
    await access?.readLists(
      peerOf(() => ['a']),
      SELF,
      DISCOVERED,
    )
    await readAgain()
    await readAgain()
    expect(tries).toBe(1)
    await vi.advanceTimersByTimeAsync(10 * 60_000)
    await readAgain()
    expect(tries).toBe(2)
  })
})
