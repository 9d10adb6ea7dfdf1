import { type Agent, type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http'
import { SseDecoder } from '../../../../src/wire/sse.ts'

/** A JSON-RPC message, as far as the clients look at it. */
export interface Message {
  readonly id?: unknown
  readonly method?: string
  readonly params?: Readonly<Record<string, unknown>>
  readonly result?: Readonly<Record<string, unknown>>
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown }
}

/** An answer that has begun. */
export interface OpenAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly isStream: boolean
  /** Reads to the end, each message with the event id in force. Rejects when the connection is cut. */
  read(
    onMessage: (message: Message, eventId: string | undefined) => void,
    onEventId?: (id: string) => void,
  ): Promise<void>
  leave(): void
}

interface HttpOptions {
  readonly agent: Agent
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: object
}

const JSON_HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }

const begin = (url: string, { agent, method = 'POST', headers, body }: HttpOptions): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const all = method === 'POST' ? { ...JSON_HEADERS, ...headers } : { accept: 'text/event-stream', ...headers }
    const outgoing = request(url, { agent, method, headers: all })
    outgoing.on('response', resolve).on('error', reject)
    outgoing.end(body && JSON.stringify(body))
  })

const readStream = async (
  response: IncomingMessage,
  onMessage: (message: Message, eventId: string | undefined) => void,
  onEventId: (id: string) => void,
): Promise<void> => {
  const decoder = new SseDecoder(({ id, data }) => {
    if (id !== undefined) onEventId(id)
    if (data.length > 0) onMessage(JSON.parse(data.toString()), id)
  })
  for await (const chunk of response) decoder.feed(chunk)
}

const readBody = async (response: IncomingMessage, onMessage: (message: Message, id: undefined) => void) => {
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk)
  const text = Buffer.concat(chunks).toString()
  if (text === '') return
  if (response.headers['content-type']?.includes('json')) onMessage(JSON.parse(text), undefined)
  else onMessage({ error: { code: response.statusCode ?? 0, message: `HTTP ${text}` } }, undefined)
}

/** Sends a request and waits for the head of its answer. */
export const open = async (url: string, options: HttpOptions): Promise<OpenAnswer> => {
  const response = await begin(url, options)
  response.on('error', () => {}) // also where no one reads any more
  const isStream = response.headers['content-type']?.includes('event-stream') ?? false
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    isStream,
    read: (onMessage, onEventId = () => {}) =>
      isStream ? readStream(response, onMessage, onEventId) : readBody(response, onMessage),
    leave: () => response.destroy(),
  }
}

/** The balancer reached no replica. */
export const isNoReplica = ({ headers }: Pick<OpenAnswer, 'headers'>): boolean => 'x-chaos-balancer' in headers
