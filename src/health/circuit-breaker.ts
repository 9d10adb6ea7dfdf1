import { NoAnswer, type RpcError, rpcError } from '../protocol/errors.ts'
import { Json } from '../wire/json/json.ts'

/** Why a server is not well: the word for programs and the sentence for people, which names the server. */
export interface ServerFault {
  readonly reason: string
  readonly message: string
  readonly retryMs?: number | undefined // before this, a try cannot help
}

/** What is known about a server that is not asked any more. */
interface Outage {
  readonly fault: ServerFault
  readonly since: number
  readonly retryAt: number
}

/** So many failures in a row, each of something begun after the one before, and nobody is sent there any more. */
export const BREAK_AFTER = 3
const SHORTEST_MS = 1000
const LONGEST_MS = 60_000

/** How long a server is left alone before the next try; `dice` (0 to 1) keeps many from being tried at once. */
export const backoffMs = (tries: number, dice: number): number =>
  Math.min(LONGEST_MS, SHORTEST_MS * 2 ** (tries - 1)) * (0.5 + dice / 2)

/** Failures that are the way's or the machine's; what a server says itself, or a refusal of one caller, is none. */
const BREAKING: ReadonlySet<string> = new Set([
  'upstream_unreachable',
  'upstream_timeout',
  'upstream_stream_lost',
  'upstream_lost',
])

export const isBreaking = ({ reason }: ServerFault): boolean => BREAKING.has(reason)

/** The fault an error tells of, if it is not the server's own word. */
export const serverFaultOf = (error: RpcError): ServerFault | undefined =>
  error instanceof NoAnswer
    ? {
        reason: error.data?.get('reason')?.asString() ?? 'upstream_lost',
        message: error.summary,
        retryMs: error.retryMs,
      }
    : undefined

/** What callers of a server are told while it is down: what happened, since when, and when it is tried again. */
export const downError = (server: string, { fault, since, retryAt }: Outage, now: number): RpcError => {
  const ms = Math.max(0, retryAt - now)
  const next = ms > 0 ? `is tried again in ${Math.ceil(ms / 1000)} s` : 'is being tried again now'
  const message = `${fault.message}. It has been down since ${new Date(since).toISOString()} and ${next}`
  return rpcError(
    'internal',
    message,
    Json.of({ reason: fault.reason, upstream: server, retryAfterMs: Math.round(ms) }),
  )
}
