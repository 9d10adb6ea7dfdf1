import type { ConsoleLink } from '../admin/api/session.ts'
import type { GatewayControl } from '../admin/gateway-endpoints.ts'
import type { ConfigDifference } from '../config/difference.ts'
import type { Snapshot } from '../config/snapshot.ts'
import type { FrontState } from '../fronts/http/front-request.ts'
import type { WorkspaceStatus } from '../protocol/status.ts'
import { MemoryCluster } from '../stores/state/memory-state.ts'
import { randomKeys, type StateKeys } from '../stores/state/secret.ts'
import type { StateStore } from '../stores/state/state-store.ts'
import type { Log } from '../telemetry/log.ts'
import type { LogHistory } from '../telemetry/log-history.ts'
import type { MainLink } from '../workers/main-link.ts'
import type { WorkerProcesses } from '../workers/worker-processes.ts'

/** A running gateway. */
export interface Gateway {
  readonly port: number
  readonly origin: string
  readonly ready: Promise<void> // every server has been probed once
  readonly localSecret: string // a token for programs of the same user on this machine, valid while the gateway runs
  /** A link to the console that signs a browser in once, as the owner. */
  createConsoleLink(): ConsoleLink
  url(workspace?: string): string
  status(): readonly WorkspaceStatus[]
  /** Open resources; all figures return to their start when the last client has left. */
  load(): { readonly sessions: number; readonly channels: number; readonly calls: number; readonly logBytes: number }
  /** The time since the last request; 0 while a session, channel, stream or call is open. */
  idleMs(): number
  /** Switches to another configuration without a restart, as far as possible; returns the differences. */
  swap(next: Snapshot): ConfigDifference
  /** Asks the other replicas to read their configuration files again. */
  announceReload(): void
  /** Records that a changed configuration is invalid and was not applied. */
  rejectedReload(reason: string): void
  close(): Promise<void>
}

/** What a gateway is started with, besides its configuration. */
export interface GatewayStartOptions {
  readonly log: Log
  readonly version?: string
  readonly insecure?: boolean | undefined // admits callers without a token
  readonly data?: string | undefined // the data directory, which must exist; undefined: no state outlives the process
  /** Reads a configuration file, by default the gateway's own, or the text it would have, to compare it with the current one. */
  readonly loadNext?: ((file: string | undefined, text?: string) => Promise<Snapshot>) | undefined
  readonly control?: GatewayControl | undefined // for the user who runs the gateway
  readonly history?: LogHistory | undefined // the last lines of the log
  readonly onReload?: (() => void) | undefined // another replica has reloaded its configuration
  /** Where state is kept; the caller opens and closes it. Undefined: in memory, for as long as the gateway runs. */
  readonly state?: GatewayState | undefined
  readonly workers?: WorkerProcesses | undefined // the other processes of this gateway; undefined: there are none
  readonly main?: MainLink | undefined // this process is such a worker; undefined: it is not
}

/** A store of state, and the keys that go with it. */
interface GatewayState {
  readonly store: StateStore
  readonly keys: StateKeys
}

/** The given state, or one that ends with the gateway. */
export const stateOf = ({ state }: GatewayStartOptions): FrontState =>
  state ? { ...state, isLasting: true } : { store: new MemoryCluster().join(), keys: randomKeys(), isLasting: false }
