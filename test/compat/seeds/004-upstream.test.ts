import { afterEach, describe, expect, it } from 'vitest'
import { MODERN, NEWEST_LEGACY } from '../../../src/protocol/revisions.ts'
import type { MatrixClient } from '../../matrix/client.ts'
import { sessionClient } from '../../matrix/session-client.ts'
import { statelessClient } from '../../matrix/stateless-client.ts'
import { type Arrived, scriptedServer } from '../../support/scripted-server.ts'
import { serve } from './served.ts'

/** Seed 004: one URL, requests posted to it, answers as `event: response` on its stream, no handshake. It is behind us. */

const ISSUES = 'github/list_issues'

const lifecycle = (method: string, params: object): string =>
  `event: lifecycle\ndata: ${JSON.stringify({ jsonrpc: '2.0', method, params })}\n\n`

/** The gateway of the document: it knows tools and nothing else. */
const hub = async () => {
  const streams = new Set<Arrived['response']>()
  let answers = true
  const answer = ({ method, params = {} }: Arrived['body']): object => {
    if (method === 'tools/list') return { result: { tools: [{ name: ISSUES, description: 'List GitHub issues' }] } }
    if (method !== 'tools/call') return { error: { code: -32601, message: 'Method not found' } }
    if (params.name !== ISSUES) return { error: { code: -32602, message: `Unknown tool ${params.name}` } }
    if ((params.arguments as { repo?: string }).repo === 'user/busy')
      return { error: { code: -32603, message: 'GitHub API rate limit exceeded', data: { retry_after: 3600 } } }
    return { result: { content: [{ type: 'text', text: 'Issue list: ...' }] } }
  }
  const server = await scriptedServer(({ method, url, body }, response) => {
    if (url !== '/mcp/workspace') return void response.writeHead(404).end()
    if (method === 'GET') {
      streams.add(response)
      response.on('close', () => streams.delete(response))
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      return void response.write(lifecycle('streamOpened', { timestamp: '2025-01-11T12:00:00Z' }))
    }
    if (method !== 'POST') return void response.writeHead(405).end()
    response.writeHead(202).end()
    if (body.id === undefined || !answers) return
    const message = JSON.stringify({ jsonrpc: '2.0', id: body.id, ...answer(body) })
    for (const stream of streams) stream.write(`event: response\ndata: ${message}\n\n`)
  })
  return {
    ...server,
    ping: () => {
      for (const stream of streams) stream.write(lifecycle('ping', { timestamp: '2025-01-11T12:01:00Z' }))
    },
    shutDown: () => {
      for (const stream of streams) stream.end(lifecycle('streamClosed', { reason: 'shutdown' }))
    },
    fallSilent: (isSilent: boolean) => {
      answers = !isSilent
    },
  }
}

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const play = async (open: (url: string) => Promise<MatrixClient>) => {
  const server = await hub()
  const gateway = await serve({ mcpServers: { hub: { url: `${server.origin}/mcp/workspace` } } })
  closing.push(server.close, gateway.close)
  const client = await open(`${gateway.origin}/mcp`)
  closing.push(() => client.close())
  const issues = (repo: string) => client.call('tools/call', { name: ISSUES, arguments: { repo } })
  return { server, client, issues }
}

const CLIENTS: [string, (url: string) => Promise<MatrixClient>][] = [
  [MODERN, url => statelessClient(url, {})],
  [NEWEST_LEGACY, url => sessionClient(url, NEWEST_LEGACY, {})],
]

describe.each(CLIENTS)('a client of %s', (_, open) => {
  it('lists and calls without any handshake at the server', async () => {
    const { server, client, issues } = await play(open)
    expect((await client.call('tools/list')).result?.tools).toMatchObject([{ name: ISSUES }])
    server.ping()
    expect((await issues('user/repo')).result).toMatchObject({ content: [{ type: 'text', text: 'Issue list: ...' }] })
    expect(server.of('notifications/initialized')).toHaveLength(0)
    expect(server.of('tools/call')[0]?.url).toBe('/mcp/workspace')
  })

  it('gets the server’s error with what it adds to it', async () => {
    const { issues } = await play(open)
    expect((await issues('user/busy')).error).toMatchObject({
      code: -32603,
      message: 'GitHub API rate limit exceeded',
      data: { retry_after: 3600 },
    })
  })

  it('gets one clear error when the server shuts its stream, and the next call opens another', async () => {
    const { server, issues } = await play(open)
    expect((await issues('user/repo')).result).toBeDefined()
    server.fallSilent(true)
    const call = issues('user/repo')
    await server.arrived('tools/call', 2)
    server.shutDown()
    expect((await call).error).toMatchObject({ code: -32603, data: { reason: 'upstream_stream_lost' } })
    server.fallSilent(false)
    const before = server.of('GET').length
    expect((await issues('user/repo')).result).toMatchObject({ content: [{ text: 'Issue list: ...' }] })
    expect(server.of('GET')).toHaveLength(before + 1)
  })
})
