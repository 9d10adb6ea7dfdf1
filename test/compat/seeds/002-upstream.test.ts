import { afterEach, describe, expect, it } from 'vitest'
import { MODERN, NEWEST_LEGACY } from '../../../src/protocol/revisions.ts'
import type { MatrixClient } from '../../matrix/client.ts'
import { sessionClient } from '../../matrix/session-client.ts'
import { statelessClient } from '../../matrix/stateless-client.ts'
import { type Arrived, scriptedServer } from '../../support/scripted-server.ts'
import { serve } from './served.ts'

/** Seed 002: a daemon whose channel begins with a bare `data:` line, the absolute address for messages. It is behind us. */

type State = 'connecting' | 'initializing' | 'ready'

interface Channel {
  readonly response: Arrived['response']
  state: State
}

const LISTING = { dirs: ['src', 'tests'], files: ['main.py'] }

/** The daemon of the document: it takes calls only when its client is ready, and answers on the channel. */
const serena = async () => {
  const channels = new Map<string, Channel>()
  const waiting: (() => void)[] = [] // calls that are answered when the test says so
  let holds = false
  let count = 0

  const answer = ({ method, params = {} }: Arrived['body'], channel: Channel): object => {
    if (method === 'initialize') {
      channel.state = 'initializing'
      const serverInfo = { name: 'serena', version: '0.1.0' }
      return { result: { protocolVersion: '2024-11-05', capabilities: { tools: {} }, serverInfo } }
    }
    if (channel.state !== 'ready') return { error: { code: -32600, message: 'Invalid request: not initialized' } }
    if (method === 'tools/list') return { result: { tools: [{ name: 'list_dir', inputSchema: { type: 'object' } }] } }
    if (method !== 'tools/call') return { error: { code: -32601, message: 'Method not found' } }
    const given = params.arguments as { relative_path?: string }
    if (given.relative_path === undefined)
      return { error: { code: -32602, message: "Invalid params: missing required field 'relative_path'" } }
    const text = given.relative_path === '.' ? JSON.stringify(LISTING) : given.relative_path
    return { result: { content: [{ type: 'text', text }], isError: false } }
  }

  const server = await scriptedServer(({ method, url, body }, response) => {
    const { pathname, searchParams } = new URL(url, server.origin)
    if (method === 'GET' && pathname === '/sse') {
      const session = `abc123def45${++count}`
      channels.set(session, { response, state: 'connecting' })
      response.on('close', () => channels.delete(session))
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      return void response.write(`data: ${server.origin}/messages/?session_id=${session}\n\n`)
    }
    const channel = channels.get(searchParams.get('session_id') ?? '')
    if (pathname !== '/messages/' || !channel) return void response.writeHead(404).end('Could not find session')
    response.writeHead(202).end('Accepted')
    if (body.method === 'notifications/initialized') channel.state = 'ready'
    if (body.id === undefined) return
    const reply = { jsonrpc: '2.0', id: body.id, ...answer(body, channel) }
    const send = () => void channel.response.write(`event: message\ndata: ${JSON.stringify(reply)}\n\n`)
    if (holds && body.method === 'tools/call') waiting.push(send)
    else send()
  })

  return {
    ...server,
    channels,
    hold: () => {
      holds = true
    },
    /** Answers what waits, the last first. */
    release: () => {
      for (const send of waiting.splice(0).reverse()) send()
    },
  }
}

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const play = async (open: (url: string) => Promise<MatrixClient>, entry: object = {}) => {
  const daemon = await serena()
  const gateway = await serve({ mcpServers: { serena: { url: `${daemon.origin}/sse`, ...entry } } })
  closing.push(daemon.close, gateway.close)
  const client = await open(`${gateway.origin}/mcp`)
  closing.push(() => client.close())
  return { daemon, client }
}

const listDir = (client: MatrixClient, path?: string) =>
  client.call('tools/call', {
    name: 'list_dir',
    arguments: { ...(path !== undefined && { relative_path: path }), recursive: false },
  })

const textOf = ({ result = {} }: { result?: Record<string, unknown> }): string | undefined =>
  (result.content as { text: string }[] | undefined)?.[0]?.text

const CLIENTS: [string, (url: string) => Promise<MatrixClient>][] = [
  [MODERN, url => statelessClient(url, {})],
  [NEWEST_LEGACY, url => sessionClient(url, NEWEST_LEGACY, {})],
]

describe.each(CLIENTS)('a client of %s', (_, open) => {
  it('calls through connecting, initializing and ready', async () => {
    const { daemon, client } = await play(open)
    expect(JSON.parse(textOf(await listDir(client, '.')) ?? '')).toEqual(LISTING)
    const posts = daemon.of('POST').filter(({ url }) => url.startsWith('/messages/'))
    const session = posts.at(-1)?.url
    expect(posts.filter(({ url }) => url === session).map(({ body }) => body.method)).toEqual(
      expect.arrayContaining(['initialize', 'notifications/initialized', 'tools/call']),
    )
  })

  it('hears the daemon’s own error', async () => {
    const { client } = await play(open, { type: 'sse' })
    expect((await listDir(client)).error).toMatchObject({
      code: -32602,
      message: "Invalid params: missing required field 'relative_path'",
    })
  })

  it('gets each answer by its id, with many in flight and the last answered first', async () => {
    const { daemon, client } = await play(open, { type: 'sse' })
    daemon.hold()
    const paths = ['a', 'b', 'c', 'd', 'e']
    const calls = paths.map(path => listDir(client, path))
    await daemon.arrived('tools/call', paths.length)
    daemon.release()
    expect((await Promise.all(calls)).map(textOf)).toEqual(paths)
  })

  it('gets one clear error when the channel closes on its call, and the next call works', async () => {
    const { daemon, client } = await play(open, { type: 'sse' })
    await client.call('tools/list')
    daemon.hold()
    const call = listDir(client, '.')
    await daemon.arrived('tools/call')
    for (const { response } of daemon.channels.values()) response.end()
    expect((await call).error).toMatchObject({
      code: -32603,
      message: 'Server "serena" lost the channel the answer was to come on',
      data: { reason: 'upstream_stream_lost' },
    })
    expect((await client.call('tools/list')).result?.tools).toHaveLength(1)
  })
})

it('is not troubled by a daemon that calls itself localhost', async () => {
  const daemon = await serena()
  const gateway = await serve({
    mcpServers: { serena: { type: 'sse', url: `${daemon.origin.replace('127.0.0.1', 'localhost')}/sse` } },
  })
  closing.push(daemon.close, gateway.close)
  const client = await statelessClient(`${gateway.origin}/mcp`, {})
  closing.push(() => client.close())
  expect((await client.call('tools/list')).result?.tools).toHaveLength(1)
})
