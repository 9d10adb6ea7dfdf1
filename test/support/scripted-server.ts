import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { Abort } from '../../src/protocol/cancellation.ts'
import type { Caller, Frame, Peer, Question } from '../../src/protocol/exchange.ts'
import { Json, type Plain } from '../../src/wire/json/json.ts'

/** One request as it arrived. */
export interface Arrived {
  readonly method: string
  readonly url: string
  readonly headers: IncomingMessage['headers']
  readonly body: { id?: unknown; method?: string; params?: Record<string, unknown>; [key: string]: unknown }
  readonly text: string
  readonly response: ServerResponse
  readonly isGone: boolean // the client closed its side before we answered
}

export type Script = (arrived: Arrived, response: ServerResponse) => void

/** What a body holds; nothing if it is no JSON. */
const parsed = (text: string): Arrived['body'] => {
  try {
    return JSON.parse(text) as Arrived['body']
  } catch {
    return {}
  }
}

/** A server that does exactly as told, on a real socket. */
export const scriptedServer = async (script: Script) => {
  const arrivals: Arrived[] = []
  const sockets = new Set<Socket>()
  const waiters = new Set<() => void>()
  let current = script
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString()
      const arrived = {
        method: request.method ?? '',
        url: request.url ?? '',
        headers: request.headers,
        body: parsed(text),
        text,
        response,
        isGone: false,
      }
      response.on('close', () => {
        arrived.isGone = !response.writableFinished
        for (const waiter of waiters) waiter()
      })
      arrivals.push(arrived)
      for (const waiter of waiters) waiter()
      current(arrived, response)
    })
  })
  server.on('connection', socket => {
    sockets.add(socket)
    socket.on('close', () => {
      sockets.delete(socket)
      for (const waiter of waiters) waiter()
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo

  /** Waits until a condition over what arrived holds. */
  const until = (holds: () => boolean, what = 'the condition'): Promise<void> =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`waited in vain for ${what}`)), 5000)
      const look = () => {
        if (!holds()) return
        waiters.delete(look)
        clearTimeout(timer)
        resolve()
      }
      waiters.add(look)
      look()
    })

  const close = async (): Promise<void> => {
    for (const socket of sockets) socket.destroy()
    await new Promise(resolve => server.close(resolve))
  }

  return {
    origin: `http://127.0.0.1:${port}`,
    url: `http://127.0.0.1:${port}/mcp`,
    arrivals,
    sockets,
    until,
    /** All requests of a JSON-RPC method, or of an HTTP method. */
    of: (method: string) => arrivals.filter(arrived => arrived.body.method === method || arrived.method === method),
    arrived: async (method: string, count = 1): Promise<Arrived> => {
      const matching = () => arrivals.filter(arrived => arrived.body.method === method || arrived.method === method)
      await until(() => matching().length >= count, `${count} × ${method}`)
      return matching()[count - 1] as Arrived
    },
    become: (next: Script) => {
      current = next
    },
    /** Ends every connection and listens no more, as a killed process does. */
    close,
    /** Takes no new connections; those that are in use stay, as when a process is being stopped. */
    refuseConnections: (): void => {
      server.close()
      server.closeIdleConnections()
    },
    /** Listens again, on the same port. */
    reopen: () => new Promise<void>(resolve => server.listen(port, '127.0.0.1', resolve)),
  }
}

export type ScriptedServer = Awaited<ReturnType<typeof scriptedServer>>

export const sendJson = (
  response: ServerResponse,
  body: unknown,
  status = 200,
  headers: Record<string, string> = {},
) => {
  response.writeHead(status, { 'content-type': 'application/json', ...headers })
  response.end(JSON.stringify(body))
}

export const result = (id: unknown, value: unknown) => ({ jsonrpc: '2.0', id, result: value })
export const failure = (id: unknown, code: number, message: string, data?: unknown) => ({
  jsonrpc: '2.0',
  id,
  error: { code, message, data },
})
export const notice = (method: string, params: unknown) => ({ jsonrpc: '2.0', method, params })
export const request = (id: unknown, method: string, params: unknown = {}) => ({ jsonrpc: '2.0', id, method, params })

/** The progress token a request carries. */
export const tokenOf = ({ body }: Arrived): unknown =>
  (body.params as { _meta?: { progressToken?: unknown } } | undefined)?._meta?.progressToken

/** An event stream under the script's control. */
export const openStream = (response: ServerResponse, headers: Record<string, string> = {}) => {
  response.writeHead(200, { 'content-type': 'text/event-stream', ...headers })
  response.flushHeaders()
  return {
    raw: (text: string) => response.write(text),
    event: (message: unknown, fields = '') => response.write(`${fields}data: ${JSON.stringify(message)}\n\n`),
    end: () => response.end(),
    cut: () => response.destroy(),
  }
}

