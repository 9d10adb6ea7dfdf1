import { request } from 'node:http'
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import {
  answerEmpty,
  type Front,
  rpcInitialize,
  rpcRequest,
  type Script,
  startFront,
} from '../../../test/support/front.ts'
import { openSession, openStream, send } from '../../../test/support/raw.ts'
import type { Exchange } from '../../protocol/exchange.ts'
import { MemoryCluster } from '../../stores/state/memory-state.ts'
import { randomKeys } from '../../stores/state/secret.ts'
import { StateError, type StateStore } from '../../stores/state/state-store.ts'
import { Json } from '../../wire/json/json.ts'
import { mintId } from '../../wire/sealed-id.ts'

type FrontOptions = NonNullable<Parameters<typeof startFront>[1]>

const SCRIPT: Script = {
  'tools/call': answerEmpty,
  'logging/setLevel': answerEmpty,
  'resources/subscribe': answerEmpty,
  'resources/unsubscribe': answerEmpty,
}
const DISCOVERED = Json.of({
  capabilities: { tools: { listChanged: true }, prompts: { listChanged: true }, resources: {} },
})
const fronts: Front[] = []
let cluster = new MemoryCluster()
let keys = randomKeys()

afterEach(async () => {
  for (const front of fronts.splice(0)) await front.close()
  cluster = new MemoryCluster()
  keys = randomKeys()
})

/** Counts what is asked of a store. */
const counted = (store: StateStore) => {
  const calls: string[] = []
  const count = new Proxy(store, {
    get: (target, name) => {
      const value = Reflect.get(target, name)
      if (typeof value !== 'function') return value
      return (...args: unknown[]) => {
        calls.push(String(name))
        return value.apply(target, args)
      }
    },
  })
  return { store: count, calls }
}

const start = async (options: FrontOptions = {}, script: Script = SCRIPT): Promise<Front & { replica: string }> => {
  const store = options.state?.store ?? cluster.join()
  const front = await startFront(script, { ...options, state: { store, keys } })
  fronts.push(front)
  return { ...front, replica: store.members.self }
}

const crash = async (front: Front & { replica: string }): Promise<void> => {
  cluster.kill(front.replica)
  await front.kill()
}

const call = (
  front: Front,
  headers: Record<string, string>,
  method = 'tools/call',
  params: object = { name: 'echo' },
) => send(front.url, { headers, body: rpcRequest(1, method, params) })

test.each(['a crash', 'a planned stop'])('a session goes on after %s', async how => {
  const first = await start()
  const { headers } = await openSession(first.url, '2025-06-18', { roots: { listChanged: true } })
  await call(first, headers, 'logging/setLevel', { level: 'error' })
  await call(first, headers, 'resources/subscribe', { uri: 'file:///a' })
  await call(first, headers, 'resources/subscribe', { uri: 'file:///b' })
  await call(first, headers, 'resources/unsubscribe', { uri: 'file:///a' })
  if (how === 'a crash') await crash(first)
  else await first.close()

  const second = await start()
  expect((await call(second, headers)).status).toBe(200)
  expect(second.last('tools/call').caller).toMatchObject({
    principal: 'local',
    workspace: 'default',
    revision: '2025-06-18',
    logLevel: 'error',
    session: headers['mcp-session-id'],
  })
  const { capabilities, info } = second.last('tools/call').caller
  expect([String(capabilities), String(info)]).toEqual([
    '{"roots":{"listChanged":true}}',
    '{"name":"test","version":"1"}',
  ])
  await second.whenSeen('subscriptions/listen')
  expect(String((await second.whenSeen('logging/setLevel')).params)).toBe('{"level":"error"}')
  expect(String((await second.whenSeen('resources/subscribe')).params)).toBe('{"uri":"file:///b"}')
})

test('a revived session announces each list and each subscribed resource once', async () => {
  const discover: Script['server/discover'] = exchange => exchange.sink({ kind: 'result', result: DISCOVERED })
  const first = await start({}, { ...SCRIPT, 'server/discover': discover })
  const { headers } = await openSession(first.url)
  await call(first, headers, 'resources/subscribe', { uri: 'file:///a' })
  await call(first, headers, 'resources/subscribe', { uri: 'file:///a' })
  await crash(first)
  const second = await start({}, { ...SCRIPT, 'server/discover': discover })
  await call(second, headers)
  const stream = await openStream(second.url, { method: 'GET', headers: { ...headers, accept: 'text/event-stream' } })
  const events = [await stream.next(), await stream.next(), await stream.next()].map(event => event?.json)
  expect(events.map(event => [event?.method, event?.params?.uri])).toEqual(
    expect.arrayContaining([
      ['notifications/tools/list_changed', undefined],
      ['notifications/prompts/list_changed', undefined],
      ['notifications/resources/updated', 'file:///a'],
    ]),
  )
  stream.close()
})

