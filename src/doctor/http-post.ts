import type { IncomingHttpHeaders } from 'node:http'
import type { Json } from '../wire/json/json.ts'
import type { Deviations } from './deviations.ts'
import { type DoctorReply, isReplyTo, quote, readReply, readWire } from './examined-server.ts'
import { tryHttp } from './http-send.ts'

/** A server at a URL, and how to reach it. */
export interface ProbeTarget {
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly timeoutMs: number
}

/** A JSON-RPC message; `id` is absent in a notification. */
export interface PostedMessage {
  readonly id?: number | string
  readonly method: string
  readonly params?: Json
}

export interface PostAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
  readonly reply: DoctorReply
}

const ACCEPT = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' }

/** Posts a message and reads its reply, whichever way the server sends it. A failure is a reply of kind `none`. */
export const postMessage = async (
  { url, headers, timeoutMs }: ProbeTarget,
  message: PostedMessage | Buffer,
  extra: Readonly<Record<string, string>>,
  deviations: Deviations,
  where: string,
): Promise<PostAnswer> => {
  const id = Buffer.isBuffer(message) ? undefined : message.id
  const body = Buffer.isBuffer(message) ? message : Buffer.from(JSON.stringify({ jsonrpc: '2.0', ...message }))
  let found: Json | undefined
  const take = (bytes: Buffer): boolean => {
    const json = bytes.length === 0 ? undefined : readWire(bytes, deviations, where)
    if (json && id !== undefined && isReplyTo(json, id, deviations, where)) found = json
    return found !== undefined
  }
  const response = await tryHttp(url, timeoutMs, {
    method: 'POST',
    headers: { ...ACCEPT, ...headers, ...extra },
    body,
    onEvent: ({ data }) => take(data),
  })
  const { status, mediaType, ms } = response
  const isSuccess = status >= 200 && status < 300
  if (isSuccess && id !== undefined && status !== 202 && !MESSAGE_TYPES.has(mediaType))
    deviations.add('content-type', where, `Content-Type is ${mediaType || 'absent'}`)
  if (!found && (mediaType === 'application/json' || looksLikeJson(response.body))) take(response.body)
  const reply: DoctorReply = found
    ? readReply(found, ms, deviations, where, status)
    : { kind: 'none', reason: reasonOf(status, response.body, mediaType), ...(status === 0 ? {} : { status }) }
  return { status, headers: response.headers, body: response.body, reply }
}

const MESSAGE_TYPES: ReadonlySet<string> = new Set(['application/json', 'text/event-stream'])

const looksLikeJson = (body: Buffer): boolean => /^\s*\{/.test(body.subarray(0, 100).toString('latin1'))

const reasonOf = (status: number, body: Buffer, mediaType: string): string => {
  if (status === 0) return body.toString()
  if (mediaType === 'text/event-stream') return 'an event stream without a response'
  if (body.length === 0) return 'no body'
  const title = /<title>([^<]*)<\/title>/i.exec(body.subarray(0, 10_000).toString('utf8'))?.[1]
  if (title !== undefined) return `a web page "${quote(title)}"`
  return `${mediaType || 'a body without a Content-Type'}: ${quote(body.subarray(0, 1000).toString('utf8'))}`
}

const FOREIGN_ORIGIN = 'https://foreign-origin.example'

/** The header of a web page that must not be let in. */
export const FOREIGN: Readonly<Record<string, string>> = { origin: FOREIGN_ORIGIN }
