import type { CallActivity } from '../telemetry/server-calls.ts'
import type { FlaggedTool, PinStatus } from './pins.ts'
import type { SizedTool, ToolListSize, ToolSize } from './tool-size.ts'

/** The current state of a configured server. */
export interface ServerStatus {
  readonly name: string
  readonly state: ServerState
  readonly since?: number | undefined // Unix time in milliseconds
  readonly reason?: string | undefined // why it is not ready
  readonly retryAt?: number | undefined // when a server that is down is probed again
  readonly revision?: string | undefined
  readonly tools?: number | undefined
  readonly toolSize?: ToolSize | undefined // of all its tools as it lists them
  readonly largestTools?: readonly SizedTool[] | undefined // the largest first, at most ten
  readonly processes?: number | undefined // that run; undefined: this machine does not run it
  readonly figures?: ServerCounters | undefined
  readonly transport?: string | undefined // http, sse, stdio, built-in
  readonly isStopped?: boolean | undefined // by its owner, until it is started or the gateway restarts
  readonly flags?: readonly FlaggedTool[] | undefined // its tools that break a rule of docs/tool-safety.md
  readonly pins?: PinStatus | undefined // undefined: its tools are not pinned
  readonly hasLogin?: boolean | undefined // it wants a login of its users
  readonly activity?: CallActivity | undefined // only in the list of all servers; undefined: it was not called
}

/**
 * `untried`: only a call can show whether it answers; `degraded`: it may answer, but something failed; `unavailable`: its
 * entry in the configuration cannot be served.
 */
export type ServerState = (typeof SERVER_STATES)[number]

export const SERVER_STATES = ['connecting', 'untried', 'ready', 'degraded', 'down', 'disabled', 'unavailable'] as const

/** How long a server took to answer the gateway. */
export interface ServerPing {
  readonly revision: string
  readonly connectMs: number // to open a connection, or to start a process
  readonly ms: number // to answer one request
}

/** Counters of one server. */
export interface ServerCounters {
  readonly openings: number // how often it went down
  readonly retries: number // requests and connections that were retried
  readonly running?: number | undefined // calls in progress; counted only if they are limited
  readonly waiting: number // calls in the queue
}

/** The state of a workspace, for operators. */
export interface WorkspaceStatus {
  readonly name: string
  readonly url: string
  readonly servers: readonly ServerStatus[]
  readonly toolList?: ToolListSize | undefined // for callers without a policy of their own; absent in older versions
}

/** A running gateway, as `dragoman status` shows it. */
export interface GatewayStatus {
  readonly version: string
  readonly pid: number
  readonly origin: string
  readonly config?: string | undefined // the path of its configuration file
  readonly startedAt: number // Unix time in milliseconds
  readonly memoryBytes: number // without the processes of servers
  readonly sessions: number // of legacy clients
  readonly channels: number // of HTTP+SSE clients
  readonly streams: number
  readonly calls: number // that have not been answered
  readonly parkedCalls: number // that wait for an answer of their client
  readonly tasks?: number | undefined // that the gateway runs itself; absent in older versions
  readonly servers: readonly ServerStatus[]
  readonly workspaces: readonly WorkspaceStatus[]
  readonly state?: StateStatus | undefined // absent in versions without a store
}

/** Where a gateway keeps its state, and the replicas that share it. */
export interface StateStatus {
  readonly engine: 'memory' | 'sqlite' | 'postgres'
  readonly state: StoreState
  readonly reason?: string | undefined // why it is not ok
  readonly claims: number // records that this replica holds
  readonly journalBytes: number // of the events of streams
  readonly queuedBytes: number // that wait to be written
  readonly forwards: number // requests that other replicas serve for this one now
  readonly replicas: readonly ReplicaStatus[] // that are alive, this one too
}

/** `away`: writes wait for the database; `memory-only`: it cannot be used, so nothing survives a restart. */
export type StoreState = (typeof STORE_STATES)[number]

export const STORE_STATES = ['ok', 'away', 'memory-only'] as const

/** One of the gateways that share a store. */
export interface ReplicaStatus {
  readonly name: string // new at each start
  readonly address: string // for other replicas; empty: they cannot reach it
  readonly labels: readonly string[]
  readonly isSelf: boolean
}

/** The result of `dragoman check`: every server of a configuration was connected to once. */
export interface CheckReport {
  readonly servers: readonly ServerReport[]
  readonly workspaces: readonly WorkspaceReport[]
  readonly flags: readonly FlaggedTool[] // tools that break a rule of docs/tool-safety.md
}

/** What `check` found at one server. */
export interface ServerReport {
  readonly name: string
  readonly state: ServerState
  readonly transport: string // http, sse, stdio, built-in
  readonly revision?: string | undefined
  readonly tools?: number | undefined
  readonly toolSize?: ToolSize | undefined
  readonly toolSizes?: readonly SizedTool[] | undefined // of each tool, the largest first
  readonly prompts?: number | undefined
  readonly resources?: number | undefined // templates included
  readonly ms?: number | undefined // until it had answered all requests
  readonly reason?: string | undefined
  readonly flaws?: readonly string[] | undefined // errors in its lists
  readonly stderr?: readonly string[] | undefined // the last lines that a server that is down printed
}

/** What a workspace shows of the servers that answered. */
export interface WorkspaceReport {
  readonly name: string
  readonly servers: readonly string[]
  readonly names: string // the style
  readonly tools: readonly string[] // as they are shown
  readonly toolList: ToolListSize
  readonly prompts: readonly string[]
  readonly resources: number
  readonly hidden: { readonly policy: number; readonly overlays: number }
  readonly collisions: readonly NameCollision[]
  readonly unknown: readonly string[] // tools of the configuration that their servers do not have
  readonly shadowed: readonly ShadowedTool[]
}

/** A tool that cannot be called, because another tool of its server has the name it was given. */
export interface ShadowedTool {
  readonly tool: string // as `<server>/<tool>`, and so is the other one
  readonly by: string
  readonly as: string
}

/** A name or URI that several servers use, and the name each is shown under. */
export interface NameCollision {
  readonly name: string
  readonly shown: readonly { readonly server: string; readonly as: string }[]
}
