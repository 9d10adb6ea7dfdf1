import { afterEach, expect, test } from 'vitest'
import { openChannel } from '../../../test/support/channel.ts'
import { type Front, startFront } from '../../../test/support/front.ts'
import { modern, send } from '../../../test/support/raw.ts'
import { META } from '../../protocol/meta.ts'

const MOST = 64 * 1024
const large = (bytes: number) => ({ experimental: { pad: 'x'.repeat(bytes) } })
const LARGE = large(MOST)

let front: Front
afterEach(() => front.close())

const initialize = (capabilities: object, clientInfo: object = { name: 'test', version: '1' }) => ({
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities, clientInfo },
})

const padded = (message: object, bytes: number) => ({ ...message, pad: 'x'.repeat(bytes) })

test.each([
  ['capabilities', initialize(LARGE)],
  ['clientInfo', initialize({}, LARGE)],
])('initialize over Streamable HTTP with large %s is rejected and opens no session', async (name, body) => {
  front = await startFront()
  const reply = await send(front.url, { body })
  expect(reply.status).toBe(400)
  expect(reply.json).toMatchObject({ id: 1, error: { code: -32602 } })
  expect(reply.json.error?.message).toContain(name)
  expect(reply.json.error?.message).toContain('65536')
  expect([front.sessions.size, front.seen.length]).toEqual([0, 0])
})

test.each([
  ['capabilities', { capabilities: LARGE }],
  ['clientInfo', { meta: { [META.clientInfo]: LARGE } }],
  ['affinity', { meta: { [META.affinity]: 'x'.repeat(1025) } }],
])('a stateless request with large %s is rejected before it is dispatched', async (name, extra) => {
  front = await startFront()
  const reply = await send(front.url, modern(7, 'tools/list', {}, extra))
  expect(reply.status).toBe(400)
  expect(reply.json).toMatchObject({ id: 7, error: { code: -32602 } })
  expect(reply.json.error?.message).toContain(name)
  expect(front.seen).toEqual([])
})

test('initialize over HTTP+SSE with large capabilities is rejected on the channel, which stays usable', async () => {
  front = await startFront()
  const channel = await openChannel(`http://127.0.0.1:${front.port}/sse`)
  await channel.post(initialize(LARGE))
  expect(JSON.parse((await channel.nextOf('message')).data)).toMatchObject({ id: 1, error: { code: -32602 } })
  await channel.post(initialize({ roots: {} }))
  expect(JSON.parse((await channel.nextOf('message')).data)).toMatchObject({ id: 1, result: {} })
  channel.close()
})

test('capabilities at the limit are served', async () => {
  front = await startFront({ 'tools/list': exchange => exchange.sink({ kind: 'result', result: exchange.params }) })
  const overhead = JSON.stringify(large(0)).length
  const reply = await send(front.url, modern(7, 'tools/list', {}, { capabilities: large(MOST - overhead) }))
  expect(reply.status).toBe(200)
})

test('initialize has its own limit for its body', async () => {
  front = await startFront()
  const reply = await send(front.url, { body: padded(initialize({}), 256 * 1024) })
  expect(reply.status).toBe(413)
  expect(reply.json).toMatchObject({ id: 1, error: { code: -32600 } })
  expect(reply.json.error?.message).toContain('262144')
  expect(front.sessions.size).toBe(0)
})

test('subscriptions/listen, which is kept as long as its stream, has a limit for its body', async () => {
  front = await startFront()
  const { headers, body } = modern(7, 'subscriptions/listen', { notifications: {} })
  const reply = await send(front.url, { headers, body: padded(body, 1024 * 1024) })
  expect(reply.status).toBe(413)
  expect(reply.json).toMatchObject({ id: 7, error: { code: -32600 } })
})

test.each([
  ['resources/subscribe', (body: object) => body],
  ['resources/unsubscribe', (body: object) => body],
  ['resources/subscribe', (body: object) => [body]],
])('%s, whose URI a session keeps, has a limit for its body', async (method, wrap) => {
  front = await startFront()
  const opened = await send(front.url, { body: initialize({}) })
  const headers = { 'mcp-session-id': String(opened.headers['mcp-session-id']) }
  const body = { jsonrpc: '2.0', id: 2, method, params: { uri: `note://${'x'.repeat(64 * 1024)}` } }
  const reply = await send(front.url, { headers, body: wrap(body) })
  expect(reply.status).toBe(413)
})

test('a session keeps the identity of its client, and nothing else of the request', async () => {
  front = await startFront()
  await send(front.url, { body: padded(initialize({ roots: {} }), 200 * 1024) })
  const caller = front.seen[0]?.caller
  expect(caller?.capabilities.toString()).toBe('{"roots":{}}')
  expect(caller?.capabilities.retained).toBeLessThan(1024)
  expect(caller?.info?.toString()).toBe('{"name":"test","version":"1"}')
  expect(caller?.info?.retained).toBeLessThan(1024)
})