test('a resource that the client unsubscribes from during the revival is not subscribed again', async () => {
  const first = await start()
  const { headers } = await openSession(first.url)
  const uris = Array.from({ length: 9 }, (_, at) => `file:///${at}`)
  for (const uri of uris) await call(first, headers, 'resources/subscribe', { uri })
  await crash(first)
  const waiting: Exchange[] = []
  const second = await start({}, { ...SCRIPT, 'resources/subscribe': exchange => void waiting.push(exchange) })
  await call(second, headers, 'resources/unsubscribe', { uri: uris.at(-1) })
  for (const exchange of waiting.splice(0)) void answerEmpty(exchange)
  await call(second, headers)
  expect(second.seen.filter(({ method }) => method === 'resources/subscribe')).toHaveLength(8)
})

test('a session that ends during its revival subscribes to nothing more', async () => {
  const first = await start()
  const { headers } = await openSession(first.url)
  for (let at = 0; at < 12; at++) await call(first, headers, 'resources/subscribe', { uri: `file:///${at}` })
  await crash(first)
  const second = await start({}, { ...SCRIPT, 'resources/subscribe': () => {} })
  expect((await send(second.url, { method: 'DELETE', headers })).status).toBe(200)
  expect((await call(second, headers)).status).toBe(404)
  expect(second.seen.filter(({ method }) => method === 'resources/subscribe')).toHaveLength(8)
})

test('a session whose client left before it was stored ends', async () => {
  const store = cluster.join()
  const { create } = store
  let letCreate = (): void => {}
  const isLet = new Promise<void>(resolve => {
    letCreate = resolve
  })
  store.create = (...args) => isLet.then(() => create.apply(store, args))
  const front = await start({ state: { store, keys } })
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
  const opening = request(front.url, { method: 'POST', agent: false, headers }).on('error', () => {})
  opening.end(JSON.stringify(rpcInitialize('2025-11-25')))
  await expect.poll(() => front.sessions.size).toBe(1)
  opening.destroy()
  await expect.poll(() => front.connections()).toBe(0)
  letCreate()
  await expect.poll(() => [front.sessions.size, cluster.records.size]).toEqual([0, 0])
})

test('requests that come at once revive a session once', async () => {
  const first = await start()
  const { headers } = await openSession(first.url)
  await crash(first)
  const { store, calls } = counted(cluster.join())
  const second = await start({ state: { store, keys } })
  const replies = await Promise.all(
    Array.from({ length: 10 }, () => send(second.url, { headers, body: rpcRequest(Math.random().toString()) })),
  )
  expect(replies.map(({ status }) => status)).toEqual(Array(10).fill(200))
  expect(calls.filter(name => name === 'take')).toEqual(['take'])
  expect(second.sessions.size).toBe(1)
  await expect.poll(() => second.seen.filter(({ method }) => method === 'subscriptions/listen').length).toBe(1)
})

test('a call of a live session asks nothing of the store', async () => {
  const { store, calls } = counted(cluster.join())
  const front = await start({ state: { store, keys } })
  const { headers } = await openSession(front.url)
  calls.length = 0
  for (let i = 0; i < 20; i++) await call(front, headers)
  expect(calls).toEqual([])
})

test('a session that was ended stays ended', async () => {
  const first = await start()
  const { headers } = await openSession(first.url)
  expect((await send(first.url, { method: 'DELETE', headers })).status).toBe(200)
  expect(cluster.records.size).toBe(0)
  expect((await call(first, headers)).status).toBe(404)
  await crash(first)
  expect((await call(await start(), headers)).status).toBe(404)
})

test('requests beside a DELETE do not revive the session', async () => {
  const first = await start()
  const { headers } = await openSession(first.url)
  await crash(first)
  const second = await start()
  const [ended, other] = await Promise.all([send(second.url, { method: 'DELETE', headers }), call(second, headers)])
  expect(ended.status).toBe(200)
  expect([200, 404]).toContain(other.status)
  expect((await call(second, headers)).status).toBe(404)
  expect([second.sessions.size, cluster.records.size]).toEqual([0, 0])
})

