import type { Readable, Writable } from 'node:stream'
import type { Daemon } from '../config/daemon-file.ts'
import type { ConfigDifference } from '../config/difference.ts'
import type { ServerConfig, Snapshot } from '../config/snapshot.ts'
import type { Caller, Dispatch, Exchange, Sink } from '../protocol/exchange.ts'
import type { Revision } from '../protocol/revisions.ts'
import type { CheckReport, ServerReport, WorkspaceStatus } from '../protocol/status.ts'
import type { MemoryAdmin, MemoryAdminOptions } from '../servers/memory/memory-admin.ts'
import type { OpenState } from '../stores/state/open-state.ts'
import type { Log } from '../telemetry/log.ts'
import type { LogHistory } from '../telemetry/log-history.ts'
import type { MainLink } from '../workers/main-link.ts'
import type { WorkerProcesses } from '../workers/worker-processes.ts'
import type { Terminal } from './client/terminal.ts'

/** The part of a running gateway that `dragoman serve` uses. */
export interface ServedGateway {
  readonly origin: string
  readonly localSecret: string // a token for every workspace while the gateway runs
  readonly ready: Promise<void> // every server has been tried once
  status(): readonly WorkspaceStatus[]
  /** A link to the console that signs a browser in once, as the owner. */
  createConsoleLink(): { readonly url: string }
  /** The time without a request and without an open session, channel or stream. */
  idleMs(): number
  /** Applies another configuration. */
  swap(next: Snapshot): ConfigDifference
  /** Asks the other replicas to read their configuration files again. */
  announceReload(): void
  /** Records that a changed configuration is invalid and was not applied. */
  rejectedReload(reason: string): void
  close(): Promise<void>
}

/** Reads a configuration file; without a name, the one the gateway was started with. */
export type LoadConfig = (file?: string, text?: string) => Promise<Snapshot>

export interface ServeOptions {
  readonly log: Log
  readonly version: string
  readonly data: string
  readonly insecure: boolean
  readonly loadNext: LoadConfig
  readonly history: LogHistory
  readonly onReload: () => void // another replica has reloaded its configuration
  readonly state: OpenState | undefined // undefined: it ends with the gateway
  readonly workers?: WorkerProcesses | undefined // its other processes
  readonly main?: MainLink | undefined // this process is one of those
  /** What the owner of the gateway can do over HTTP; undefined: another process does it. */
  readonly control?: {
    reload(): Promise<ConfigDifference>
    restart(): Promise<void>
    stop(): void
    useFile?(file: string): Promise<ConfigDifference>
  }
}

/** Serves a workspace of the daemon on stdin and stdout until the client has gone. */
type ServePipe = (options: {
  daemon: Daemon
  findAgain: (mayStart: boolean) => Promise<Daemon | undefined>
  workspace: string
  input: Readable
  output: Writable
  log: Log
  version: string
}) => Promise<void>

/** Connects to every server of a configuration once. */
export type Inspect = (
  snapshot: Snapshot,
  options: {
    log: Log
    version: string
    data: string
    timeoutMs?: number | undefined
    met?: (report: ServerReport) => void
  },
) => Promise<CheckReport>

/** What a client subscribes to. */
export interface WatchRequest {
  readonly uris: readonly string[] // of resources
  readonly lists: boolean
}

/** A server, or a workspace of the daemon, as a client sees it. */
export interface ClientPeer {
  readonly revision: Revision
  readonly dispatch: Dispatch // asks with question frames, whatever the revision
  /** Sends changes to the sink until the signal aborts; a failure or result ends it before. */
  watch(request: WatchRequest, exchange: Pick<Exchange, 'caller' | 'signal' | 'sink'>): void
  close(): Promise<void>
}

/** Connects to one server; rejects with RpcFailure. */
export type OpenServer = (
  server: ServerConfig,
  options: {
    readonly caller: Caller
    readonly timeoutMs: number // to connect, and for each answer of the handshake
    readonly isRevisionForced: boolean // the handshake offers the caller's revision
    readonly version: string
    readonly data: string
    readonly log: Log
    readonly sink: Sink // of what the server sends outside requests
  },
) => Promise<ClientPeer>

/** Connects to a workspace of the daemon; `asks`: the client can answer questions. */
export type OpenDaemon = (daemon: Daemon, workspace: string, asks: boolean) => Promise<ClientPeer>

/** What main.ts hands to the commands: cli/ may not import the parts that implement it. */
export interface Programs {
  readonly startGateway: (snapshot: Snapshot, options: ServeOptions) => Promise<ServedGateway>
  readonly servePipe: ServePipe
  readonly inspect: Inspect
  readonly terminal?: Terminal | undefined // of client commands; undefined: the one of the process
  readonly openServer: OpenServer
  readonly openDaemon: OpenDaemon
  readonly openMemory: (options: MemoryAdminOptions) => Promise<MemoryAdmin>
}

export interface CommandContext extends Programs {
  readonly version: string
}

/** Runs a command with the arguments after its name and returns the exit code. */
export type Run = (args: readonly string[], context: CommandContext) => Promise<number>
