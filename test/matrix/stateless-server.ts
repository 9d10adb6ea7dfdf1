import type { ServerResponse } from 'node:http'
import { META } from '../../src/protocol/meta.ts'
import { MODERN } from '../../src/protocol/revisions.ts'
import { type Arrived, scriptedServer } from '../support/scripted-server.ts'
import { written } from './client.ts'
import {
  type Arrival,
  basics,
  CAPABILITIES,
  createArrivals,
  errorOf,
  InputRequired,
  isWanted,
  type MatrixServer,
  remoteConfig,
  type Tool,
  type ToolCall,
} from './server.ts'

const CACHED = /\/list$|^resources\/read$|^server\/discover$/

/** 2026-07-28 only: refuses everything that does not carry the envelope. */
export const statelessServer = async (): Promise<
  MatrixServer & {
    /** From now on ends every subscription right after its acknowledgement. */
    endListens(): void
    /** From now on rejects every subscription with that error. */
    refuseListens(error: { readonly code: number; readonly message: string }): void
  }
> => {
  const { arrivals, of, push, arrived: hasArrived } = createArrivals()
  const tools = new Map<string, Tool>()
  const methods = basics(tools)
  for (const gone of ['ping', 'logging/setLevel', 'resources/subscribe', 'resources/unsubscribe']) methods.delete(gone)
  methods.set('server/discover', () => ({
    supportedVersions: [MODERN],
    capabilities: CAPABILITIES,
    instructions: 'be kind',
  }))
  const listeners = new Set<{ id: unknown; filter: Record<string, unknown>; response: ServerResponse }>()

  const server = await scriptedServer((arrived, response) => {
    const arrival: Arrival = {
      message: arrived.body as Arrival['message'],
      text: arrived.text,
      verb: arrived.method,
      headers: arrived.headers,
      isGone: false,
    }
    response.on('close', () => {
      arrival.isGone = !response.writableFinished
    })
    push(arrival)
    const { id, method = '', params = {} } = arrived.body
    if (arrived.method !== 'POST') return void response.writeHead(405).end()
    const problem = envelopeProblem(arrived)
    if (problem) return json(response, { jsonrpc: '2.0', id: id ?? null, error: problem }, 400)
    if (method === 'subscriptions/listen') return listen(id, params, response)
    if (method === 'tools/call') return void call(id, params, response)
    const answer = methods.get(method)
    if (!answer)
      return json(response, { jsonrpc: '2.0', id, error: { code: -32601, message: 'Method not found' } }, 404)
    try {
      json(response, { jsonrpc: '2.0', id, result: complete(method, answer(params)) })
    } catch (error) {
      json(response, { jsonrpc: '2.0', id, error: errorOf(error) })
    }
  })

  let endsListens = false
  let refusal: object | undefined

  const listen = (id: unknown, params: Record<string, unknown>, response: ServerResponse): void => {
    const filter = (params.notifications ?? {}) as Record<string, unknown>
    if (refusal) return json(response, { jsonrpc: '2.0', id, error: refusal })
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    event(response, {
      jsonrpc: '2.0',
      method: 'notifications/subscriptions/acknowledged',
      params: { notifications: filter, _meta: { [META.subscriptionId]: id } },
    })
    if (endsListens) {
      event(response, { jsonrpc: '2.0', id, result: { resultType: 'complete', _meta: { [META.subscriptionId]: id } } })
      return void response.end()
    }
    const listener = { id, filter, response }
    listeners.add(listener)
    response.on('close', () => listeners.delete(listener))
  }

  const call = async (id: unknown, params: Record<string, unknown>, response: ServerResponse): Promise<void> => {
    const tool = tools.get(String(params.name))
    const say = (message: object) => {
      if (!response.headersSent) response.writeHead(200, { 'content-type': 'text/event-stream' })
      event(response, message)
    }
    const finish = (message: object, status = 200) => {
      if (!response.headersSent) return json(response, message, status)
      event(response, message)
      response.end()
    }
    if (!tool) return finish({ jsonrpc: '2.0', id, error: { code: -32602, message: `Unknown tool ${params.name}` } })
    try {
      finish({ jsonrpc: '2.0', id, result: { resultType: 'complete', ...(await tool(toolCall(params, say))) } })
    } catch (error) {
      if (error instanceof InputRequired)
        return finish({
          jsonrpc: '2.0',
          id,
          result: {
            resultType: 'input_required',
            inputRequests: error.requests,
            requestState: nextState(params.requestState),
          },
        })
      const wrong = errorOf(error)
      finish({ jsonrpc: '2.0', id, error: wrong }, wrong.code <= -32020 && wrong.code >= -32022 ? 400 : 200)
    }
  }

  const toolCall = (params: Record<string, unknown>, say: (message: object) => void): ToolCall => {
    const meta = (params._meta ?? {}) as Record<string, unknown>
    const answers = (params.inputResponses ?? {}) as Record<string, Record<string, unknown>>
    const pending: Record<string, unknown> = {}
    return {
      params,
      arguments: (params.arguments ?? {}) as Record<string, unknown>,
      meta,
      progress: (progress, more = {}) => {
        if (meta.progressToken !== undefined)
          say({
            jsonrpc: '2.0',
            method: 'notifications/progress',
            params: { progressToken: meta.progressToken, progress, ...more },
          })
      },
      log: (level, data) => {
        if (meta[META.logLevel] !== undefined)
          say({ jsonrpc: '2.0', method: 'notifications/message', params: { level, data } })
      },
      ask: async (key, method, question) => {
        const answer = answers[key]
        if (answer) return answer
        pending[key] = { method, params: question }
        await Promise.resolve() // siblings asked in the same breath
        throw new InputRequired(pending)
      },
    }
  }

  return {
    revision: MODERN,
    config: remoteConfig(server.url),
    arrivals,
    of,
    arrived: hasArrived,
    tools,
    methods,
    say: (method, params = {}) => {
      for (const { id, filter, response } of listeners)
        if (isWanted(filter, method, params))
          event(response, { jsonrpc: '2.0', method, params: { ...params, _meta: { [META.subscriptionId]: id } } })
    },
    endListens: () => {
      endsListens = true
    },
    refuseListens: error => {
      refusal = error
    },
    kill: server.close,
    restart: server.reopen,
    close: server.close,
  }
}

