import type { RemoteServer } from '../../config/snapshot.ts'
import type { Exchange } from '../../protocol/exchange.ts'
import type { Log } from '../../telemetry/log.ts'
import { Json } from '../../wire/json/json.ts'
import { Deadlines } from '../deadlines.ts'
import { CapabilityOffer } from '../session/capability-offer.ts'
import type { BearerTokens } from './authorized-request.ts'
import { HttpClient, type ResponseTimeouts } from './http-client.ts'
import { type HttpTarget, targetOf } from './redirect.ts'

/** Options of all upstreams over HTTP; tests shorten the times. */
export interface HttpLinkOptions {
  readonly log: Log
  readonly identity?: { readonly name: string; readonly version: string } // clientInfo of requests without a client
  readonly connectMs?: number
  readonly answerMs?: number // for handshakes, notifications and every other short request
  readonly endpointMs?: number // for an SSE channel to send its endpoint event
  readonly maxBytes?: number // one message from the server
  readonly ownPort?: (() => number | undefined) | undefined // where the gateway listens; redirects to it are refused
  readonly offersCallerRevision?: boolean // a handshake offers the caller's own revision instead of the newest legacy one
  readonly tokens?: BearerTokens | undefined // undefined: the server is called without OAuth
}

/** What all dialects need to send requests to one server. */
export interface HttpLink {
  readonly name: string
  readonly http: HttpClient
  readonly deadlines: Deadlines
  readonly target: HttpTarget
  readonly headers: readonly string[] // of every request: the configured ones and User-Agent
  readonly timeoutMs: number // until a silent call fails
  readonly responseTimeouts: ResponseTimeouts // of every other request
  readonly endpointMs: number
  readonly allowsCrossOriginEndpoint: boolean
  readonly maxBytes: number
  readonly identity: Json
  readonly offersCallerRevision: boolean
  readonly log: Log
  readonly offers: CapabilityOffer
}

/** Headers that the gateway writes itself. */
const RESERVED_HEADERS: ReadonlySet<string> = new Set([
  ...['accept', 'content-type', 'content-length', 'transfer-encoding', 'connection', 'keep-alive', 'upgrade', 'expect'],
  ...['host', 'mcp-protocol-version', 'mcp-session-id', 'mcp-method', 'mcp-name', 'last-event-id'],
])
const MIB = 1024 * 1024

/** Sends nothing yet. */
export const createHttpLink = (
  server: RemoteServer & { readonly name: string },
  options: HttpLinkOptions,
): HttpLink => {
  const { connectMs = 10_000, answerMs = 30_000, endpointMs = 5000, maxBytes = 64 * MIB } = options
  const { name = 'dragoman', version = '0.0.0' } = options.identity ?? {}
  const { log } = options
  const configured = Object.entries(server.headers).filter(([header]) => !isReserved(header, log))
  const hasUserAgent = configured.some(([header]) => header.toLowerCase() === 'user-agent')
  const shortest = Math.min(answerMs, server.timeoutMs || answerMs)
  const deadlines = new Deadlines(Math.max(10, Math.min(1000, shortest / 4)))
  const target = targetOf(server.url)
  return {
    name: server.name,
    http: new HttpClient({
      secretHeaders: configured.map(([header]) => header),
      connectMs,
      allowsCrossOrigin: server.allowCrossOriginRedirect,
      ownPort: options.ownPort,
      access: options.tokens && { origin: target.origin, tokens: options.tokens },
      deadlines,
      log,
    }),
    deadlines,
    target,
    headers: [...configured.flat(), ...(hasUserAgent ? [] : ['user-agent', `${name}/${version}`])],
    timeoutMs: server.timeoutMs,
    responseTimeouts: { headersMs: answerMs, bodyMs: answerMs },
    endpointMs,
    allowsCrossOriginEndpoint: server.allowCrossOriginEndpoint === true,
    maxBytes,
    identity: Json.of({ name, version }),
    offersCallerRevision: options.offersCallerRevision ?? false,
    log,
    offers: new CapabilityOffer(server.name, log),
  }
}

const isReserved = (header: string, log: Log): boolean => {
  if (!RESERVED_HEADERS.has(header.toLowerCase())) return false
  log.warn({ header }, 'configured header ignored: the gateway writes it itself')
  return true
}

export const POST_HEADERS: readonly string[] = [
  ...['content-type', 'application/json'],
  ...['accept', 'application/json, text/event-stream'],
]

/** Appends the headers of the caller, arguments (Mcp-Param-*) and trace context, and the context of a new trace. */
export const addCallerHeaders = (headers: string[], { caller, record }: Exchange): string[] => {
  if (caller.headers.size > 0) for (const [name, value] of caller.headers) headers.push(name, value)
  const unrecorded = record?.trace?.unrecorded
  if (unrecorded !== undefined) headers.push('traceparent', unrecorded)
  return headers
}
