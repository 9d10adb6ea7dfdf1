import { type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http'
import { META } from '../../src/protocol/meta.ts'
import { SseDecoder } from '../../src/wire/sse.ts'

/** A request as bytes and headers, with nothing between the test and the wire. */
export interface RawRequest {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer | object
}

export interface RawReply {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  readonly json: {
    id?: unknown
    result?: Record<string, unknown>
    error?: { code: number; message: string; data?: unknown }
  }
}

const start = (url: string, { method = 'POST', headers, body }: RawRequest): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const outgoing = request(url, {
      method,
      agent: false,
      headers: { ...(method === 'POST' && JSON_HEADERS), ...headers },
    })
    outgoing.on('response', resolve).on('error', reject)
    outgoing.end(typeof body === 'object' && !Buffer.isBuffer(body) ? JSON.stringify(body) : body)
  })

const JSON_HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }

/** Sends a request and reads the whole reply. */
export const send = async (url: string, options: RawRequest = {}): Promise<RawReply> => {
  const response = await start(url, options)
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk as Buffer)
  const text = Buffer.concat(chunks).toString()
  const isJson = response.headers['content-type']?.includes('json') && text !== ''
  const json: RawReply['json'] = isJson ? JSON.parse(text) : (responseInEvents(text) ?? {})
  return { status: response.statusCode ?? 0, headers: response.headers, text, json }
}

/** The response in a stream of events: that of a call that took long, whatever the test is about, comes as one. */
const responseInEvents = (text: string): RawReply['json'] | undefined =>
  [...text.matchAll(/^data: ?(\{.*\})$/gm)]
    .map(([, data = '']) => JSON.parse(data) as RawReply['json'])
    .findLast(({ result, error }) => result !== undefined || error !== undefined)

export interface RawEvent {
  readonly id: string | undefined
  readonly event: string
  readonly data: string
  readonly json: {
    id?: unknown
    method?: string
    params?: Record<string, unknown>
    result?: Record<string, unknown>
    error?: { code: number }
  }
}

/** An open reply, event by event. */
export interface RawStream {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** The next event; undefined when the stream has ended. */
  next(): Promise<RawEvent | undefined>
  all(): Promise<RawEvent[]>
  readonly lastEventId: string | undefined // also of an event without data
  readonly response: IncomingMessage
  close(): void
}

export const openStream = async (url: string, options: RawRequest = {}): Promise<RawStream> => {
  const response = await start(url, options)
  const events: RawEvent[] = []
  const waiting: ((event: RawEvent | undefined) => void)[] = []
  let isOver = false
  let lastEventId: string | undefined
  const decoder = new SseDecoder(({ id, event, data }) => {
    const text = data.toString()
    lastEventId = id ?? lastEventId
    if (text === '') return // priming
    const known: RawEvent = { id, event, data: text, json: JSON.parse(text) }
    const next = waiting.shift()
    if (next) next(known)
    else events.push(known)
  })
  response.on('data', chunk => decoder.feed(chunk))
  response.on('close', () => {
    isOver = true
    for (const next of waiting.splice(0)) next(undefined)
  })
  response.on('error', () => {})
  const next = (): Promise<RawEvent | undefined> => {
    const known = events.shift()
    if (known || isOver) return Promise.resolve(known)
    return new Promise(resolve => waiting.push(resolve))
  }
  const all = async (): Promise<RawEvent[]> => {
    const found: RawEvent[] = []
    for (let event = await next(); event; event = await next()) found.push(event)
    return found
  }
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    next,
    all,
    get lastEventId() {
      return lastEventId
    },
    response,
    close: () => response.destroy(),
  }
}

/** A complete modern request: body with envelope, and the headers that mirror it. */
export const modern = (
  id: number | string,
  method: string,
  params: Record<string, unknown> = {},
  { capabilities = {}, meta = {} }: { capabilities?: object; meta?: object } = {},
): {
  body: { id: number | string; params: Record<string, unknown> } & Record<string, unknown>
  headers: Record<string, string>
} => {
  const name = params.name ?? params.uri ?? params.taskId
  return {
    headers: {
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      ...(typeof name === 'string' && { 'mcp-name': name }),
    },
    body: {
      jsonrpc: '2.0',
      id,
      method,
      params: {
        ...params,
        _meta: {
          [META.protocolVersion]: '2026-07-28',
          [META.clientInfo]: { name: 'test', version: '1' },
          [META.clientCapabilities]: capabilities,
          ...meta,
        },
      },
    },
  }
}

/** A legacy session opened by hand. */
export interface RawSession {
  readonly id: string
  readonly headers: Record<string, string>
  readonly result: Record<string, unknown>
}

export const openSession = async (
  url: string,
  revision = '2025-11-25',
  capabilities: object = {},
  credentials: Readonly<Record<string, string>> = {},
): Promise<RawSession> => {
  const params = { protocolVersion: revision, capabilities, clientInfo: { name: 'test', version: '1' } }
  const reply = await send(url, {
    headers: credentials,
    body: { jsonrpc: '2.0', id: 0, method: 'initialize', params },
  })
  const id = String(reply.headers['mcp-session-id'])
  const headers = { 'mcp-session-id': id, ...(revision >= '2025-06-18' && { 'mcp-protocol-version': revision }) }
  const body = { jsonrpc: '2.0', method: 'notifications/initialized' }
  await send(url, { headers: { ...headers, ...credentials }, body })
  return { id, headers, result: reply.json.result ?? {} }
}