const complete = (method: string, result: Record<string, unknown>): Record<string, unknown> => ({
  resultType: 'complete',
  ...(CACHED.test(method) && { ttlMs: 1000, cacheScope: 'private' }),
  _meta: { [META.serverInfo]: { name: 'raw-modern', version: '1' } },
  ...result,
})

const envelopeProblem = ({ headers, body }: Arrived): { code: number; message: string; data?: unknown } | undefined => {
  if (body.id === undefined) return undefined
  const meta = (body.params as { _meta?: Record<string, unknown> } | undefined)?._meta
  const version = meta?.[META.protocolVersion]
  if (version === undefined) return { code: -32602, message: 'no envelope' }
  if (version !== MODERN) return { code: -32022, message: 'version', data: { supported: [MODERN], requested: version } }
  if (headers['mcp-protocol-version'] !== version || headers['mcp-method'] !== body.method)
    return { code: -32020, message: 'header mismatch' }
  return typeof meta?.[META.clientCapabilities] === 'object' ? undefined : { code: -32602, message: 'no capabilities' }
}

const json = (response: ServerResponse, body: unknown, status = 200): void => {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(written(body as object))
}

const event = (response: ServerResponse, message: object): void => void response.write(`data: ${written(message)}\n\n`)

/** The state after the one a client sent back: it counts the rounds of a call. */
const nextState = (state: unknown): string => `st-${Number(/^st-(\d+)/.exec(String(state))?.[1] ?? 0) + 1} é`
