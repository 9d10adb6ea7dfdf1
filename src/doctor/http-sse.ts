import { type ClientRequest, type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { ERRORS } from '../protocol/errors.ts'
import { NOTIFICATIONS } from '../protocol/notifications.ts'
import { OLDEST } from '../protocol/revisions.ts'
import { Json } from '../wire/json/json.ts'
import { SseDecoder } from '../wire/sse.ts'
import { ReplyChannel } from './channel.ts'
import type { Deviations } from './deviations.ts'
import { describeReply, type ExaminedServer, quote } from './examined-server.ts'
import type { ProbeTarget } from './http-post.ts'
import { sendHttp } from './http-send.ts'
import { handshakeParams } from './streamable.ts'

type Opened =
  | { readonly kind: 'open'; readonly examined: ExaminedServer }
  | { readonly kind: 'none'; readonly reason: string }

/** A server of the HTTP+SSE transport, which 2024-11-05 defined and later revisions kept for older clients. */
export const openHttpSse = async (
  target: ProbeTarget,
  revision: string,
  identity: Json,
  deviations: Deviations,
): Promise<Opened> => {
  const where = `HTTP+SSE ${revision}`
  let endpoint: URL | undefined
  const post = (message: Buffer): void => {
    if (!endpoint) return
    const headers = { ...target.headers, 'content-type': 'application/json' }
    const sent = sendHttp(endpoint, target.timeoutMs, { method: 'POST', headers, body: message })
    sent.then(
      ({ status, body }) => {
        if (status >= 400)
          channel.end(`a POST to ${endpoint?.pathname} was answered ${status}: ${quote(body.toString())}`)
      },
      (error: Error) => channel.end(error.message),
    )
  }
  const channel = new ReplyChannel(post, target.timeoutMs, deviations, where)
  const stream = await openStream(target, ({ event, data }) => {
    if (endpoint) {
      if (MESSAGE_EVENTS.has(event) && data.length > 0) channel.take(data)
      return true
    }
    const text = data.toString()
    if (event !== 'endpoint') deviations.add('endpoint-event', where, `the first event was called ${event}`)
    endpoint = event === 'endpoint' || event === 'message' ? endpointIn(text, target.url) : target.url
    return endpoint !== undefined
  })
  if (typeof stream === 'string') return { kind: 'none', reason: stream }
  stream.response.on('close', () => channel.end('the event stream ended'))
  const reply = await channel.request('initialize', handshakeParams(revision, identity))
  const lacksHandshake = reply.kind === 'error' && reply.code === ERRORS.methodNotFound.code
  if (lacksHandshake) deviations.add('handshake', where, `answered ${describeReply(reply)}`)
  if (reply.kind !== 'result' && !lacksHandshake) {
    stream.outgoing.destroy()
    return { kind: 'none', reason: `initialize: ${describeReply(reply)}` }
  }
  channel.notify(NOTIFICATIONS.initialized)
  const opening = reply.kind === 'result' ? reply.result : Json.empty
  const agreed = opening.get('protocolVersion')?.asString() ?? (lacksHandshake ? OLDEST : revision)
  channel.where = `HTTP+SSE ${agreed}`
  const examined: ExaminedServer = {
    transport: 'HTTP+SSE',
    revision: agreed,
    where: channel.where,
    opening,
    openingMs: reply.ms,
    lacksHandshake,
    request: (method, params) => channel.request(method, params),
    close: async () => void stream.outgoing.destroy(),
  }
  return { kind: 'open', examined }
}

const MESSAGE_EVENTS: ReadonlySet<string> = new Set(['message', 'response', 'notification'])

interface OpenStream {
  readonly outgoing: ClientRequest
  readonly response: IncomingMessage
}

/** Opens the stream; resolves when its first event has come, or with the reason why there is none. */
const openStream = (
  { url, headers, timeoutMs }: ProbeTarget,
  onEvent: (event: { readonly event: string; readonly data: Buffer }) => boolean,
): Promise<OpenStream | string> =>
  new Promise(resolve => {
    const open = url.protocol === 'https:' ? requestHttps : requestHttp
    const outgoing = open(url, { method: 'GET', headers: { ...headers, accept: 'text/event-stream' }, agent: false })
    const refuse = (reason: string): void => {
      clearTimeout(timer)
      outgoing.destroy()
      resolve(reason)
    }
    const timer = setTimeout(() => refuse(`GET had no endpoint event within ${timeoutMs / 1000} s`), timeoutMs)
    outgoing.on('error', error => {
      refuse(error.message)
    })
    outgoing.on('response', response => {
      response.on('error', () => {}) // `close` follows
      const type = response.headers['content-type'] ?? ''
      if (response.statusCode !== 200) return refuse(`GET is answered with ${response.statusCode}`)
      if (!type.startsWith('text/event-stream')) return refuse(`GET is answered with ${type || 'no Content-Type'}`)
      const decoder = new SseDecoder(event => {
        if (!onEvent(event)) return refuse('the endpoint of the stream is at another origin')
        clearTimeout(timer)
        resolve({ outgoing, response })
      })
      response.on('data', (chunk: Buffer) => decoder.feed(chunk))
      response.on('end', () => refuse('the stream ended without an endpoint event'))
    })
    outgoing.end()
  })

/** The address for messages; it must be at the same origin. */
const endpointIn = (text: string, base: URL): URL | undefined => {
  if (!URL.canParse(text, base.href)) return undefined
  const endpoint = new URL(text, base)
  return endpoint.origin === base.origin ? endpoint : undefined
}
