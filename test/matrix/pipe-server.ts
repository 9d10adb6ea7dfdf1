import type { AddressInfo } from 'node:net'
import { createServer, type Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import { META } from '../../src/protocol/meta.ts'
import { isModern, type Revision } from '../../src/protocol/revisions.ts'
import { LineDecoder } from '../../src/wire/ndjson.ts'
import { type Wire, written } from './client.ts'
import {
  basics,
  CAPABILITIES,
  createArrivals,
  errorOf,
  InputRequired,
  isWanted,
  type MatrixServer,
  type Tool,
  type ToolCall,
  ToolError,
} from './server.ts'

/** A server of one revision over stdio; its processes are relays into this one, so that everything is recorded here. */
export const pipeServer = async (
  revision: Revision,
): Promise<MatrixServer & { readonly processes: ReadonlySet<Socket> }> => {
  const { arrivals, of, push, arrived } = createArrivals()
  const tools = new Map<string, Tool>()
  const methods = basics(tools)
  const processes = new Set<Socket>()
  const open = new Map<unknown, (message: Wire) => void>()
  const listening = new Map<unknown, { socket: Socket; filter: Record<string, unknown> }>()
  let asked = 0
  if (isModern(revision)) {
    for (const gone of ['ping', 'logging/setLevel', 'resources/subscribe', 'resources/unsubscribe'])
      methods.delete(gone)
    methods.set('server/discover', () => ({
      supportedVersions: [revision],
      capabilities: CAPABILITIES,
      instructions: 'be kind',
      ttlMs: 0,
      cacheScope: 'private',
    }))
  } else
    methods.set('initialize', () => ({
      protocolVersion: revision,
      capabilities: CAPABILITIES,
      serverInfo: { name: 'raw-pipe', version: '1' },
      instructions: 'be kind',
    }))

  let started = 0
  const server = createServer(socket => {
    processes.add(socket)
    const process = ++started
    socket.on('close', () => processes.delete(socket))
    socket.on('error', () => {})
    const lines = new LineDecoder(line => {
      const message = JSON.parse(line.toString()) as Wire
      push({ message, text: line.toString(), process, headers: {}, isGone: false })
      void take(socket, message)
    })
    socket.on('data', chunk => lines.feed(chunk))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))

  const write = (socket: Socket, message: object): void =>
    void socket.write(`${written({ jsonrpc: '2.0', ...message })}\n`)

  const take = async (socket: Socket, message: Wire): Promise<void> => {
    const { id, method, params = {} } = message
    if (method === undefined) return void open.get(id)?.(message)
    if (id === undefined || id === null) return
    const problem = isModern(revision) && !(params._meta as Record<string, unknown> | undefined)?.[META.protocolVersion]
    if (problem) return write(socket, { id, error: { code: -32602, message: 'no envelope' } })
    if (method === 'subscriptions/listen') return listen(socket, id, params)
    try {
      const answer = method === 'tools/call' ? tools.get(String(params.name)) : undefined
      if (method === 'tools/call' && !answer) throw new ToolError(-32602, `Unknown tool ${params.name}`)
      const plain = methods.get(method)
      if (!answer && !plain) throw new ToolError(-32601, 'Method not found')
      const result = answer ? await answer(toolCall(socket, params)) : plain?.(params)
      write(socket, { id, result: isModern(revision) ? complete(method, result ?? {}) : result })
    } catch (error) {
      if (error instanceof InputRequired)
        return write(socket, {
          id,
          result: { resultType: 'input_required', inputRequests: error.requests, requestState: 'st-1 é' },
        })
      write(socket, { id, error: errorOf(error) })
    }
  }

  const listen = (socket: Socket, id: unknown, params: Record<string, unknown>): void => {
    if (!isModern(revision)) return write(socket, { id, error: { code: -32601, message: 'Method not found' } })
    const filter = (params.notifications ?? {}) as Record<string, unknown>
    listening.set(id, { socket, filter })
    write(socket, {
      method: 'notifications/subscriptions/acknowledged',
      params: { notifications: filter, _meta: { [META.subscriptionId]: id } },
    })
  }

  const toolCall = (socket: Socket, params: Record<string, unknown>): ToolCall => {
    const meta = (params._meta ?? {}) as Record<string, unknown>
    const answers = (params.inputResponses ?? {}) as Record<string, Record<string, unknown>>
    const pending: Record<string, unknown> = {}
    const say = (method: string, told: object): void => write(socket, { method, params: told })
    return {
      params,
      arguments: (params.arguments ?? {}) as Record<string, unknown>,
      meta,
      progress: (progress, more = {}) => {
        if (meta.progressToken !== undefined)
          say('notifications/progress', { progressToken: meta.progressToken, progress, ...more })
      },
      log: (level, data) => {
        if (!isModern(revision) || meta[META.logLevel] !== undefined) say('notifications/message', { level, data })
      },
      ask: async (key, method, question) => {
        if (!isModern(revision)) return askLive(socket, method, question)
        const answer = answers[key]
        if (answer) return answer
        pending[key] = { method, params: question }
        await Promise.resolve()
        throw new InputRequired(pending)
      },
    }
  }

  const askLive = async (socket: Socket, method: string, params: object): Promise<Record<string, unknown>> => {
    const id = `s${asked++}`
    const { result, error } = await new Promise<Wire>(resolve => {
      open.set(id, resolve)
      write(socket, { id, method, params })
    })
    if (error) throw new ToolError(error.code, error.message)
    return result ?? {}
  }

  return {
    revision,
    config: {
      name: 'server',
      disabled: false,
      kind: 'process',
      command: process.execPath,
      args: [fileURLToPath(new URL('./relay.mjs', import.meta.url)), String((server.address() as AddressInfo).port)],
      env: {},
      cwd: undefined,
      era: 'auto',
      timeoutMs: 20_000,
    },
    arrivals,
    processes,
    of,
    arrived,
    tools,
    methods,
    say: (method, params = {}) => {
      if (!isModern(revision)) for (const socket of processes) write(socket, { method, params })
      for (const [id, { socket, filter }] of listening)
        if (isWanted(filter, method, params))
          write(socket, { method, params: { ...params, _meta: { [META.subscriptionId]: id } } })
    },
    kill: async () => {
      for (const socket of processes) socket.destroy()
      listening.clear()
    },
    restart: async () => {},
    close: async () => {
      for (const socket of processes) socket.destroy()
      await new Promise(resolve => server.close(resolve))
    },
  }
}

const complete = (method: string, result: Record<string, unknown>): Record<string, unknown> => ({
  resultType: 'complete',
  ...(/\/list$|^resources\/read$/.test(method) && { ttlMs: 1000, cacheScope: 'private' }),
  _meta: { [META.serverInfo]: { name: 'raw-pipe', version: '1' } },
  ...result,
})
