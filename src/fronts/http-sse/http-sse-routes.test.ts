import { afterEach, expect, test } from 'vitest'
import { openChannel, openRawChannel } from '../../../test/support/channel.ts'
import { type Front, type Script, startFront } from '../../../test/support/front.ts'
import { send } from '../../../test/support/raw.ts'
import type { Exchange } from '../../protocol/exchange.ts'
import { Json } from '../../wire/json/json.ts'

let front: Front
let origin: string

const start = async (script: Script = {}, options?: Parameters<typeof startFront>[1]): Promise<void> => {
  front = await startFront(script, options)
  origin = `http://127.0.0.1:${front.port}`
}

afterEach(() => front.close())

const answer = (exchange: Exchange) => exchange.sink({ kind: 'result', result: Json.of({ content: [] }) })
const request = (id: number | string, method = 'tools/call', params: object = { name: 'echo' }) => ({
  jsonrpc: '2.0',
  id,
  method,
  params,
})
const last = (method: string): Exchange => front.seen.filter(exchange => exchange.method === method).at(-1) as Exchange

/** Waits until a request of that method has come through `times` times. */
const seen = async (method: string, times = 1): Promise<Exchange> => {
  await expect.poll(() => front.seen.filter(exchange => exchange.method === method).length).toBe(times)
  return last(method)
}

test.each([
  ['/sse', 'default', false],
  ['/sse?workspace=other', 'other', false],
  ['/mcp/other/sse', 'other', false],
  ['/other/sse', 'other', false],
  ['/mcp', 'default', true],
  ['/mcp/other', 'other', true],
  ['/mcp/other?events=', 'other', false],
  ['/mcp/other?events=ping', 'other', false],
  ['/sse?workspace=other&events=lifecycle,ping', 'other', true],
  ['/mcp/other/sse?events=ping&events=lifecycle', 'other', true],
])('GET %s opens a channel of %s: the endpoint first, streamOpened after it: %s', async (path, workspace, isNamed) => {
  await start({ 'tools/call': answer })
  const channel = await openRawChannel(`${origin}${path}`)
  expect(channel.headers).toMatchObject({
    'content-type': 'text/event-stream',
    'cache-control': 'no-cache, no-transform',
    connection: 'keep-alive',
    'x-accel-buffering': 'no',
  })
  const id = String(channel.headers['mcp-session-id'])
  expect(id).toMatch(/^[0-9a-f]{32,}$/)
  expect(await channel.next()).toEqual({ event: 'endpoint', data: `/messages/?session_id=${id}` })
  await send(`${origin}/messages/?session_id=${id}`, { body: request(1) })
  expect((await seen('tools/call')).caller).toMatchObject({ workspace, session: id })
  const opened = isNamed ? await channel.next() : undefined
  expect(opened && [opened.event, JSON.parse(opened.data)]).toEqual(
    isNamed
      ? [
          'lifecycle',
          {
            jsonrpc: '2.0',
            method: 'streamOpened',
            params: { timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/), sessionId: id },
          },
        ]
      : undefined,
  )
  expect((await channel.next())?.event).toBe('message')
})

test.each([
  ['/tools', '/tools/messages/?session_id='],
  ['/a/b/', '/a/b/messages/?session_id='],
  ['/outer, /inner', '/outer/messages/?session_id='],
  ['//evil.example.com', '/messages/?session_id='],
  ['https://evil.example.com', '/messages/?session_id='],
  ['/x?y=', '/messages/?session_id='],
])('behind X-Forwarded-Prefix %s the endpoint is %s…', async (prefix, expected) => {
  await start()
  const { endpoint, id } = await openChannel(`${origin}/sse`, { 'x-forwarded-prefix': prefix })
  expect(endpoint).toBe(`${expected}${id}`)
})

test('the endpoint is a whole URL where that is wanted', async () => {
  await start({ 'tools/call': answer }, { sse: { endpoint: 'absolute' } })
  const plain = await openChannel(`${origin}/sse`)
  expect(plain.endpoint).toBe(`${origin}/messages/?session_id=${plain.id}`)
  const proxied = await openChannel(`${origin}/sse`, { 'x-forwarded-proto': 'https', 'x-forwarded-prefix': '/x' })
  expect(proxied.endpoint).toBe(`${origin.replace('http:', 'https:')}/x/messages/?session_id=${proxied.id}`)
})

test.each([
  [{ accept: 'text/event-stream' }, 200],
  [{ accept: 'application/json, text/event-stream' }, 200],
  [{ accept: '*/*' }, 200],
  [{}, 200],
  [{ 'mcp-protocol-version': '2025-11-25' }, 200],
  [{ accept: 'application/json' }, 405],
  [{ accept: 'text/event-stream;q=0' }, 405],
  [{ accept: 'text/html' }, 405],
  [{ accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' }, 405],
  [{ 'mcp-protocol-version': '2026-07-28' }, 405],
] as [Record<string, string>, number][])('GET /mcp with %j and no session gets %i', async (headers, status) => {
  await start()
  const channel = await openRawChannel(`${origin}/mcp`, headers)
  expect(channel.status).toBe(status)
  expect(front.channels.size).toBe(status === 200 ? 1 : 0)
  if (status === 405) expect(channel.headers.allow).toBe('GET, POST, DELETE')
})

test.each([
  ['POST', '/sse', {}, 405],
  ['POST', '/mcp/other/sse', {}, 405],
  ['POST', '/other/sse', {}, 405],
  ['GET', '/nobody/sse', {}, 404],
  ['GET', '/mcp/other/sse?workspace=default', {}, 400],
  ['GET', '/sse', { accept: 'application/json' }, 406],
  ['GET', '/sse?workspace=nobody', {}, 404],
  ['GET', '/mcp/nobody/sse', {}, 404],
  ['GET', '/messages/?session_id=x', {}, 405],
  ['POST', '/messages/', {}, 400],
  ['POST', '/messages', {}, 400],
  ['POST', '/messages?session_id=', {}, 400],
  ['POST', '/message?workspace=nobody', {}, 404],
] as [string, string, Record<string, string>, number][])(
  '%s %s with %j gets %i',
  async (method, path, headers, status) => {
    await start()
    const reply = await send(`${origin}${path}`, { method, headers, ...(method === 'POST' && { body: request(4) }) })
    expect([reply.status, reply.json.error?.code]).toEqual([status, -32600])
    expect(front.seen).toEqual([])
  },
)
