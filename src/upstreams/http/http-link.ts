import type { RemoteServer } from '../../config/snapshot.ts'
import type { Caller } from '../../protocol/exchange.ts'
import type { Log } from '../../telemetry/log.ts'
import { Json } from '../../wire/json/json.ts'
import { Deadlines } from '../deadlines.ts'
import { CapabilityOffer } from '../session/capability-offer.ts'
import { HttpClient, type ResponseTimeouts } from './http-client.ts'
import { type HttpTarget, targetOf } from './redirect.ts'

/** What may be tuned; tests shorten the times. */
export interface HttpLinkOptions {
  readonly log: Log
  readonly identity?: { readonly name: string; readonly version: string } // who we are where the client is not known
  readonly connectMs?: number
  readonly answerMs?: number // for handshakes, notifications and everything else that is quick
  readonly endpointMs?: number // for an SSE channel to say where messages go
  readonly maxBytes?: number // one message from the server
  readonly ownPort?: (() => number | undefined) | undefined // where the gateway listens; no redirect leads there
  readonly offersCallerRevision?: boolean // a handshake offers the caller's own revision instead of the newest legacy one
}

/** Everything the dialects share to speak with one server. */
export interface HttpLink {
  readonly name: string
  readonly http: HttpClient
  readonly deadlines: Deadlines
  readonly target: HttpTarget
  readonly headers: readonly string[] // of every request: the configured ones and ours
  readonly timeoutMs: number // silence of a call
  readonly responseTimeouts: ResponseTimeouts // silence of everything else
  readonly endpointMs: number // for a channel to name its endpoint
  readonly allowsCrossOriginEndpoint: boolean // the endpoint may be on another origin
  readonly maxBytes: number
  readonly identity: Json
  readonly offersCallerRevision: boolean
  readonly log: Log
  readonly offers: CapabilityOffer
}

const OURS: ReadonlySet<string> = new Set([
  ...['accept', 'content-type', 'content-length', 'transfer-encoding', 'connection', 'keep-alive', 'upgrade', 'expect'],
  ...['host', 'mcp-protocol-version', 'mcp-session-id', 'mcp-method', 'mcp-name', 'last-event-id'],
])
const MIB = 1024 * 1024

/** Prepares what every request to that server needs; nothing is sent yet. */
export const createHttpLink = (
  server: RemoteServer & { readonly name: string },
  options: HttpLinkOptions,
): HttpLink => {
  const { connectMs = 10_000, answerMs = 30_000, endpointMs = 5000, maxBytes = 64 * MIB } = options
  const { name = 'dragoman', version = '0.0.0' } = options.identity ?? {}
  const { log } = options
  const configured = Object.entries(server.headers).filter(([header]) => !isOurs(header, log))
  const hasAgent = configured.some(([header]) => header.toLowerCase() === 'user-agent')
  const shortest = Math.min(answerMs, server.timeoutMs || answerMs)
  const watch = new Deadlines(Math.max(10, Math.min(1000, shortest / 4)))
  return {
    name: server.name,
    http: new HttpClient({
      secrets: configured.map(([header]) => header),
      connectMs,
      allowsCrossOrigin: server.allowCrossOriginRedirect,
      ownPort: options.ownPort,
      deadlines: watch,
      log,
    }),
    deadlines: watch,
    target: targetOf(server.url),
    headers: [...configured.flat(), ...(hasAgent ? [] : ['user-agent', `${name}/${version}`])],
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

const isOurs = (header: string, log: Log): boolean => {
  if (!OURS.has(header.toLowerCase())) return false
  log.warn({ header }, 'this configured header is written by the gateway itself and was left out')
  return true
}

export const POST_HEADERS: readonly string[] = [
  ...['content-type', 'application/json'],
  ...['accept', 'application/json, text/event-stream'],
]

/** Appends the caller's own headers: mirrored arguments and trace context. */
export const addCallerHeaders = (headers: string[], caller: Caller): string[] => {
  for (const [name, value] of caller.headers) headers.push(name, value)
  return headers
}