export const DISCOVERED = {
  resultType: 'complete',
  supportedVersions: ['2026-07-28'],
  capabilities: { tools: {} },
  ttlMs: 0,
  cacheScope: 'private',
}

/** Lets a script answer the probe as a modern server, and the rest as told. */
export const modern =
  (script: Script): Script =>
  (arrived, response) => {
    if (arrived.body.method === 'server/discover') sendJson(response, result(arrived.body.id, DISCOVERED))
    else script(arrived, response)
  }

interface LegacyOptions {
  readonly version?: string
  readonly capabilities?: unknown
  readonly sessions?: string[] // ids to hand out, in order; none: no session
  readonly listen?: Script // for GET; 405 by default
}

/** Lets a script behave as a legacy server with sessions, and the rest as told. */
export const legacy = (script: Script, options: LegacyOptions = {}): Script => {
  const {
    version = '2025-11-25',
    capabilities = { tools: { listChanged: true } },
    sessions = ['s1', 's2', 's3'],
  } = options
  const left = [...sessions]
  return (arrived, response) => {
    const { id, method } = arrived.body
    if (arrived.method === 'GET' && !arrived.headers['last-event-id'])
      return options.listen ? options.listen(arrived, response) : void response.writeHead(405).end()
    if (arrived.method === 'DELETE') return void response.writeHead(204).end()
    if (method === 'server/discover')
      return sendJson(response, failure(null, -32000, 'Bad Request: not initialized'), 400)
    if (method === 'initialize') {
      const session = left.shift()
      const serverInfo = { name: 'scripted', version: '1' }
      const body = result(id, { protocolVersion: version, capabilities, serverInfo, instructions: 'Be kind.' })
      return sendJson(response, body, 200, session === undefined ? {} : { 'mcp-session-id': session })
    }
    if (method === 'notifications/initialized') return void response.writeHead(202).end()
    script(arrived, response)
  }
}

export const callerOf = (changes: Partial<Caller> = {}): Caller => ({
  workspace: 'default',
  principal: 'local',
  revision: '2026-07-28',
  capabilities: Json.of({}),
  headers: new Map(),
  ...changes,
})

interface Wanted {
  readonly kind?: 'request' | 'notification'
  readonly params?: Plain
  readonly caller?: Caller
  readonly onFrame?: (frame: Frame) => void | Promise<void>
}

/** Dispatches one exchange and collects what its sink gets. */
export const exchangeWith = (peer: Peer, method: string, wanted: Wanted = {}) => {
  const frames: Frame[] = []
  const abort = new Abort()
  const waiters = new Set<() => void>()
  peer.dispatch({
    kind: wanted.kind ?? 'request',
    method,
    params: wanted.params === undefined ? Json.empty : Json.of(wanted.params),
    caller: wanted.caller ?? callerOf({ revision: peer.revision }),
    signal: abort,
    sink: frame => {
      frames.push(frame)
      const waiting = wanted.onFrame?.(frame)
      for (const waiter of [...waiters]) waiter()
      return waiting
    },
  })
  const when = <T>(find: () => T | undefined, what: string): Promise<T> =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`waited in vain for ${what} of ${method}`)), 5000)
      const look = () => {
        const found = find()
        if (found === undefined) return
        waiters.delete(look)
        clearTimeout(timer)
        resolve(found)
      }
      waiters.add(look)
      look()
    })
  const isFinal = (frame: Frame) => frame.kind === 'result' || frame.kind === 'failure'
  return {
    frames,
    abort,
    /** The frames so far that end the exchange; never more than one. */
    finals: () => frames.filter(isFinal),
    final: () => when(() => frames.find(isFinal), 'the end'),
    notice: (name: string) => when(() => frames.find(frame => frame.kind === 'notice' && frame.method === name), name),
    question: (index = 0) =>
      when(() => frames.filter((frame): frame is Question => frame.kind === 'question')[index], 'a question'),
    result: async (): Promise<unknown> => {
      const frame = await when(() => frames.find(isFinal), 'a result')
      if (frame.kind !== 'result') throw new Error(`expected a result, got ${JSON.stringify(frame)}`)
      return frame.result.toValue()
    },
    failure: async () => {
      const frame = await when(() => frames.find(isFinal), 'a failure')
      if (frame.kind !== 'failure') throw new Error(`expected a failure, got ${JSON.stringify(frame)}`)
      return { ...frame.error, data: frame.error.data?.toValue() as Record<string, unknown> | undefined }
    },
  }
}
