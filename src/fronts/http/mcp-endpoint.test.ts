import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { openChannel } from '../../../test/support/channel.ts'
import { type Front, type Script, startFront } from '../../../test/support/front.ts'
import { modern, openSession, openStream, send } from '../../../test/support/raw.ts'
import { Json } from '../../wire/json/json.ts'

let front: Front
const start = async (script: Script = {}, options?: Parameters<typeof startFront>[1]): Promise<string> => {
  front = await startFront(script, options)
  return front.url
}
afterEach(() => front.close())

const list = (id = 1) => modern(id, 'tools/list')
const answers: Script = { 'tools/list': exchange => exchange.sink({ kind: 'result', result: Json.of({ tools: [] }) }) }

test.each([
  ['no JSON', '{"jsonrpc":', 400, -32700, null],
  ['nothing', '', 400, -32700, null],
  ['text after the value', '{} {}', 400, -32700, null],
  ['bytes that are no UTF-8', Buffer.from([0x22, 0xff, 0xfe, 0x22]), 400, -32700, null],
  ['nesting without end', '['.repeat(100_000), 400, -32700, null],
  ['a string', '"hello"', 400, -32600, null],
  ['null', 'null', 400, -32600, null],
  ['an object that is no message', '{"hello":1}', 400, -32600, null],
  ['another jsonrpc', '{"jsonrpc":"1.0","id":4,"method":"ping"}', 400, -32600, 4],
  ['a method that is no string', '{"jsonrpc":"2.0","id":"x","method":5}', 400, -32600, 'x'],
  ['params that are no object', '{"jsonrpc":"2.0","id":4,"method":"tools/list","params":[1]}', 400, -32600, 4],
  ['an id that is null', '{"jsonrpc":"2.0","id":null,"method":"tools/list"}', 400, -32600, null],
])('a body of %s is rejected, with its id if it has one', async (_name, body, status, code, id) => {
  const url = await start(answers)
  const reply = await send(url, { body })
  expect([reply.status, reply.json.error?.code, reply.json.id]).toEqual([status, code, id])
  expect(reply.json.error?.message).not.toBe('')
  expect(front.seen).toEqual([])
})

test('__proto__ does no harm', async () => {
  const url = await start(answers)
  const { headers, body } = list()
  const text = JSON.stringify(body).replace('{', '{"__proto__":{"polluted":1},')
  const reply = await send(url, { headers, body: text })
  expect(reply.json.result).toMatchObject({ tools: [] })
  expect(({} as { polluted?: number }).polluted).toBeUndefined()
})

test.each(['"method":"initialize"', '"Method":"initialize"', '"ID":7', '"params\\u0000":{}'])(
  'a message with %s besides is refused',
  async member => {
    const url = await start(answers)
    const { headers, body } = list()
    const reply = await send(url, { headers, body: JSON.stringify(body).replace('{', `{${member},`) })
    expect([reply.status, reply.json.error?.code]).toEqual([400, -32600])
  },
)

test('a body declared over the limit is rejected before it is read', async () => {
  const url = await start({}, { limits: { bodyBytes: 1000 } })
  const reply = await send(url, { headers: { 'content-length': '100000' }, body: 'x'.repeat(100_000) })
  expect([reply.status, reply.json.error?.code, reply.json.id]).toEqual([413, -32600, null])
  expect(reply.json.error?.message).toContain('1000')
})

test('a body that grows over the limit is rejected while it is read', async () => {
  const url = await start({}, { limits: { bodyBytes: 1000 } })
  const reply = await send(url, { headers: { 'transfer-encoding': 'chunked' }, body: 'x'.repeat(5000) })
  expect([reply.status, reply.json.error?.code]).toEqual([413, -32600])
})

test.each([
  ['text/plain', 415],
  ['application/json; charset=utf-8', 200],
])('content type %s gets %i', async (type, status) => {
  const url = await start(answers)
  const { headers, body } = list()
  expect((await send(url, { headers: { ...headers, 'content-type': type }, body })).status).toBe(status)
})

