import { randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import type { Revision } from '../../src/protocol/revisions.ts'
import { scriptedServer } from '../support/scripted-server.ts'
import { type Wire, written } from './client.ts'
import {
  type Arrival,
  basics,
  CAPABILITIES,
  createArrivals,
  errorOf,
  type MatrixServer,
  remoteConfig,
  type Tool,
  type ToolCall,
  ToolError,
} from './server.ts'

/** A legacy revision over Streamable HTTP with sessions; asks by requests on the stream of the call, or on the GET stream. */
export const sessionServer = async (
  revision: Revision,
  asksOn: 'call' | 'GET' = 'call',
  unknownStatus: 400 | 404 = 404, // of a GET in a session that it does not know
): Promise<
  MatrixServer & {
    readonly sessions: ReadonlySet<string>
    /** Forgets every session; their streams stay open. */
    forget(): void
    /** Breaks every GET stream. */
    cut(): void
    /** From now on answers GET with 405. */
    refuseGet(): void
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
  const sessions = new Set<string>()
  const inboxes = new Map<string, ServerResponse>()
  const open = new Map<unknown, (message: Wire) => void>()
  let asked = 0
  let refusesGet = false

  const server = await scriptedServer((arrived, response) => {
    const message = arrived.body as Wire
    const arrival: Arrival = {
      message,
      text: arrived.text,
      verb: arrived.method,
      headers: arrived.headers,
      isGone: false,
    }
    response.on('close', () => {
      arrival.isGone = !response.writableFinished
    })
    push(arrival)
    const session = String(arrived.headers['mcp-session-id'])
    if (arrived.method === 'GET' && refusesGet) return void response.writeHead(405).end()
    if (arrived.method === 'GET')
      return sessions.has(session)
        ? inbox(session, response)
        : void response.writeHead(unknownStatus).end('Invalid or missing session ID')
    if (arrived.method === 'DELETE') {
      sessions.delete(session)
      return void response.writeHead(200).end()
    }
    const { id, method, params = {} } = message
    if (method === 'initialize') {
      const given = randomUUID()
      sessions.add(given)
      const result = methods.get(method)?.(params)
      return json(response, { jsonrpc: '2.0', id, result }, 200, { 'mcp-session-id': given })
    }
    if (!sessions.has(session))
      return json(
        response,
        { jsonrpc: '2.0', id: null, error: { code: -32000, message: 'no session' } },
        arrived.headers['mcp-session-id'] ? 404 : 400,
      )
    if (!method) {
      open.get(id)?.(message)
      return void response.writeHead(202).end()
    }
    if (id === undefined) return void response.writeHead(202).end()
    if (method === 'tools/call') return void call(id, params, response, session)
    const answer = methods.get(method)
    if (!answer) return json(response, { jsonrpc: '2.0', id, error: { code: -32601, message: 'Method not found' } })
    try {
      json(response, { jsonrpc: '2.0', id, result: answer(params) })
    } catch (error) {
      json(response, { jsonrpc: '2.0', id, error: errorOf(error) })
    }
  })

  const inbox = (session: string, response: ServerResponse): void => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.flushHeaders()
    inboxes.set(session, response)
    response.on('close', () => inboxes.get(session) === response && inboxes.delete(session))
  }

  const ask = (response: ServerResponse, method: string, params: object): Promise<Wire> => {
    const id = asked++
    return new Promise(resolve => {
      open.set(id, resolve)
      event(response, { jsonrpc: '2.0', id, method, params })
    })
  }

  const call = async (
    id: unknown,
    params: Record<string, unknown>,
    response: ServerResponse,
    session: string,
  ): Promise<void> => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const tool = tools.get(String(params.name))
    const finish = (message: object): void => {
      event(response, { jsonrpc: '2.0', id, ...message })
      response.end()
    }
    if (!tool) return finish({ error: { code: -32602, message: `Unknown tool ${params.name}` } })
    const meta = (params._meta ?? {}) as Record<string, unknown>
    const handle: ToolCall = {
      params,
      arguments: (params.arguments ?? {}) as Record<string, unknown>,
      meta,
      progress: (progress, more = {}) => {
        if (meta.progressToken !== undefined)
          event(response, {
            jsonrpc: '2.0',
            method: 'notifications/progress',
            params: { progressToken: meta.progressToken, progress, ...more },
          })
      },
      log: (level, data) =>
        event(response, { jsonrpc: '2.0', method: 'notifications/message', params: { level, data } }),
      ask: async (_key, method, question) => {
        const stream = asksOn === 'GET' ? (inboxes.get(session) ?? response) : response
        const { result, error } = await ask(stream, method, question)
        if (error) throw new ToolError(error.code, error.message)
        return result ?? {}
      },
    }
    try {
      finish({ result: await tool(handle) })
    } catch (error) {
      finish({ error: errorOf(error) })
    }
  }

  return {
    revision,
    config: remoteConfig(server.url),
    arrivals,
    sessions,
    of,
    arrived: hasArrived,
    tools,
    methods,
    say: (method, params = {}) => {
      for (const response of inboxes.values()) event(response, { jsonrpc: '2.0', method, params })
    },
    askOutside: async (method, params) => {
      await server.until(() => inboxes.size > 0, 'a GET stream')
      return ask([...inboxes.values()].at(-1) as ServerResponse, method, params)
    },
    forget: () => sessions.clear(),
    cut: () => {
      for (const response of [...inboxes.values()]) response.destroy()
    },
    refuseGet: () => {
      refusesGet = true
    },
    kill: async () => {
      sessions.clear()
      await server.close()
    },
    restart: server.reopen,
    close: server.close,
  }
}

const json = (response: ServerResponse, body: unknown, status = 200, headers: Record<string, string> = {}): void => {
  response.writeHead(status, { 'content-type': 'application/json', ...headers })
  response.end(written(body as object))
}

const event = (response: ServerResponse, message: object): void =>
  void response.write(`event: message\ndata: ${written(message)}\n\n`)
