import type { Upstream } from '../protocol/exchange.ts'
import { EVERYTHING, type Policy } from '../protocol/policy.ts'
import type { Personal } from './personal.ts'

/** The checked configuration the gateway is built from; nothing in it changes afterwards. */
export interface Snapshot {
  readonly listen: Listen
  readonly auth?: Auth | undefined
  readonly sse?: Sse | undefined
  readonly limits: Limits
  readonly servers: ReadonlyMap<string, ServerConfig>
  readonly workspaces: ReadonlyMap<string, WorkspaceConfig>
  readonly policies?: ReadonlyMap<string, Policy> | undefined // by name, for tokens
  readonly warnings: readonly string[]
  readonly sources?: readonly string[] | undefined // the file and the secret files it was read from, as absolute paths
}

/** Where the doors are, and which Host and Origin headers they take besides the loopback ones. */
export interface Listen {
  readonly host: string
  readonly port: number // 0: any free one
  readonly allowedHosts: readonly string[]
  readonly allowedOrigins: readonly string[]
  readonly exposeMetrics: boolean // figures are shown to every caller who reaches the port
}

/** How callers are known. */
export interface Auth {
  readonly required?: boolean | undefined // whether a token is needed; undefined: from the first one on
}

/** How SSE channels introduce themselves. */
export interface Sse {
  readonly endpoint: 'relative' | 'absolute' // the address for messages: a path, or a whole URL
  readonly events?: readonly ('lifecycle' | 'ping')[] | undefined // for clients that do not choose with `?events=`
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
  readonly principalLogBytes: number // kept for resuming, all streams of one principal
  readonly principalSessions: number // sessions of one principal, and as many channels
  readonly principalParkedCalls: number // calls of one principal that wait for an answer to a question
  readonly principalUpstreamSessions: number // sessions of one principal at one server
  readonly shutdownMs: number // for calls in flight when the gateway closes
  readonly batchSize: number // messages in one batch
  readonly concurrentStarts: number // servers being started at the same time
  readonly rate?: Rate | undefined // requests; undefined: as many as come
}

/** How many requests are taken. */
export interface Rate {
  readonly perPrincipal?: RateLimit | undefined
  readonly perWorkspace?: RateLimit | undefined
}

export interface RateLimit {
  readonly perSecond: number
  readonly burst: number // so many more, every ten seconds
}

/** One entry of `mcpServers`. */
export type ServerConfig = {
  readonly name: string
  readonly disabled: boolean
  readonly concurrency?: number | undefined // calls at the same time; undefined: as many as come
} & (RemoteServer | ProcessServer | BuiltinServer | EmbeddedServer | UnavailableServer)

/**
 * Which session a caller without one of its own gets at a legacy server: `sticky`, one per principal and set of
 * capabilities; `stateless`, one for all, where the server keeps nothing between requests; `isolated`, one per request.
 */
export type PoolManner = 'sticky' | 'stateless' | 'isolated'

/** A server reached over HTTP. */
export interface RemoteServer {
  readonly kind: 'remote'
  readonly url: string
  readonly type: 'http' | 'sse' | 'auto'
  readonly allowCrossOriginEndpoint?: boolean | undefined // of an SSE channel
  readonly allowCrossOriginRedirect?: boolean | undefined
  readonly headers: Readonly<Record<string, string>>
  readonly personal?: Personal | undefined // headers that differ by caller
  readonly era: 'auto' | 'modern' | 'legacy'
  readonly timeoutMs: number // silence of a call before it is given up; progress resets it
  readonly pool?: PoolManner | undefined // undefined: sticky
}

/** Whose requests one process of a server may serve: those of one user, or of all. */
export type ProcessSharing = 'user' | 'everyone'

/** A server that is started here and spoken to over its stdin and stdout. */
export interface ProcessServer {
  readonly kind: 'process'
  readonly command: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>> // besides the little every program gets
  readonly personal?: Personal | undefined // variables that differ by caller
  readonly cwd: string | undefined // undefined: where the gateway runs
  readonly era: 'auto' | 'modern' | 'legacy'
  readonly timeoutMs: number // silence of a call before it is given up; progress resets it
  readonly pool?: PoolManner | undefined // undefined: sticky
  readonly share?: ProcessSharing | undefined // undefined: user
  readonly limits?: ProcessLimits | undefined
}

