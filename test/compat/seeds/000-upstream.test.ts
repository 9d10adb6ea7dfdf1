import { afterEach, describe, expect, it } from 'vitest'
import { MODERN, NEWEST_LEGACY } from '../../../src/protocol/revisions.ts'
import type { MatrixClient } from '../../matrix/client.ts'
import { sessionClient } from '../../matrix/session-client.ts'
import { statelessClient } from '../../matrix/stateless-client.ts'
import { type Arrived, type Script, scriptedServer } from '../../support/scripted-server.ts'
import { serve } from './served.ts'

/** Seed 000: an agent memory over Streamable HTTP; every answer is one SSE message. It is behind us. */

const TOOLS = [
  ...['add_memory', 'search_nodes', 'search_memory_facts', 'delete_entity_edge', 'delete_episode'],
  ...['get_entity_edge', 'get_episodes', 'clear_graph', 'get_status'],
]
const INTRODUCTION = {
  protocolVersion: '2024-11-05',
  capabilities: {
    experimental: {},
    prompts: { listChanged: false },
    resources: { subscribe: false, listChanged: false },
    tools: { listChanged: false },
  },
  serverInfo: { name: 'Graphiti Agent Memory', version: '1.21.0' },
  instructions: 'Graphiti is a memory service for AI agents...',
}
const STATUS = {
  status: 'ok',
  message: 'Graphiti MCP server is running and connected to falkordb database',
}

/** The server of the document, with its session ids, and the errors it answers under an id of its own. */
const graphiti = () => {
  const sessions = new Set<string>()
  let count = 0

  const refuse = (response: Arrived['response'], status: number, message: string): void => {
    response.writeHead(status, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ jsonrpc: '2.0', id: 'server-error', error: { code: -32600, message } }))
  }
  const say = (response: Arrived['response'], message: object, headers = {}): void => {
    response.writeHead(200, { 'content-type': 'text/event-stream', ...headers })
    response.end(`event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`)
  }
  const answer = ({ method, params = {} }: Arrived['body']): object => {
    if (method === 'tools/list')
      return { result: { tools: TOOLS.map(name => ({ name, inputSchema: { type: 'object' } })) } }
    if (method !== 'tools/call') return { error: { code: -32601, message: 'Method not found' } }
    if (params.name !== 'get_status') return { error: { code: -32602, message: `Unknown tool: ${params.name}` } }
    const content = [{ type: 'text', text: JSON.stringify(STATUS) }]
    return { result: { content, structuredContent: STATUS, isError: false } }
  }

  const script: Script = ({ method, headers, body }, response) => {
    const accept = headers.accept ?? ''
    if (!accept.includes('application/json') || !accept.includes('text/event-stream'))
      return refuse(response, 406, 'Not Acceptable: Client must accept both application/json and text/event-stream')
    if (body.method === 'initialize') {
      const session = `047eb56945e0462b84daa562dd6d8f7${++count}`
      sessions.add(session)
      return say(response, { id: body.id, result: INTRODUCTION }, { 'mcp-session-id': session })
    }
    const session = headers['mcp-session-id']
    if (session === undefined) return refuse(response, 400, 'Bad Request: Missing session ID')
    if (!sessions.has(String(session))) return refuse(response, 404, 'Session not found')
    if (method !== 'POST') return void response.writeHead(method === 'DELETE' ? 200 : 405).end()
    if (body.id === undefined) return void response.writeHead(202).end()
    if (body.params?.name === 'clear_graph')
      return say(response, { id: 'server-error', error: { code: -32600, message: 'Not allowed here' } })
    say(response, { id: body.id, ...answer(body) })
  }
  return { script, sessions }
}

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

/** The server behind a redirect, a gateway before it, and a client of ours. */
const play = async (open: (url: string) => Promise<MatrixClient>) => {
  const { script, sessions } = graphiti()
  const server = await scriptedServer(script)
  const door = await scriptedServer(
    ({ url }, response) => void response.writeHead(308, { location: `${server.origin}${url}` }).end(),
  )
  const gateway = await serve({
    mcpServers: { graphiti: { url: `${door.origin}/mcp/`, allowCrossOriginRedirect: true } },
  })
  closing.push(server.close, door.close, gateway.close)
  const client = await open(`${gateway.origin}/mcp`)
  closing.push(() => client.close())
  return { server, door, sessions, client }
}

const CLIENTS: [string, (url: string) => Promise<MatrixClient>][] = [
  [MODERN, url => statelessClient(url, {})],
  [NEWEST_LEGACY, url => sessionClient(url, NEWEST_LEGACY, {})],
]

describe.each(CLIENTS)('a client of %s', (_, open) => {
  it('initializes, lists and calls, in the session the server gave', async () => {
    const { server, client, sessions } = await play(open)
    const { result } = await client.call('tools/list')
    expect(result?.tools).toMatchObject(TOOLS.map(name => ({ name })))
    const status = await client.call('tools/call', { name: 'get_status', arguments: {} })
    expect(status.result).toMatchObject({
      content: [{ type: 'text', text: JSON.stringify(STATUS) }],
      structuredContent: STATUS,
      isError: false,
    })
    for (const { headers } of [...server.of('tools/list'), ...server.of('tools/call')]) {
      expect(sessions).toContain(headers['mcp-session-id'])
      expect(headers).not.toHaveProperty('mcp-protocol-version') // it speaks a revision that has none
    }
  })

  it('goes straight to where a permanent redirect led', async () => {
    const { server, door, client } = await play(open)
    await client.call('tools/list')
    const knocks = door.arrivals.length
    for (let i = 0; i < 3; i++) await client.call('tools/call', { name: 'get_status', arguments: {} })
    expect(door.arrivals).toHaveLength(knocks)
    expect(server.of('tools/call')).toHaveLength(3)
    expect(server.of('tools/call')[0]?.url).toBe('/mcp/')
  })

  it('is told the server’s own words, under its own id, whatever id the server wrote', async () => {
    const { client } = await play(open)
    expect((await client.call('tools/call', { name: 'add_episode', arguments: {} })).error).toMatchObject({
      code: -32602,
      message: 'Unknown tool: add_episode',
    })
    expect((await client.call('tools/call', { name: 'clear_graph', arguments: {} })).error).toMatchObject({
      code: -32600,
      message: 'Not allowed here',
    })
  })

  it('does not notice that the server forgot its session', async () => {
    const { server, sessions, client } = await play(open)
    await client.call('tools/list')
    const before = server.of('initialize').length
    sessions.clear()
    const { result } = await client.call('tools/call', { name: 'get_status', arguments: {} })
    expect(result).toMatchObject({ structuredContent: STATUS })
    expect(server.of('initialize')).toHaveLength(before + 1)
  })
})

it('is probed once, and never without the headers it insists on', async () => {
  const { server, client } = await play(url => statelessClient(url, {}))
  for (let i = 0; i < 3; i++) await client.call('tools/list')
  expect(server.of('server/discover')).toHaveLength(1)
  const insisting = server.of('POST').map(({ headers }) => headers.accept)
  expect(new Set(insisting)).toEqual(new Set(['application/json, text/event-stream']))
})
