import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Created, type Guarded, startGuarded } from '../../e2e/auth/guarded.ts'
import { openStream, send } from '../../support/raw.ts'
import { type Served, serve } from './served.ts'

/** Seed 001: a Streamable HTTP server at `/mcp`, as its guide wants every server to be. We are that server. */

let served: Served
let url: string
beforeAll(async () => {
  served = await serve()
  url = `${served.origin}/mcp`
})
afterAll(() => served.close())

const ACCEPT = 'application/json, text/event-stream'
const INITIALIZE = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: {
    protocolVersion: '2025-06-18',
    capabilities: {},
    clientInfo: { name: 'ExampleClient', version: '1.0.0' },
  },
}
const INITIALIZED = { jsonrpc: '2.0', method: 'notifications/initialized' }

/** Shakes hands as section 2 shows; the headers of everything after it are those of section 6. */
const connect = async (at = url, more: Record<string, string> = {}) => {
  const reply = await send(at, { headers: { accept: ACCEPT, ...more }, body: INITIALIZE })
  const headers = {
    accept: ACCEPT,
    'mcp-session-id': String(reply.headers['mcp-session-id']),
    'mcp-protocol-version': '2025-06-18',
    ...more,
  }
  return { reply, headers, initialized: await send(at, { headers, body: INITIALIZED }) }
}

const call = (id: number, name: string, given: object = {}) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, arguments: given },
})

describe('the checklist', () => {
  it('initialize: a result with capabilities and serverInfo', async () => {
    const { reply } = await connect()
    expect([reply.status, reply.headers['content-type'], reply.json.id]).toEqual([200, 'application/json', 1])
    expect(reply.json.result).toMatchObject({
      protocolVersion: '2025-06-18',
      capabilities: { tools: { listChanged: true } },
      serverInfo: { name: 'demo', title: 'Demo', version: expect.any(String) },
      instructions: expect.any(String),
    })
  })

  it('initialized: 202 without a body', async () => {
    const { initialized } = await connect()
    expect([initialized.status, initialized.text]).toEqual([202, ''])
  })

  it('tool discovery: the definitions', async () => {
    const { headers } = await connect()
    const reply = await send(url, { headers, body: { jsonrpc: '2.0', id: 2, method: 'tools/list', params: {} } })
    const tools = reply.json.result?.tools as Record<string, unknown>[]
    expect(tools.find(({ name }) => name === 'example-echo')).toMatchObject({
      title: 'Echo',
      description: 'Echoes back the provided message',
      inputSchema: { type: 'object', required: ['message'] },
    })
    expect(tools.find(({ name }) => name === 'test_structured_content')).toHaveProperty('outputSchema')
  })

  it('tool calls: content and structuredContent', async () => {
    const { headers } = await connect()
    const reply = await send(url, { headers, body: call(3, 'test_structured_content') })
    const result = reply.json.result as { content: { text: string }[]; structuredContent: object }
    expect(result.structuredContent).toEqual({ temperature: 22.5, conditions: 'sunny' })
    expect(JSON.parse(result.content[0]?.text ?? '')).toEqual(result.structuredContent)
    expect([reply.json.id, 'isError' in result && result.isError]).toEqual([3, false])
  })

  it('error paths: an unknown tool is a JSON-RPC error, a failing one a result with isError', async () => {
    const { headers } = await connect()
    const unknown = await send(url, { headers, body: call(3, 'no_such_tool') })
    expect([unknown.status, unknown.json.id, unknown.json.error?.code]).toEqual([200, 3, -32602])
    const failing = await send(url, { headers, body: call(4, 'test_error_handling') })
    expect(failing.json.result).toMatchObject({ isError: true, content: [{ type: 'text' }] })
    const method = await send(url, { headers, body: { jsonrpc: '2.0', id: 5, method: 'no/such' } })
    expect([method.json.id, method.json.error?.code]).toEqual([5, -32601])
  })

  describe('auth', () => {
    let guarded: Guarded
    let token: Created
    beforeAll(async () => {
      guarded = await startGuarded()
      token = await guarded.create()
    })
    afterAll(() => guarded.close())

    it('missing or invalid Authorization: 401', async () => {
      for (const headers of [{}, { authorization: 'Bearer wrong' }]) {
        const reply = await send(guarded.url, { headers, body: INITIALIZE })
        expect([reply.status, reply.json.error?.code]).toEqual([401, -32001])
        expect(reply.headers['www-authenticate']).toContain('Bearer')
      }
      const { headers } = await connect(guarded.url, token.headers)
      const reply = await send(guarded.url, { headers, body: call(1, 'example-ping') })
      expect(reply.json.result?.content).toEqual([{ type: 'text', text: 'pong' }])
    })
  })

  it('Origin check enforced', async () => {
    const headers = { origin: 'https://evil.example.com' }
    expect((await send(url, { headers, body: INITIALIZE })).status).toBe(403)
    expect((await send(url, { headers: { origin: served.origin }, body: INITIALIZE })).status).toBe(200)
  })
})

describe('the rest of the guide', () => {
  it('section 1: a batch is answered as one, a batch of notifications with 202', async () => {
    const { headers } = await connect()
    const ping = { jsonrpc: '2.0', id: 2, method: 'ping' }
    const reply = await send(url, { headers, body: [call(1, 'example-ping'), INITIALIZED, ping] })
    expect(JSON.parse(reply.text).map(({ id }: { id: number }) => id)).toEqual([1, 2])
    expect(await send(url, { headers, body: [INITIALIZED] })).toMatchObject({ status: 202, text: '' })
  })

  it('section 4: a body that is neither a message nor a batch is refused', async () => {
    expect((await send(url, { body: '"hello"' })).status).toBe(400)
  })

  it('section 6: a missing session is 400, an ended one 404', async () => {
    const missing = await send(url, { body: call(1, 'example-ping') })
    expect([missing.status, missing.json.error]).toEqual([
      400,
      { code: -32600, message: 'Bad Request: Missing session ID' },
    ])
    const { headers } = await connect()
    expect((await send(url, { method: 'DELETE', headers })).status).toBe(200)
    expect((await send(url, { headers, body: call(1, 'example-ping') })).status).toBe(404)
  })

  it('section 7: progress as events before the answer, and GET for what belongs to no request', async () => {
    const { headers } = await connect()
    const params = { name: 'test_tool_with_progress', arguments: {}, _meta: { progressToken: 'p' } }
    const stream = await openStream(url, { headers, body: { jsonrpc: '2.0', id: 9, method: 'tools/call', params } })
    expect(stream.headers['content-type']).toBe('text/event-stream')
    const events = await stream.all()
    const notice = 'notifications/progress'
    expect(events.map(({ json }) => json.method ?? json.id)).toEqual([notice, notice, notice, 9])
    expect(events.every(({ id }) => id !== undefined)).toBe(true)
    const inbox = await openStream(url, { method: 'GET', headers })
    await send(url, { headers, body: call(10, 'test_trigger_tool_change') })
    expect((await inbox.next())?.json.method).toBe('notifications/tools/list_changed')
    const missed = { ...headers, 'last-event-id': String(events[1]?.id) }
    const resumed = await openStream(url, { method: 'GET', headers: missed })
    expect((await resumed.all()).map(({ json }) => json.method ?? json.id)).toEqual([notice, 9])
    inbox.close()
  })
})
