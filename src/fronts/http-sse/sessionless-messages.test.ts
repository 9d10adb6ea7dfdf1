import { afterEach, expect, test } from 'vitest'
import { openChannel } from '../../../test/support/channel.ts'
import { type Front, startFront } from '../../../test/support/front.ts'
import { send } from '../../../test/support/raw.ts'
import type { Exchange } from '../../protocol/exchange.ts'
import { Json } from '../../wire/json/json.ts'

let front: Front
afterEach(() => front.close())

const answer = (exchange: Exchange) => exchange.sink({ kind: 'result', result: Json.of({ content: [] }) })
const request = (id: number, method = 'tools/call') => ({ jsonrpc: '2.0', id, method, params: { name: 'github/x' } })
const start = async (options?: Parameters<typeof startFront>[1]): Promise<string> => {
  front = await startFront({ 'tools/call': answer }, options)
  return front.url
}

test('a message without a session id goes to the only channel its client has at that endpoint', async () => {
  const url = await start()
  const channel = await openChannel(url)
  const reply = await send(url, { body: request(1) })
  expect([reply.status, reply.text]).toEqual([202, ''])
  expect(await channel.next()).toEqual({ event: 'response', data: '{"jsonrpc":"2.0","id":1,"result":{"content":[]}}' })
  const call = front.seen.find(({ method }) => method === 'tools/call')
  expect(call?.caller).toMatchObject({ revision: '2024-11-05', session: channel.id })
  expect((await send(url, { body: { jsonrpc: '2.0', method: 'notifications/x' } })).status).toBe(202)
  expect((await send(url, { body: [request(2), request(3)] })).status).toBe(202)
  expect([(await channel.message('response')).id, (await channel.message('response')).id]).toEqual([2, 3])
})

test('initialize without a session id still opens a Streamable HTTP session', async () => {
  const url = await start()
  await openChannel(url)
  const params = { protocolVersion: '2025-11-25', capabilities: {} }
  const reply = await send(url, { body: { jsonrpc: '2.0', id: 1, method: 'initialize', params } })
  expect([reply.status, typeof reply.headers['mcp-session-id'], front.sessions.size]).toEqual([200, 'string', 1])
})

const MISSING = [400, -32600, 1, 'Bad Request: Missing session ID']
const post = async (url: string, headers?: Record<string, string>) => {
  const reply = await send(url, { body: request(1), ...(headers && { headers }) })
  return [reply.status, reply.json.error?.code, reply.json.id, reply.json.error?.message]
}

test('it is rejected if the client has no channel or several, and served again with one left', async () => {
  const url = await start()
  expect(await post(url)).toEqual(MISSING)
  const first = await openChannel(url)
  await openChannel(url)
  expect(await post(url)).toEqual(MISSING)
  first.close()
  await expect.poll(() => front.channels.size).toBe(1)
  expect((await post(url))[0]).toBe(202)
})

test('channels of /sse, of other workspaces and of other principals do not count', async () => {
  const url = await start({ identify: header => header ?? 'local' })
  await openChannel(url.replace('/mcp', '/sse'))
  await openChannel(`${url}/other`)
  await openChannel(url, { authorization: 'mallory' })
  expect(await post(url)).toEqual(MISSING)
  expect((await post(`${url}/other`))[0]).toBe(202)
  expect((await post(url, { authorization: 'mallory' }))[0]).toBe(202)
})

test('an anonymous client cannot post to a channel without its id', async () => {
  const url = await start({ identify: () => undefined })
  await openChannel(url)
  expect(await post(url)).toEqual(MISSING)
})