test('another principal does not revive a session, and the attempt is logged', async () => {
  const warnings: object[] = []
  const log = {
    ...console,
    warn: (fields: object) => warnings.push(fields),
    debug: () => {},
    info: () => {},
    error: () => {},
  }
  const identify = (header: string | undefined) => header?.slice('Bearer '.length)
  const first = await start({ identify })
  const { headers } = await openSession(first.url, '2025-06-18', {}, { authorization: 'Bearer ada' })
  await crash(first)
  const second = await start({ identify, log: log as never })
  expect((await call(second, { ...headers, authorization: 'Bearer eve' })).status).toBe(404)
  expect(warnings).toEqual([expect.objectContaining({ security: true, principal: 'eve', owner: 'ada' })])
  expect(second.sessions.size).toBe(0)
  expect((await call(second, { ...headers, authorization: 'Bearer ada' })).status).toBe(200)
  expect((await call(second, { ...headers, authorization: 'Bearer eve' })).status).toBe(404)
})

test('an id is only good for its workspace', async () => {
  const first = await start()
  const { headers } = await openSession(first.url)
  await crash(first)
  const second = await start()
  expect((await send(`${second.url}/other`, { headers, body: rpcRequest(1) })).status).toBe(404)
  expect((await call(second, headers)).status).toBe(200)
})

test('a forged, mutated or foreign id is rejected without asking the store', async () => {
  const first = await start()
  const { headers } = await openSession(first.url)
  await crash(first)
  const { store, calls } = counted(cluster.join())
  const second = await start({ state: { store, keys } })
  calls.length = 0
  const id = headers['mcp-session-id'] ?? ''
  const content = { home: 'x', workspace: 'default' }
  const bad = [
    `${id.slice(0, -1)}${id.endsWith('0') ? '1' : '0'}`,
    id.toUpperCase(),
    `${id}00`,
    mintId(randomKeys().ids[0], 'session', content),
    mintId(keys.ids[0], 'channel', content),
    'x'.repeat(4000),
  ]
  for (const forged of bad) expect((await call(second, { ...headers, 'mcp-session-id': forged })).status).toBe(404)
  expect(calls).toEqual([])
  expect((await call(second, { ...headers, 'mcp-session-id': mintId(keys.ids[0], 'session', content) })).status).toBe(
    404,
  )
  expect(calls).toEqual(['take'])
})

test('the session of another live replica is not taken', async () => {
  const [first, second] = [await start(), await start()]
  const { headers } = await openSession(first.url)
  expect((await call(second, headers)).status).toBe(503)
  expect((await call(first, headers)).status).toBe(200)
})

test('an idle session is not revived', async () => {
  const limits = { sessionIdleMs: 50, keepAliveMs: 60_000 }
  const first = await start({ limits })
  const { headers } = await openSession(first.url)
  await crash(first)
  await new Promise(resolve => setTimeout(resolve, 60))
  expect((await call(await start({ limits }), headers)).status).toBe(404)
})

test('the sessions of one principal stay within its quota after a restart', async () => {
  const limits = { principalSessions: 2 }
  const first = await start({ limits })
  const opened = [await openSession(first.url), await openSession(first.url)]
  await crash(first)
  const second = await start({ limits })
  await openSession(second.url)
  for (const { headers } of opened) expect((await call(second, headers)).status).toBe(200)
  expect(second.sessions.size).toBe(2)
  await expect.poll(() => cluster.records.size).toBe(2)
})

test('a session does not outlive the token it was opened with', async () => {
  const tokens = { isValid: () => true, onRevoked: () => () => {} }
  const access = { token: 't1' }
  const first = await start({ tokens, access })
  const { headers } = await openSession(first.url)
  await crash(first)
  const second = await start({ tokens: { ...tokens, isValid: id => id !== 't1' }, access })
  expect((await call(second, headers)).status).toBe(404)
  await expect.poll(() => cluster.records.size).toBe(0)
})

test('a replica that lost its lease drops its sessions, and revives them when they are used', async () => {
  const front = await start()
  const { headers } = await openSession(front.url)
  cluster.lapse(front.replica)
  expect(front.sessions.size).toBe(0)
  expect((await call(front, headers)).status).toBe(200)
})

test('a call that is cut off with its session does not claim the record again', async () => {
  const front = await start({}, { ...SCRIPT, 'resources/subscribe': () => {} })
  const { headers } = await openSession(front.url)
  const subscribing = call(front, headers, 'resources/subscribe', { uri: 'file:///a' })
  await front.whenSeen('resources/subscribe')
  cluster.lapse(front.replica)
  expect((await subscribing).json.error?.data).toEqual({ reason: 'replica_lost' })
  expect([...cluster.records.values()].map(({ home, epoch }) => [home, epoch])).toEqual([[front.replica, 1]])
})

