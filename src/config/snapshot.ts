/** The checked configuration the gateway is built from; nothing in it changes afterwards. */
export interface Snapshot {
  readonly listen: Listen
  readonly limits: Limits
  readonly servers: ReadonlyMap<string, ServerConfig>
  readonly workspaces: ReadonlyMap<string, WorkspaceConfig>
  readonly warnings: readonly string[]
}

/** Where the doors are, and which Host and Origin headers they take besides the loopback ones. */
export interface Listen {
  readonly host: string
  readonly port: number // 0: any free one
  readonly allowedHosts: readonly string[]
  readonly allowedOrigins: readonly string[]
}

/** Every bound on size, number and time. */
export interface Limits {
  readonly bodyBytes: number // one request body
  readonly requestTimeoutMs: number // until a whole request has arrived
  readonly sessionIdleMs: number // a legacy session nobody uses
  readonly orphanMs: number // a call whose client left and may come back
  readonly questionTtlMs: number // a parked question nobody answers
  readonly keepAliveMs: number // between comments on a silent stream
  readonly stallMs: number // a reader that takes nothing
  readonly streamLogBytes: number // kept for resuming one stream
  readonly streamLogEvents: number // kept for resuming one stream
  readonly totalLogBytes: number // kept for resuming, all streams together
  readonly shutdownMs: number // for calls in flight when the gateway closes
  readonly batchSize: number // messages in one batch
}

/** One entry of `mcpServers`. */
export type ServerConfig = { readonly name: string; readonly disabled: boolean } & (
  | RemoteServer
  | BuiltinServer
  | UnavailableServer
)

/** A server reached over HTTP. */
export interface RemoteServer {
  readonly kind: 'remote'
  readonly url: string
  readonly type: 'http' | 'sse' | 'auto'
  readonly headers: Readonly<Record<string, string>>
  readonly era: 'auto' | 'modern' | 'legacy'
  readonly timeoutMs: number // silence of a call before it is given up; progress resets it
}

/** A server that lives in this process. */
export interface BuiltinServer {
  readonly kind: 'builtin'
  readonly builtin: 'demo'
}

/** An entry that is right but cannot be served: shown with its reason, stops nothing else. */
export interface UnavailableServer {
  readonly kind: 'unavailable'
  readonly reason: string
}

/** A set of servers behind one URL; exactly one server in this release. */
export interface WorkspaceConfig {
  readonly name: string
  readonly servers: readonly string[]
}

const MIB = 1024 * 1024
const MINUTE = 60_000

export const DEFAULT_LISTEN: Listen = { host: '127.0.0.1', port: 8765, allowedHosts: [], allowedOrigins: [] }

export const DEFAULT_LIMITS: Limits = {
  bodyBytes: 64 * MIB,
  requestTimeoutMs: 5 * MINUTE,
  sessionIdleMs: 24 * 60 * MINUTE,
  orphanMs: 10 * MINUTE,
  questionTtlMs: 15 * MINUTE,
  keepAliveMs: 15_000,
  stallMs: 2 * MINUTE,
  streamLogBytes: 4 * MIB,
  streamLogEvents: 1000,
  totalLogBytes: 64 * MIB,
  shutdownMs: 5_000,
  batchSize: 100,
}

/** Silence after which a call to a remote server is given up, unless its entry says otherwise. */
export const DEFAULT_TIMEOUT_MS = 5 * MINUTE