test.each([
  ['text/html', 406],
  ['*/*', 200],
  ['application/*', 200],
  ['application/json;q=0, text/event-stream;q=0', 406],
])('accept %s gets %i', async (accept, status) => {
  const url = await start(answers)
  const { headers, body } = list()
  expect((await send(url, { headers: { ...headers, accept }, body })).status).toBe(status)
})

test.each([
  ['a foreign host', { host: 'evil.example.com' }],
  ['a host that only looks like ours', { host: '127.0.0.1.evil.example.com' }],
  ['a foreign origin', { origin: 'http://evil.example.com' }],
  ['an origin that is nothing', { origin: 'null' }],
  ['an application called localhost', { origin: 'foo://localhost' }],
  ['an application called 127.0.0.1', { origin: 'app://127.0.0.1:3000' }],
  ['a page of another site that hides its origin', { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' }],
  ['a page of a neighbouring site that hides its origin', { 'sec-fetch-site': 'same-site' }],
  [
    'a link on another site to the endpoint',
    { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' },
  ],
])('%s is rejected for every method, and nothing is dispatched', async (_name, headers) => {
  const url = await start(answers)
  const good = list()
  for (const method of ['POST', 'GET', 'DELETE']) {
    const reply = await send(url, {
      method,
      headers: { ...good.headers, ...headers },
      ...(method === 'POST' && { body: good.body }),
    })
    expect([reply.status, reply.json.error?.code, reply.json.id]).toEqual([403, -32600, null])
  }
  expect(front.seen).toEqual([])
})

test('the gateway’s own origin, other loopback names and configured ones are served', async () => {
  const url = await start(answers, {
    listen: { allowedHosts: ['mcp.example.com'], allowedOrigins: ['https://app.example.com'] },
  })
  const { headers, body } = list()
  const port = front.port
  for (const extra of [
    { origin: `http://127.0.0.1:${port}` },
    { host: `localhost:${port}`, origin: 'http://localhost:3000' },
    { host: `[::1]:${port}` },
    { host: 'mcp.example.com', origin: 'https://app.example.com' },
    { host: 'mcp.example.com', origin: 'https://app.example.com', 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-origin' },
    { 'sec-fetch-site': 'none' },
    { 'sec-fetch-mode': 'cors' },
    { host: 'mcp.example.com:8443', origin: 'https://mcp.example.com:8443' },
  ])
    expect((await send(url, { headers: { ...headers, ...extra }, body })).status).toBe(200)
})

test.each(['/mcp/unknown', '/mcp/default/deeper', '/mcp/%ff', '/elsewhere'])('%s is not found', async path => {
  const url = await start(answers)
  const { headers, body } = list()
  const reply = await send(url.replace('/mcp', path), { headers, body })
  expect([reply.status, reply.json.error?.code]).toEqual([404, -32600])
})

test.each(['/mcp', '/mcp/', '/mcp/default', '/mcp?x=1'])('%s is the default workspace', async path => {
  const url = await start(answers)
  const { headers, body } = list()
  expect((await send(url.replace('/mcp', path), { headers, body })).status).toBe(200)
})

test.each([
  ['GET', { accept: 'application/json' }, 405],
  ['DELETE', {}, 400],
  ['PUT', {}, 405],
])('%s without a session is rejected', async (method, headers, status) => {
  const url = await start()
  const reply = await send(url, { method, headers })
  expect([reply.status, reply.json.error?.code]).toEqual([status, -32600])
})

const talk = async (bytes: string): Promise<{ text: string; socket: Socket }> => {
  const socket = connect(front.port, '127.0.0.1')
  let text = ''
  socket.on('data', chunk => {
    text += chunk
  })
  socket.on('error', () => {})
  socket.write(bytes)
  await once(socket, 'close')
  return { text, socket }
}

test('a body that never ends gets 408', async () => {
  await start({}, { limits: { requestTimeoutMs: 200 } })
  const { text } = await talk(
    'POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"json',
  )
  expect(text).toContain('408 Request Timeout')
  expect(text).toContain('"code":-32600')
})

test('too large headers get 431', async () => {
  await start()
  const { text } = await talk(`POST /mcp HTTP/1.1\r\nhost: localhost\r\nx-bomb: ${'x'.repeat(100_000)}\r\n\r\n`)
  expect(text).toContain('431 Request Header Fields Too Large')
})

test('bytes that are no HTTP get 400', async () => {
  await start()
  const { text } = await talk('HELLO\r\n\r\n')
  expect(text).toContain('400 Bad Request')
})

test('a client that disconnects within its body leaves no state', async () => {
  await start()
  const socket = connect(front.port, '127.0.0.1')
  socket.write(
    'POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"json',
  )
  await once(socket, 'connect')
  socket.destroy()
  await once(socket, 'close')
  expect(front.context.activeCalls.size).toBe(0)
})

test('an exception below the front is a response, not a crash', async () => {
  const url = await start({
    'tools/list': () => {
      throw new Error('oops')
    },
  })
  const reply = await send(url, list(5))
  expect([reply.status, reply.json.error?.code, reply.json.id]).toEqual([500, -32603, 5])
  expect(reply.text).not.toContain('oops')
  const { headers } = await openSession(url)
  const inSession = await send(url, { headers, body: { jsonrpc: '2.0', id: 6, method: 'tools/list' } })
  expect([inSession.json.error?.code, inSession.json.id]).toEqual([-32603, 6])
})

const workspaceOf = async (path: string): Promise<[number, string | undefined]> => {
  const { headers, body } = list()
  const reply = await send(`http://127.0.0.1:${front.port}${path}`, { headers, body })
  return [reply.status, front.seen.at(-1)?.caller.workspace]
}

test.each([
  ['/mcp', 'default'],
  ['/mcp?workspace=other', 'other'],
  ['/mcp/?workspace=other', 'other'],
  ['/mcp?a=1&workspace=other', 'other'],
  ['/mcp/other?workspace=other', 'other'],
  ['/other/mcp', 'other'],
  ['/other/mcp/', 'other'],
  ['/mcp/other/', 'other'],
  ['/other/mcp?workspace=other', 'other'],
  ['/default/mcp', 'default'],
])('a request to %s is served by workspace %s', async (path, workspace) => {
  await start(answers)
  expect(await workspaceOf(path)).toEqual([200, workspace])
})

test.each([
  ['/mcp?workspace=unknown', 404],
  ['/mcp?workspace=', 404],
  ['/unknown/mcp', 404],
  ['/%zz/mcp', 404],
  ['/.well-known/mcp', 404],
  ['/other/mcp/more', 404],
  ['/a/other/mcp', 404],
  ['/mcp/other?workspace=default', 400],
  ['/mcp/default?workspace=other', 400],
  ['/other/mcp?workspace=default', 400],
  ['/mcp?workspace=other&workspace=default', 400],
  ['/message?workspace=other&workspace=default', 400],
])('a request to %s gets %i and reaches no other workspace', async (path, status) => {
  await start(answers)
  expect(await workspaceOf(path)).toEqual([status, undefined])
})

test('/<workspace>/mcp serves every method that /mcp/<workspace> serves', async () => {
  await start(answers)
  const url = `http://127.0.0.1:${front.port}/other/mcp`
  const { headers } = await openSession(url)
  expect((await send(url, { headers, body: { jsonrpc: '2.0', id: 1, method: 'tools/list' } })).status).toBe(200)
  const stream = await openStream(url, { method: 'GET', headers: { ...headers, accept: 'text/event-stream' } })
  expect([stream.status, stream.headers['content-type']]).toEqual([200, 'text/event-stream'])
  expect((await send(url, { method: 'DELETE', headers })).status).toBe(200)
  const channel = await openChannel(url)
  expect((await channel.post({ jsonrpc: '2.0', id: 1, method: 'tools/list' })).status).toBe(202)
  expect(front.seen.map(({ caller }) => caller.workspace)).toEqual(front.seen.map(() => 'other'))
})
