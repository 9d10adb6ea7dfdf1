import type { GatewayControl } from '../admin/admin-routes.ts'
import type { Snapshot } from '../config/snapshot.ts'
import type { FrontState } from '../fronts/http/front-request.ts'
import { MemoryCluster } from '../stores/state/memory-state.ts'
import { randomKeys, type StateKeys } from '../stores/state/secret.ts'
import type { StateStore } from '../stores/state/state-store.ts'
import type { Log } from '../telemetry/log.ts'
import type { LogHistory } from '../telemetry/log-history.ts'

/** What a gateway is started with, besides its configuration. */
export interface GatewayStartOptions {
  readonly log: Log
  readonly version?: string
  readonly insecure?: boolean | undefined // admits callers without a token
  readonly data?: string | undefined // the data directory, which must exist; undefined: no state outlives the process
  /** Reads a configuration file, by default the gateway's own, to compare it with the current configuration. */
  readonly loadNext?: ((file: string | undefined) => Promise<Snapshot>) | undefined
  readonly control?: GatewayControl | undefined // for the user who runs the gateway
  readonly history?: LogHistory | undefined // the last lines of the log
  readonly onReload?: (() => void) | undefined // another replica has reloaded its configuration
  /** Where state is kept; the caller opens and closes it. Undefined: in memory, for as long as the gateway runs. */
  readonly state?: GatewayState | undefined
}

/** A store of state, and the keys that go with it. */
interface GatewayState {
  readonly store: StateStore
  readonly keys: StateKeys
}

/** The given state, or one that ends with the gateway. */
export const stateOf = ({ state }: GatewayStartOptions): FrontState =>
  state ? { ...state, isLasting: true } : { store: new MemoryCluster().join(), keys: randomKeys(), isLasting: false }