describe('the clock', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['Date'] })
  })
  afterEach(() => {
    vi.useRealTimers()
  })
  const ticks = () => new Promise(resolve => setTimeout(resolve, 100)) // several, each 20 ms

  test.each([3_600_000, -3_600_000])('neither ends nor sweeps a session when it jumps by %i ms', async ms => {
    const limits = { sessionIdleMs: 600_000, keepAliveMs: 300 }
    const [first, other] = [await start({ limits }), await start({ limits })]
    const { headers } = await openSession(first.url)
    const lost = await openSession(other.url)
    await crash(other)
    vi.setSystemTime(Date.now() + ms)
    await ticks()
    expect([first.sessions.size, cluster.records.size]).toEqual([1, 2])
    expect((await call(first, headers)).status).toBe(200)
    vi.setSystemTime(Date.now() - ms)
    await ticks()
    expect((await call(first, headers)).status).toBe(200)
    expect((await call(first, lost.headers)).status).toBe(200)
  })

  test('lets records that have expired be swept', async () => {
    vi.useFakeTimers({ toFake: ['Date', 'performance'] }) // time passes, without a jump of the clock
    const limits = { sessionIdleMs: 30_000, keepAliveMs: 300 }
    const lost = await start({ limits })
    await openSession(lost.url)
    await crash(lost)
    await start({ limits })
    for (let i = 0; i < 3 && cluster.records.size > 0; i++) {
      vi.advanceTimersByTime(50_000)
      await ticks()
    }
    expect(cluster.records.size).toBe(0)
  })

  test('keeps the record of a session in use, also if only its stream is open', async () => {
    const limits = { sessionIdleMs: 120_000, keepAliveMs: 300 }
    const front = await start({ limits })
    const { headers } = await openSession(front.url)
    const stream = await openStream(front.url, { method: 'GET', headers: { ...headers, accept: 'text/event-stream' } })
    for (let i = 0; i < 10; i++) {
      vi.setSystemTime(Date.now() + 50_000)
      await ticks()
    }
    expect([...cluster.records.values()].map(({ expires }) => expires > Date.now())).toEqual([true])
    stream.close()
  })
})

test('the last uses of many sessions are written a part at a time', async () => {
  vi.useFakeTimers({ toFake: ['Date'] })
  onTestFinished(() => void vi.useRealTimers())
  const store = cluster.join()
  const limits = { keepAliveMs: 300, principalSessions: 1000 }
  const front = await start({ limits, state: { store, keys } })
  const opened = await Promise.all(Array.from({ length: 250 }, () => openSession(front.url)))
  let [writing, most] = [0, 0]
  const written = new Set<string>()
  const { write } = store
  store.write = async (claim, ...rest) => {
    most = Math.max(most, ++writing)
    await new Promise(setImmediate)
    writing--
    written.add(claim.id)
    return write.call(store, claim, ...rest)
  }
  vi.setSystemTime(Date.now() + 3_600_000) // a jump of the clock: all are written
  await vi.waitFor(() => expect(written.size).toBe(opened.length), 5000)
  expect(most).toBe(100)
})

test('while the store is away, unknown sessions get 503 and known ones go on', async () => {
  const store = cluster.join()
  const front = await start({ state: { store, keys } })
  const { headers } = await openSession(front.url)
  const away = () => Promise.reject(new StateError('away', 'the store is away'))
  Object.assign(store, { take: away, write: away, create: away })
  const unknown = mintId(keys.ids[0], 'session', { home: 'gone', workspace: 'default' })
  const reply = await call(front, { ...headers, 'mcp-session-id': unknown })
  expect([reply.status, reply.headers['retry-after'], reply.json.id]).toEqual([503, '1', 1])
  expect(reply.json.error?.data).toEqual({ reason: 'store_away' })
  expect((await call(front, headers)).status).toBe(200)
  expect((await call(front, headers, 'logging/setLevel', { level: 'debug' })).status).toBe(200)
  const { headers: added } = await openSession(front.url)
  expect((await call(front, added)).status).toBe(200)
})

test('a front that stops sends requests for its sessions elsewhere', async () => {
  const front = await start()
  const { headers } = await openSession(front.url)
  await front.sessions.stop()
  const reply = await call(front, headers)
  expect([reply.status, reply.headers['retry-after']]).toEqual([503, '1'])
  expect(reply.json.error?.data).toEqual({ reason: 'gateway_stopping' })
})
