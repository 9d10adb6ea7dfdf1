import { createHash } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { rpcInitialize, rpcNotification, rpcRequest } from '../../support/front.ts'
import { openStream, send } from '../../support/raw.ts'
import { createReplicaServer, LARGE_TEXT, WATCHED_URI } from '../../support/replica-server.ts'
import { startReplicas, type TestReplica } from '../../support/replicas.ts'

let cluster: Awaited<ReturnType<typeof startReplicas>>
let [home, entry, third] = [] as unknown as TestReplica[] & [TestReplica, TestReplica, TestReplica]
let id = ''

const asSession = (headers: Record<string, string> = {}) => ({ 'mcp-session-id': id, ...headers })
const call = (name: string, number: number | string = 1, meta?: object) =>
  rpcRequest(number, 'tools/call', { name, arguments: {}, ...(meta && { _meta: meta }) })
const post = (at: TestReplica, body: object, headers?: Record<string, string>) =>
  send(at.url, { headers: asSession(headers), body })

beforeAll(async () => {
  cluster = await startReplicas({ size: 3, server: createReplicaServer })
  ;[home, entry, third] = cluster.replicas as [TestReplica, TestReplica, TestReplica]
})
afterAll(() => cluster.close())
beforeEach(async () => {
  const opened = await send(home.url, { body: rpcInitialize('2025-11-25') })
  id = String(opened.headers['mcp-session-id'])
  expect((await post(entry, rpcNotification('notifications/initialized'))).status).toBe(202)
})

const textIn = (json: { result?: Record<string, unknown> }): unknown =>
  (json.result?.content as { text: string }[] | undefined)?.[0]?.text

test('a call is served at home, whichever replica it reaches', async () => {
  for (const at of [home, entry, third]) {
    const { status, json, headers } = await post(at, call('where', 'a'))
    expect([status, json.id, textIn(json)]).toEqual([200, 'a', 'replica 0'])
    expect(headers['content-type']).toBe('application/json')
    expect(headers['dragoman-replica']).toBeUndefined()
  }
  expect(cluster.replicas.map(({ gateway }) => gateway.load().sessions)).toEqual([expect.any(Number), 0, 0])
})

test('a workspace may be called like a part of the cluster port, under each of its paths', async () => {
  for (const path of ['/mcp/servers', '/servers/mcp']) {
    const opened = await send(`${home.gateway.origin}${path}`, { body: rpcInitialize('2025-11-25') })
    const headers = { 'mcp-session-id': String(opened.headers['mcp-session-id']) }
    const { json } = await send(`${entry.gateway.origin}${path}`, { headers, body: call('where') })
    expect(textIn(json)).toBe('replica 0')
  }
})

test('a batch, a bad body and a wrong revision get the answers that home gives', async () => {
  const opened = await send(home.url, { body: rpcInitialize('2025-03-26') })
  id = String(opened.headers['mcp-session-id'])
  for (const at of [home, entry]) {
    const batch = await post(at, [call('where', 1), call('where', 2), rpcNotification('notifications/x')])
    expect((batch.json as unknown as { id: number }[]).map(({ id }) => id)).toEqual([1, 2])
    expect((await send(at.url, { headers: asSession(), body: '{' })).status).toBe(400)
    expect((await post(at, call('where'), { 'mcp-protocol-version': '2025-06-18' })).status).toBe(400)
    expect((await post(at, call('where'), { 'content-type': 'text/plain' })).status).toBe(415)
    expect((await post(at, rpcInitialize('2025-03-26'))).status).toBe(400)
  }
})

test('the GET stream of a session: subscribe and trigger at other replicas', async () => {
  const stream = await openStream(third.url, { method: 'GET', headers: asSession({ accept: 'text/event-stream' }) })
  expect([stream.status, stream.headers['content-type']]).toEqual([200, 'text/event-stream'])
  expect((await post(entry, rpcRequest(1, 'resources/subscribe', { uri: WATCHED_URI }))).json.result).toEqual({})
  await post(entry, call('update', 2))
  expect((await stream.next())?.json).toMatchObject({
    method: 'notifications/resources/updated',
    params: { uri: WATCHED_URI },
  })
  expect((await post(third, rpcRequest(3, 'resources/unsubscribe', { uri: WATCHED_URI }))).json.result).toEqual({})
  stream.close()
})

test('logging/setLevel at one replica counts at all', async () => {
  const events = async (at: TestReplica) =>
    (await openStream(at.url, { headers: asSession(), body: call('log', 5) })).all()
  expect((await post(entry, rpcRequest(1, 'logging/setLevel', { level: 'error' }))).json.result).toEqual({})
  const levels = (await events(third)).flatMap(({ json }) => json.params?.level ?? [])
  expect(levels).toEqual(['error'])
  await post(third, rpcRequest(2, 'logging/setLevel', { level: 'debug' }))
  expect((await events(entry)).flatMap(({ json }) => json.params?.level ?? [])).toEqual(['debug', 'error'])
})

test('a stream that breaks at one replica is resumed at another', async () => {
  const body = call('slow', 9, { progressToken: 'p' })
  const stream = await openStream(entry.url, { headers: asSession(), body })
  const progress = await stream.next()
  expect(progress?.json.method).toBe('notifications/progress')
  stream.close()
  const headers = asSession({ accept: 'text/event-stream', 'last-event-id': String(progress?.id) })
  const resumed = await openStream(third.url, { method: 'GET', headers })
  const [last] = await resumed.all()
  expect([last?.json.id, textIn(last?.json ?? {})]).toEqual([9, 'replica 0'])
})

test('a cancellation at one replica ends a call that another one has forwarded', async () => {
  const running = openStream(entry.url, { headers: asSession(), body: call('slow', 4, { progressToken: 'p' }) })
  await (await running).next()
  await post(third, rpcNotification('notifications/cancelled', { requestId: 4 }))
  expect(await (await running).all()).toEqual([])
})

test('DELETE at one replica ends the session at all', async () => {
  expect((await send(entry.url, { method: 'DELETE', headers: asSession() })).status).toBe(200)
  for (const at of [home, entry, third]) expect((await post(at, call('where'))).status).toBe(404)
  expect((await send(third.url, { method: 'DELETE', headers: asSession() })).status).toBe(404)
})

test('40 MiB come through a forward', async () => {
  const { json } = await post(entry, call('large'))
  const hash = (text: unknown) => createHash('sha256').update(String(text)).digest('hex')
  expect(hash(textIn(json))).toBe(hash(LARGE_TEXT))
})

test('a modern request is served where it arrives, also with the id of a session', async () => {
  const { json } = await send(entry.url, {
    headers: {
      ...asSession(),
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': 'where',
    },
    body: {
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: {
        name: 'where',
        arguments: {},
        _meta: {
          'io.modelcontextprotocol/protocolVersion': '2026-07-28',
          'io.modelcontextprotocol/clientCapabilities': {},
        },
      },
    },
  })
  expect(textIn(json)).toMatch(/^replica [01]$/)
})
