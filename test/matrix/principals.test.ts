import { expect, test } from 'vitest'
import { startGuarded } from '../e2e/auth/guarded.ts'
import { openChannel } from '../support/channel.ts'
import { modern, openSession, openStream, send } from '../support/raw.ts'
import { clientOf, inCell, serverOf } from './cells.ts'
import type { MatrixServer } from './server.ts'
import { sessionServer } from './session-server.ts'

const FORM = { mode: 'form', message: 'Name?', requestedSchema: { type: 'object', properties: {} } }
const accept = { action: 'accept', content: {} }

/** A legacy server with a counter in each of its sessions, and a tool that asks. */
const countingServer = async () => {
  const server = await sessionServer('2025-11-25')
  const counts = new Map<unknown, number>()
  server.tools.set('count', () => {
    const session = server.of('tools/call').at(-1)?.headers['mcp-session-id']
    counts.set(session, (counts.get(session) ?? 0) + 1)
    return { content: [{ type: 'text', text: String(counts.get(session)) }] }
  })
  server.tools.set('ask', async call => {
    await call.ask('n', 'elicitation/create', FORM)
    return { content: [] }
  })
  return server
}
const call = (id: number, name: string, more: object = {}) =>
  modern(id, 'tools/call', { name, ...more }, { capabilities: { elicitation: {} } })
const sessionsOf = (server: MatrixServer) =>
  server.of('tools/call').map(({ headers }) => headers['mcp-session-id'] as string)
const textIn = (result: Record<string, unknown> | undefined) =>
  (result?.content as { text: string }[] | undefined)?.[0]?.text

test('F1: one user’s requests continue one session, whatever the connection; another user has another', async () => {
  const server = await countingServer()
  const gateway = await startGuarded({ server: server.config })
  const [ann, bob] = [await gateway.create(), await gateway.create()]
  const count = async (who: typeof ann, id: number) => {
    const { headers, body } = call(id, 'count')
    return textIn((await send(gateway.url, { headers: { ...headers, ...who.headers }, body })).json.result)
  }
  expect([await count(ann, 1), await count(ann, 2), await count(bob, 3), await count(ann, 4)]).toEqual([
    '1',
    '2',
    '1',
    '3',
  ])
  const [first, second, other, last] = sessionsOf(server)
  expect([first === second, first === other, first === last]).toEqual([true, false, true])
  for (const { headers } of server.arrivals) expect(headers.authorization).toBeUndefined()
  await gateway.close()
  await server.close()
})

test('F2: callers nobody knows get a session for each exchange, which ends with it', async () => {
  const server = await countingServer()
  const gateway = await startGuarded({ server: server.config, insecure: true })
  const deleted = () =>
    server.arrivals.filter(({ verb }) => verb === 'DELETE').map(({ headers }) => headers['mcp-session-id'])
  for (const id of [1, 2, 3]) expect(textIn((await send(gateway.url, call(id, 'count'))).json.result)).toBe('1')
  await expect.poll(() => deleted()).toEqual(expect.arrayContaining(sessionsOf(server)))
  expect(new Set(sessionsOf(server)).size).toBe(3)

  // The rounds of a call are one exchange.
  const first = (await send(gateway.url, call(4, 'ask'))).json.result
  const asking = sessionsOf(server).at(-1)
  expect(first?.resultType).toBe('input_required')
  expect(deleted()).not.toContain(asking)
  const more = { requestState: first?.requestState, inputResponses: { q1: accept } }
  const opened = server.of('initialize').length
  expect((await send(gateway.url, call(5, 'ask', more))).json.result?.resultType).toBe('complete')
  await expect.poll(() => deleted()).toContain(asking)
  expect(server.of('tools/call')).toHaveLength(4)
  expect(server.of('initialize')).toHaveLength(opened) // a caller who answers must not depend on a further session
  await gateway.close()
  await server.close()
})

