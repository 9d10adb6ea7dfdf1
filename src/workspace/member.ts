import type { Overlay } from '../config/snapshot.ts'
import type { Upstream } from '../protocol/exchange.ts'
import type { LearntSource } from './catalog/learnt-server.ts'

/** One server of a workspace. */
export interface Member {
  readonly server: string // its name in the configuration
  readonly bridged: Upstream // above the bridge: converts for callers of every revision
  readonly native: Upstream // below the bridge: speaks the server's revision
  readonly isRemote: boolean // reached over HTTP
  readonly isProcess: boolean // a request may start a process
  readonly overlays: ReadonlyMap<string, Overlay> // by the tool's original name
  readonly learnt?: LearntSource | undefined // undefined: what the server lists depends on the caller
  /** False while the server is known to be down. */
  readonly isUp: () => boolean
}
