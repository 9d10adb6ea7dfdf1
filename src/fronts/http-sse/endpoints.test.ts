import { afterEach, expect, test } from 'vitest'
import { openChannel, openRawChannel } from '../../../test/support/channel.ts'
import { answerEmpty, type Front, rpcRequest, startFront } from '../../../test/support/front.ts'
import { send } from '../../../test/support/raw.ts'

let front: Front
const start = async (...args: Parameters<typeof startFront>): Promise<void> => {
  front = await startFront(...args)
}

afterEach(() => front.close())

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
  await start({ 'tools/call': answerEmpty })
  const channel = await openRawChannel(`${front.origin}${path}`)
  expect(channel.headers).toMatchObject({
    'content-type': 'text/event-stream',
    'cache-control': 'no-cache, no-transform',
    connection: 'keep-alive',
    'x-accel-buffering': 'no',
  })
  const id = String(channel.headers['mcp-session-id'])
  expect(id).toMatch(/^[0-9a-f]{32,}$/)
  expect(await channel.next()).toEqual({ event: 'endpoint', data: `/messages/?session_id=${id}` })
  await send(`${front.origin}/messages/?session_id=${id}`, { body: rpcRequest(1) })
  expect((await front.whenSeen('tools/call')).caller).toMatchObject({ workspace, session: id })
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
  const { endpoint, id } = await openChannel(`${front.origin}/sse`, { 'x-forwarded-prefix': prefix })
  expect(endpoint).toBe(`${expected}${id}`)
})

test('the endpoint is an absolute URL if configured', async () => {
  await start({ 'tools/call': answerEmpty }, { sse: { endpoint: 'absolute' } })
  const plain = await openChannel(`${front.origin}/sse`)
  expect(plain.endpoint).toBe(`${front.origin}/messages/?session_id=${plain.id}`)
  const proxied = await openChannel(`${front.origin}/sse`, { 'x-forwarded-proto': 'https', 'x-forwarded-prefix': '/x' })
  expect(proxied.endpoint).toBe(`${front.origin.replace('http:', 'https:')}/x/messages/?session_id=${proxied.id}`)
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
  const channel = await openRawChannel(`${front.origin}/mcp`, headers)
  expect(channel.status).toBe(status)
  expect(front.channels.size).toBe(status === 200 ? 1 : 0)
  if (status === 405) expect(channel.headers.allow).toBe('GET, POST, DELETE')
})

test.each([
  ['POST', '/sse', {}, 405],
  ['POST', '/mcp/other/sse', {}, 405],
  ['POST', '/other/sse', {}, 405],
  ['GET', '/unknown/sse', {}, 404],
  ['GET', '/mcp/other/sse?workspace=default', {}, 400],
  ['GET', '/sse', { accept: 'application/json' }, 406],
  ['GET', '/sse?workspace=unknown', {}, 404],
  ['GET', '/mcp/unknown/sse', {}, 404],
  ['GET', '/messages/?session_id=x', {}, 405],
  ['POST', '/messages/', {}, 400],
  ['POST', '/messages', {}, 400],
  ['POST', '/messages?session_id=', {}, 400],
  ['POST', '/message?workspace=unknown', {}, 404],
] as [string, string, Record<string, string>, number][])(
  '%s %s with %j gets %i',
  async (method, path, headers, status) => {
    await start()
    const reply = await send(`${front.origin}${path}`, {
      method,
      headers,
      ...(method === 'POST' && { body: rpcRequest(4) }),
    })
    expect([reply.status, reply.json.error?.code]).toEqual([status, -32600])
    expect(front.seen).toEqual([])
  },
)
