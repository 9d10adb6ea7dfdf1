import { afterEach, expect, test } from 'vitest'
import { type Front, type Script, startFront } from '../../../test/support/front.ts'
import { send } from '../../../test/support/raw.ts'
import { NEVER } from '../../protocol/cancellation.ts'
import type { Answer, Exchange } from '../../protocol/exchange.ts'
import { Json } from '../../wire/json/json.ts'

let front: Front
afterEach(() => front.close())

const start = async (script: Script = {}): Promise<string> => {
  front = await startFront(script)
  return front.url.replace('/mcp', '/message')
}
const answer = (exchange: Exchange) => exchange.sink({ kind: 'result', result: Json.of({ content: [] }) })
const request = (id: number, method = 'tools/call', params: object = {}) => ({ jsonrpc: '2.0', id, method, params })

test('a call without a session and without a handshake is answered as plain JSON', async () => {
  const url = await start({ 'tools/call': answer })
  const reply = await send(url, { headers: { accept: '*/*' }, body: request(3) })
  expect([reply.status, reply.headers['content-type'], reply.headers['mcp-session-id'], reply.json]).toEqual([
    200,
    'application/json',
    undefined,
    { jsonrpc: '2.0', id: 3, result: { content: [] } },
  ])
  const [call, ...others] = front.seen
  expect(call?.caller).toMatchObject({ workspace: 'default', principal: 'local', revision: '2024-11-05' })
  expect([call?.caller.session, call?.caller.capabilities.toValue(), others]).toEqual([undefined, {}, []])
})

test('it may choose a workspace', async () => {
  const url = await start({ 'tools/call': answer })
  await send(`${url}?workspace=other`, { body: request(1) })
  expect(front.seen[0]?.caller.workspace).toBe('other')
})

test.each([
  ['2024-11-05', '2024-11-05'],
  ['2025-11-25', '2025-11-25'],
  ['2026-07-28', '2025-11-25'],
])('initialize with %s is answered with %s, and opens no session', async (wanted, given) => {
  const url = await start()
  const params = { protocolVersion: wanted, capabilities: {}, clientInfo: { name: 'curl', version: '1.0' } }
  const reply = await send(url, { body: request(1, 'initialize', params) })
  expect([reply.status, reply.json.result?.protocolVersion]).toEqual([200, given])
  expect([front.sessions.size, front.channels.size, front.context.activeCalls.size]).toEqual([0, 0, 0])
})

test.each([
  ['ping', request(1, 'ping'), 200, undefined],
  ['an unknown method', request(1, 'no/such'), 200, -32601],
  ['a method of another era', request(1, 'server/discover'), 200, -32601],
  ['a wrong initialize', request(1, 'initialize'), 400, -32602],
  ['no message', { id: 1 }, 400, -32600],
])('%s is answered', async (_name, body, status, code) => {
  const url = await start()
  const reply = await send(url, { body })
  expect([reply.status, reply.json.error?.code, reply.json.id]).toEqual([status, code, 1])
})

test('bytes that are no JSON are rejected', async () => {
  const url = await start()
  const reply = await send(url, { body: 'hello' })
  expect([reply.status, reply.json.error?.code, reply.json.id]).toEqual([400, -32700, null])
})

test('notifications and responses get 202, and open no session', async () => {
  const url = await start()
  for (const body of [
    { jsonrpc: '2.0', method: 'notifications/initialized' },
    { jsonrpc: '2.0', id: 'gw-1', result: {} },
  ])
    expect(await send(url, { body })).toMatchObject({ status: 202, text: '' })
  expect(front.seen).toEqual([])
})

test('a batch is answered as an array', async () => {
  const url = await start({ 'tools/call': answer })
  const reply = await send(url, { body: [request(1), request(2, 'ping')] })
  expect(JSON.parse(reply.text).map(({ id }: { id: number }) => id)).toEqual([1, 2])
})

test('notifications are dropped, and a question gets an error', async () => {
  const answers: Answer[] = []
  const url = await start({
    'tools/call': exchange => {
      void exchange.sink({ kind: 'notice', method: 'notifications/progress', params: Json.of({ progress: 1 }) })
      void exchange.sink({
        kind: 'question',
        method: 'roots/list',
        params: Json.empty,
        withdrawn: NEVER,
        answer: reply => {
          answers.push(reply)
          void answer(exchange)
        },
      })
    },
  })
  const reply = await send(url, { body: request(1) })
  expect(reply.json.result).toEqual({ content: [] })
  expect(answers).toMatchObject([{ kind: 'error', error: { code: -32601 } }])
})

test('a client that disconnects cancels its call: it cannot resume it', async () => {
  const url = await start({ 'tools/call': () => {} })
  const leaving = new AbortController()
  const left = fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(request(1)),
    signal: leaving.signal,
  }).catch(() => 'left')
  await expect.poll(() => front.seen.length).toBe(1)
  leaving.abort()
  await left
  await expect.poll(() => front.seen[0]?.signal.reason).toEqual({ kind: 'gone' })
  expect(front.context.activeCalls.size).toBe(0)
})