/** How long, how large and how many the processes of one server may be; 0: no limit. */
export interface ProcessLimits {
  readonly idleMs: number // a process nobody uses
  readonly lifetimeMs: number // also a process that is used, as soon as it can be replaced
  readonly memoryBytes: number // resident, with its children
  readonly processes: number // at the same time
  readonly exitMs: number // to leave after its stdin was closed
  readonly termMs: number // to leave after SIGTERM
}

/** A server that lives in this process. */
export type BuiltinServer =
  | { readonly kind: 'builtin'; readonly builtin: 'demo' }
  | { readonly kind: 'builtin'; readonly builtin: 'files'; readonly root: string; readonly showHidden?: boolean }
  | ({ readonly kind: 'builtin'; readonly builtin: 'memory' } & MemorySettings)

/** A server defined by the program that embeds the gateway. */
export interface EmbeddedServer {
  readonly kind: 'embedded'
  readonly upstream: Upstream
}

/** How the built-in memory keeps what it is told. */
export interface MemorySettings {
  readonly tenant: 'workspace' | 'principal' // who shares one
  readonly group: string // of what names none
  readonly database?: string | undefined // undefined: files in the data directory
  readonly extraction?: ExtractionSettings | undefined
  readonly embeddings?: EmbeddingSettings | undefined
}

/** A model behind an OpenAI-compatible address. */
interface ModelSettings {
  readonly url: string
  readonly key?: string | undefined
  readonly model: string
}

export interface ExtractionSettings extends ModelSettings {
  readonly smallModel?: string | undefined
  readonly dailyTokens?: number | undefined
  readonly callsPerMinute?: number | undefined
}

export interface EmbeddingSettings extends ModelSettings {
  readonly dimensions?: number | undefined
}

/** An entry that is right but cannot be served: shown with its reason, stops nothing else. */
export interface UnavailableServer {
  readonly kind: 'unavailable'
  readonly reason: string
}

/** A set of servers behind one URL. */
export interface WorkspaceConfig extends WorkspaceRules {
  readonly name: string
  readonly servers: readonly string[]
}

/** What a workspace shows of its servers, and how. */
export interface WorkspaceRules {
  readonly names: NameStyle
  readonly instructions?: string | undefined // instead of what the servers say
  readonly strict: boolean // a list fails when a server is missing from it
  readonly policy: Policy
  readonly overlays: ReadonlyMap<string, ReadonlyMap<string, Overlay>> // by server, then by the tool's own name
}

/** How tools and prompts are called: `<server>__<name>`, `<server>/<name>`, or as their servers call them. */
export type NameStyle = 'prefix' | 'slash' | 'plain'

/** How one tool is shown and called differently from what its server says. */
export interface Overlay {
  readonly name?: string | undefined // shown instead of its own
  readonly title?: string | undefined
  readonly description?: string | undefined
  readonly hidden: boolean
  readonly annotations?: Readonly<Record<string, unknown>> | undefined // laid over its own
  readonly fixed: Readonly<Record<string, unknown>> // arguments no caller can see or change
  readonly defaults: Readonly<Record<string, unknown>> // arguments for callers who leave them out
}

/** A workspace nobody wrote rules for; several servers show their names, a single one need not. */
export const plainRules = (servers: number): WorkspaceRules => ({
  names: servers > 1 ? 'prefix' : 'plain',
  strict: false,
  policy: EVERYTHING,
  overlays: new Map(),
})

const MIB = 1024 * 1024
const MINUTE = 60_000

export const DEFAULT_LISTEN: Listen = {
  host: '127.0.0.1',
  port: 8765,
  allowedHosts: [],
  allowedOrigins: [],
  exposeMetrics: false,
}

export const DEFAULT_SSE: Sse = { endpoint: 'relative' }

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
  principalLogBytes: 32 * MIB,
  principalSessions: 1000,
  principalParkedCalls: 1000,
  principalUpstreamSessions: 256,
  shutdownMs: 5_000,
  batchSize: 100,
  concurrentStarts: 4,
}

export const DEFAULT_PROCESS_LIMITS: ProcessLimits = {
  idleMs: 30 * MINUTE,
  lifetimeMs: 0,
  memoryBytes: 0,
  processes: 64,
  exitMs: 2000,
  termMs: 2000,
}

/** Silence after which a call to a remote server is given up, unless its entry says otherwise. */
export const DEFAULT_TIMEOUT_MS = 5 * MINUTE
