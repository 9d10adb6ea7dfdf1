import { randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { OLDEST, type Revision } from '../../src/protocol/revisions.ts'
import { type Wire, written } from '../matrix/client.ts'
import {
  basics,
  CAPABILITIES,
  createArrivals,
  type MatrixServer,
  remoteConfig,
  type Tool,
  type ToolCall,
  ToolError,
} from '../matrix/server.ts'
import { type Arrived, scriptedServer } from './scripted-server.ts'

/** Where and how a server of this kind answers. */
interface Habits {
  /** What the channel begins with. */
  readonly greeting?: (session: string, origin: string) => string
  /** On the channel, in the reply to the POST, or both. */
  readonly answers?: 'channel' | 'body' | 'both'
}

const named = (session: string): string => `event: endpoint\ndata: /messages/?session_id=${session}\n\n`

/** A legacy revision over HTTP+SSE: one channel is one session, and everything is said on it. */
export const sseServer = async (
  revision: Revision = OLDEST,
  { greeting = named, answers = 'channel' }: Habits = {},
): Promise<
  MatrixServer & {
    readonly url: string
    readonly channels: ReadonlyMap<string, ServerResponse>
    /** Asks on the newest channel, outside any call. */
    askOutside(method: string, params: object): Promise<Wire>
  }
> => {
  const { arrivals, of, push, arrived: hasArrived } = createArrivals()
  const tools = new Map<string, Tool>()
  const methods = basics(tools)
  methods.set('initialize', () => ({
    protocolVersion: revision,
    capabilities: CAPABILITIES,
    serverInfo: { name: 'raw-legacy', version: '1' },
    instructions: 'be kind',
  }))
  const channels = new Map<string, ServerResponse>()
  const open = new Map<unknown, (message: Wire) => void>()
  let asked = 0

  const server = await scriptedServer((arrived, response) => {
    const { pathname, searchParams } = new URL(arrived.url, 'http://server')
    if (arrived.method === 'GET' && pathname === '/sse') return openChannel(response)
    const channel = channels.get(searchParams.get('session_id') ?? '')
    if (pathname === '/sse') return void response.writeHead(405, { allow: 'GET' }).end()
    if (!channel) return void response.writeHead(404).end('Could not find session')
    take(arrived, channel, response)
  })

  const openChannel = (response: ServerResponse): void => {
    const session = randomUUID()
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(greeting(session, server.origin))
    channels.set(session, response)
    response.on('close', () => channels.delete(session))
  }

  const take = ({ body, headers, text }: Arrived, channel: ServerResponse, response: ServerResponse): void => {
    const message = body as Wire
    push({ message, text, headers, isGone: false })
    const { id, method } = message
    if (!method) open.get(id)?.(message)
    if (!method || id === undefined) return void response.writeHead(202).end('Accepted')
    if (answers === 'channel') response.writeHead(202).end('Accepted')
    void answer(message, channel).then(reply => {
      if (answers !== 'body') event(channel, reply)
      if (answers === 'channel') return
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(JSON.stringify(reply))
    })
  }

  const answer = async ({ id, method = '', params = {} }: Wire, channel: ServerResponse): Promise<object> => {
    try {
      const run = method === 'tools/call' ? toolOf(params, channel) : methods.get(method)
      if (!run) throw new ToolError(-32601, 'Method not found')
      return { jsonrpc: '2.0', id, result: await run(params) }
    } catch (error) {
      const { code, message, data } = error instanceof ToolError ? error : new ToolError(-32603, String(error))
      return { jsonrpc: '2.0', id, error: { code, message, data } }
    }
  }

  const toolOf = (params: Record<string, unknown>, channel: ServerResponse) => {
    const tool = tools.get(String(params.name))
    if (!tool) throw new ToolError(-32602, `Unknown tool ${params.name}`)
    return () => tool(handleOf(params, channel))
  }

  const handleOf = (params: Record<string, unknown>, channel: ServerResponse): ToolCall => {
    const meta = (params._meta ?? {}) as Record<string, unknown>
    const say = (method: string, params: object): void => event(channel, { jsonrpc: '2.0', method, params })
    return {
      params,
      arguments: (params.arguments ?? {}) as Record<string, unknown>,
      meta,
      progress: (progress, more = {}) => {
        if (meta.progressToken !== undefined)
          say('notifications/progress', { progressToken: meta.progressToken, progress, ...more })
      },
      log: (level, data) => say('notifications/message', { level, data }),
      ask: async (_key, method, question) => {
        const { result, error } = await ask(channel, method, question)
        if (error) throw new ToolError(error.code, error.message)
        return result ?? {}
      },
    }
  }

  const ask = (channel: ServerResponse, method: string, params: object): Promise<Wire> => {
    const id = asked++
    return new Promise(resolve => {
      open.set(id, resolve)
      event(channel, { jsonrpc: '2.0', id, method, params })
    })
  }

  const url = `${server.origin}/sse`
  return {
    revision,
    url,
    config: remoteConfig(url),
    arrivals,
    of,
    arrived: hasArrived,
    tools,
    methods,
    channels,
    say: (method, params = {}) => {
      for (const channel of channels.values()) event(channel, { jsonrpc: '2.0', method, params })
    },
    askOutside: async (method, params) => {
      await server.until(() => channels.size > 0, 'a channel')
      return ask([...channels.values()].at(-1) as ServerResponse, method, params)
    },
    kill: server.close,
    restart: server.reopen,
    close: server.close,
  }
}

const event = (channel: ServerResponse, message: object): void =>
  void channel.write(`event: message\ndata: ${written(message)}\n\n`)