test('F8: a session and a parked state of one user are nobody else’s, and the server hears nothing of the attempt', async () => {
  const server = await countingServer()
  const gateway = await startGuarded({ server: server.config })
  const [ann, mallory] = [await gateway.create(), await gateway.create()]
  const as = (who: typeof ann, { headers, body }: ReturnType<typeof call>) =>
    send(gateway.url, { headers: { ...headers, ...who.headers }, body })
  const hello = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 't', version: '1' } }
  const opened = await send(gateway.url, {
    headers: ann.headers,
    body: { jsonrpc: '2.0', id: 0, method: 'initialize', params: hello },
  })
  const session = { 'mcp-session-id': String(opened.headers['mcp-session-id']), 'mcp-protocol-version': '2025-11-25' }
  const parked = (await as(ann, call(1, 'ask'))).json.result
  const answered = { requestState: parked?.requestState, inputResponses: { q1: accept } }
  const heard = server.arrivals.length

  const stolen = { ...session, ...mallory.headers }
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'count' } }
  expect((await send(gateway.url, { headers: stolen, body })).status).toBe(404)
  const stream = await openStream(gateway.url, { method: 'GET', headers: { ...stolen, accept: 'text/event-stream' } })
  expect(stream.status).toBe(404)
  stream.close()
  expect((await send(gateway.url, { method: 'DELETE', headers: stolen })).status).toBe(404)
  const refused = (await as(mallory, call(2, 'ask', answered))).json.error
  expect(refused).toMatchObject({ code: -32602, data: { reason: 'invalid_request_state' } })
  expect(JSON.stringify(refused)).not.toMatch(/principal|user|owner/i)
  const since = server.arrivals.slice(heard).filter(({ verb, message }) => verb === 'POST' && message.method !== 'ping')
  expect(since.map(({ message }) => message.method ?? message.result)).not.toContain('tools/call')
  expect(since.filter(({ message }) => message.method === undefined)).toEqual([])

  expect((await as(ann, call(3, 'ask', answered))).json.result?.resultType).toBe('complete')
  expect((await send(gateway.url, { headers: { ...session, ...ann.headers }, body })).status).toBe(200)
  expect(server.of('tools/call').map(({ message }) => message.params?.name)).toEqual(['ask', 'count'])
  await gateway.close()
  await server.close()
})

test('F9: a page of a foreign origin is refused at every door, by every verb, and the server hears nothing', async () => {
  await inCell(clientOf('2026-07-28'), serverOf('2025-11-25'), {}, async ({ server, url }) => {
    const { headers: session } = await openSession(url)
    const { headers, body } = modern(1, 'tools/list')
    const channel = await openChannel(new URL('/sse', url).href)
    const endpoint = new URL(channel.endpoint, url).href
    server.arrivals.length = 0
    for (const origin of ['https://evil.test', 'null', 'http://127.0.0.1.evil.test', 'file://']) {
      const foreign = { origin }
      const tries: [string, Parameters<typeof send>[1]][] = [
        [url, { headers: { ...headers, ...foreign }, body }],
        [url, { headers: { ...session, ...foreign }, body: { jsonrpc: '2.0', id: 1, method: 'tools/list' } }],
        [url, { method: 'GET', headers: { ...session, ...foreign, accept: 'text/event-stream' } }],
        [url, { method: 'DELETE', headers: { ...session, ...foreign } }],
        [url, { method: 'OPTIONS', headers: { ...foreign, 'access-control-request-method': 'POST' } }],
        [url, { method: 'PUT', headers: foreign }],
        [new URL('/sse', url).href, { method: 'GET', headers: { ...foreign, accept: 'text/event-stream' } }],
        [endpoint, { headers: foreign, body: { jsonrpc: '2.0', id: 1, method: 'ping' } }],
        [new URL('/message', url).href, { headers: foreign, body: { jsonrpc: '2.0', id: 1, method: 'ping' } }],
      ]
      for (const [address, request] of tries) {
        const reply = await send(address, request)
        expect([origin, request?.method ?? 'POST', address, reply.status]).toEqual([
          origin,
          request?.method ?? 'POST',
          address,
          403,
        ])
        expect(reply.headers['access-control-allow-origin']).toBeUndefined()
      }
    }
    expect(server.arrivals).toEqual([])
    channel.close()
  })
})
