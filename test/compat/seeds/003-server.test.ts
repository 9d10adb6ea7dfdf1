import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { startGuarded } from '../../e2e/auth/guarded.ts'
import { openChannel } from '../../support/channel.ts'
import { send } from '../../support/raw.ts'
import { type Served, serve } from './served.ts'

/** Seed 003: `GET /sse` and `POST /message`, for OpenAI Agent Builder and curl. We are that server. */

let served: Served
beforeAll(async () => {
  served = await serve()
})
afterAll(() => served.close())

/** A POST as curl makes it in the document. */
const curl = (body: object | string, path = '/message') =>
  send(`${served.origin}${path}`, { headers: { accept: '*/*' }, body })

const call = (id: number, name: string, given: object = {}) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, arguments: given },
})
const initialize = (name: string, capabilities: object = {}) => ({
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2024-11-05', capabilities, clientInfo: { name, version: '1.0' } },
})

describe('the curl examples, without a session', () => {
  it('Initialize', async () => {
    const reply = await curl(initialize('curl'))
    expect([reply.status, reply.headers['content-type']]).toEqual([200, 'application/json'])
    expect(reply.json).toMatchObject({
      jsonrpc: '2.0',
      id: 1,
      result: { protocolVersion: '2024-11-05', capabilities: { tools: {} }, serverInfo: { name: 'demo' } },
    })
  })

  it('List Tools', async () => {
    const { json } = await curl({ jsonrpc: '2.0', id: 2, method: 'tools/list', params: {} })
    const tools = json.result?.tools as { name: string }[]
    expect(json.id).toBe(2)
    expect(tools.find(({ name }) => name === 'example-ping')).toMatchObject({
      description: 'Returns a simple pong response',
      inputSchema: { type: 'object' },
    })
    expect(tools.find(({ name }) => name === 'example-echo')).toMatchObject({
      description: 'Echoes back the provided message',
      inputSchema: {
        type: 'object',
        properties: { message: { type: 'string', description: 'The message to echo back' } },
        required: ['message'],
      },
    })
  })

  it('Call Tool', async () => {
    const reply = await curl(call(3, 'example-ping'))
    expect([reply.status, reply.json.id, reply.json.result?.content]).toEqual([
      200,
      3,
      [{ type: 'text', text: 'pong' }],
    ])
    const echo = await curl(call(3, 'example-echo', { message: 'Hello, World!' }))
    expect(echo.json.result?.content).toEqual([{ type: 'text', text: 'Echo: Hello, World!' }])
  })

  it('SSE Stream', async () => {
    const channel = await openChannel(`${served.origin}/sse`, { accept: '*/*' })
    expect(channel.status).toBe(200)
    channel.close()
  })

  it('the initialized notification gets 202 and nothing else; a tool that fails answers isError', async () => {
    expect(await curl({ jsonrpc: '2.0', method: 'notifications/initialized' })).toMatchObject({ status: 202, text: '' })
    const failed = await curl(call(3, 'test_error_handling'))
    expect(failed.json.result).toMatchObject({ isError: true, content: [{ type: 'text' }] })
    expect(failed.json.error).toBeUndefined()
    const image = await curl(call(4, 'test_image_content'))
    expect(image.json.result?.content).toEqual([{ type: 'image', data: expect.any(String), mimeType: 'image/png' }])
  })

  it.each([
    ['Parse error', '{"jsonrpc":', -32700],
    ['Invalid Request', { jsonrpc: '1.0', id: 1, method: 'ping' }, -32600],
    ['Method not found', { jsonrpc: '2.0', id: 1, method: 'no/such' }, -32601],
    ['Invalid params', call(1, 'example-echo'), -32602],
    ['Invalid params', call(1, 'no_such_tool'), -32602],
  ])('%s has its code', async (_name, body, code) => {
    const { json } = await curl(body)
    // A tool's own complaint about its arguments may come as its result.
    expect(json.error?.code ?? (json.result?.isError === true ? -32602 : undefined)).toBe(code)
  })
})

describe('a session', () => {
  it('has the answer in the body of the POST and on the stream', async () => {
    const channel = await openChannel(`${served.origin}/sse`)
    const path = `/message?session_id=${channel.id}`
    const direct = await curl(initialize('OpenAI Agent Builder', { roots: { listChanged: true } }), path)
    expect(direct.json.result).toMatchObject({ protocolVersion: '2024-11-05', serverInfo: { name: 'demo' } })
    expect(await channel.next()).toEqual({ event: 'message', data: direct.text })
    expect((await curl({ jsonrpc: '2.0', method: 'notifications/initialized' }, path)).status).toBe(202)
    const echo = await curl(call(3, 'example-echo', { message: 'Hello, World!' }), path)
    expect(echo.json.result?.content).toEqual([{ type: 'text', text: 'Echo: Hello, World!' }])
    expect(await channel.next()).toEqual({ event: 'message', data: echo.text })
    channel.close()
  })

  it('ends with an error event when its reader stops reading', async () => {
    const small = await serve({ limits: { streamLogBytes: 1_000_000 } })
    const channel = await openChannel(`${small.origin}/sse?events=lifecycle`)
    channel.response.pause()
    const message = 'x'.repeat(1_000_000)
    let status = 202
    for (let id = 1; id < 200 && status === 202; id++)
      status = (await channel.post(call(id, 'example-echo', { message }))).status
    expect(status).toBe(404)
    channel.response.resume()
    const error = await channel.nextOf('error')
    expect(JSON.parse(error.data)).toEqual({ code: -32603, message: expect.any(String) })
    await small.close()
  })
})

describe('pings', () => {
  afterEach(() => void vi.useRealTimers())

  it('come every 30 seconds, with empty data', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'Date'] })
    const slow = await serve()
    const channel = await openChannel(`${slow.origin}/sse?events=ping`)
    for (let count = 1; count <= 3; count++) {
      vi.advanceTimersByTime(30_000)
      expect(await channel.next()).toEqual({ event: 'ping', data: '' })
    }
    expect(channel.text()).toContain('event: ping\ndata: \n\n')
    await slow.close()
  })
})

describe('private codes', () => {
  it('-32001 without a token, -32002 over the limit', async () => {
    const guarded = await startGuarded({ limits: { rate: { perPrincipal: { perSecond: 2, burst: 0 } } } })
    const { headers } = await guarded.create()
    const post = (more: Record<string, string> = {}) =>
      send(`${guarded.origin}/message`, { headers: more, body: call(1, 'example-ping') })
    const outside = await post()
    expect([outside.status, outside.json.error?.code]).toEqual([401, -32001])
    const replies = await Promise.all(Array.from({ length: 5 }, () => post(headers)))
    const refused = replies.find(({ status }) => status === 429)
    expect([refused?.json.error?.code, Number(refused?.headers['retry-after'])]).toEqual([-32002, expect.any(Number)])
    expect(replies.find(({ status }) => status === 200)?.json.result?.content).toEqual([{ type: 'text', text: 'pong' }])
    await guarded.close()
  })
})
