import { afterEach, describe, expect, it } from 'vitest'
import { MODERN, NEWEST_LEGACY } from '../../../src/protocol/revisions.ts'
import type { MatrixClient } from '../../matrix/client.ts'
import { sessionClient } from '../../matrix/session-client.ts'
import { statelessClient } from '../../matrix/stateless-client.ts'
import { type Arrived, scriptedServer } from '../../support/scripted-server.ts'
import { serve } from './served.ts'

/** Seed 003: answers both in the reply and on the channel, pings, wants a token, limits the rate. It is behind us. */

const TOKEN = 'kulturarv-token-1'
const TOOLS = [
  {
    name: 'example-ping',
    description: 'Returns a simple pong response',
    inputSchema: { type: 'object', properties: {}, required: [] },
  },
  {
    name: 'example-echo',
    description: 'Echoes back the provided message',
    inputSchema: {
      type: 'object',
      properties: { message: { type: 'string', description: 'The message to echo back' } },
      required: ['message'],
    },
  },
]

const text = (text: string, isError = false) => ({ result: { content: [{ type: 'text', text }], isError } })
const error = (code: number, message: string) => ({ error: { code, message } })

const answer = ({ method, params = {} }: Arrived['body']): object => {
  const serverInfo = { name: 'kulturarv-mcp-server', version: '1.0.0' }
  if (method === 'initialize')
    return { result: { protocolVersion: '2024-11-05', capabilities: { tools: {} }, serverInfo } }
  if (method === 'tools/list') return { result: { tools: TOOLS } }
  if (method !== 'tools/call') return error(-32601, 'Method not found')
  if (params.name === 'example-ping') return text('pong')
  if (params.name === 'broken') return text('Error: Could not connect to API', true)
  if (params.name === 'failing') return error(-32000, 'Tool execution error')
  return text(`Echo: ${(params.arguments as { message?: string }).message}`)
}

/** The server of the document. `answers`: it pushes to the channel too where a session id was given. */
const kulturarv = async () => {
  const channels = new Map<string, Arrived['response']>()
  let limit = Number.POSITIVE_INFINITY
  let count = 0
  const server = await scriptedServer(({ method, url, headers, body }, response) => {
    const { pathname, searchParams } = new URL(url, server.origin)
    const reply = (status: number, message: object, more = {}): void => {
      response.writeHead(status, { 'content-type': 'application/json', ...more })
      response.end(JSON.stringify({ jsonrpc: '2.0', id: body.id ?? null, ...message }))
    }
    if (headers.authorization !== `Bearer ${TOKEN}`) return reply(401, error(-32001, 'Authentication required'))
    if (method === 'GET' && pathname === '/sse') {
      const session = `abc123-def45${++count}`
      channels.set(session, response)
      response.on('close', () => channels.delete(session))
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      return void response.write(`event: endpoint\ndata: /message?session_id=${session}\n\nevent: ping\ndata: \n\n`)
    }
    if (method !== 'POST' || pathname !== '/message') return reply(405, { detail: 'Method Not Allowed' })
    if (body.id === undefined) return void response.writeHead(202).end()
    if (body.method === 'tools/call' && limit-- <= 0) return reply(429, error(-32002, 'Rate limit exceeded'))
    if (body.params?.name === 'hanging') return void response.writeHead(202).end()
    const message = answer(body)
    reply(200, message)
    const pushed = JSON.stringify({ jsonrpc: '2.0', id: body.id, ...message })
    channels.get(searchParams.get('session_id') ?? '')?.write(`event: message\ndata: ${pushed}\n\n`)
  })
  return {
    ...server,
    push: (raw: string) => {
      for (const channel of channels.values()) channel.write(raw)
    },
    allow: (calls: number) => {
      limit = calls
    },
  }
}

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const play = async (open: (url: string) => Promise<MatrixClient>, token = TOKEN) => {
  const server = await kulturarv()
  const headers = { Authorization: `Bearer ${token}` }
  const gateway = await serve({ mcpServers: { kulturarv: { url: `${server.origin}/sse`, headers } } })
  closing.push(server.close, gateway.close)
  const client = await open(`${gateway.origin}/mcp`)
  closing.push(() => client.close())
  const call = (name: string, given: object = {}) => client.call('tools/call', { name, arguments: given })
  return { server, client, call }
}

const modern = (url: string) => statelessClient(url, {})
const CLIENTS: [string, (url: string) => Promise<MatrixClient>][] = [
  [MODERN, modern],
  [NEWEST_LEGACY, url => sessionClient(url, NEWEST_LEGACY, {})],
]

describe.each(CLIENTS)('a client of %s', (_, open) => {
  it('lists and calls, and gets one answer of the two', async () => {
    const { client, call } = await play(open)
    expect((await client.call('tools/list')).result?.tools).toEqual(TOOLS)
    for (let i = 0; i < 5; i++) {
      const { result, notices } = await call('example-echo', { message: `Hello, World ${i}!` })
      expect(result).toMatchObject({ content: [{ type: 'text', text: `Echo: Hello, World ${i}!` }], isError: false })
      expect(notices).toEqual([])
    }
  })

  it('reads the failure of a tool as a result, and an error as an error', async () => {
    const { call } = await play(open)
    expect((await call('broken')).result).toMatchObject({
      content: [{ text: 'Error: Could not connect to API' }],
      isError: true,
    })
    expect((await call('failing')).error).toMatchObject({ code: -32000, message: 'Tool execution error' })
  })

  it('is not reached by pings, and fails with an error event', async () => {
    const { server, call } = await play(open)
    expect((await call('example-ping')).result).toMatchObject({ content: [{ text: 'pong' }] })
    const hanging = call('hanging')
    await server.until(() => server.of('tools/call').some(({ body }) => body.params?.name === 'hanging'), 'the call')
    server.push('event: ping\ndata: \n\n'.repeat(3))
    server.push('event: error\ndata: {"code":-32603,"message":"Internal error"}\n\n')
    const { error, notices } = await hanging
    expect(error).toMatchObject({ code: -32603, message: 'Internal error' })
    expect(notices).toEqual([])
  })

  it('is told that the server has too much to do', async () => {
    const { server, call } = await play(open)
    server.allow(1)
    expect((await call('example-ping')).result).toBeDefined()
    expect((await call('example-ping')).error).toMatchObject({
      message: 'Server "kulturarv" has too much to do (HTTP 429): try again later',
      data: { reason: 'upstream_busy' },
    })
  })
})

it('says which credentials to look at when the token is wrong, and does not show it', async () => {
  const { client } = await play(modern, 'wrong-token-77')
  const { error } = await client.call('tools/list')
  expect(error?.message).toContain(
    'refused our credentials (HTTP 401: "Authentication required"): check its "headers" in the configuration',
  )
  expect(JSON.stringify(error)).not.toContain('wrong-token-77')
})
