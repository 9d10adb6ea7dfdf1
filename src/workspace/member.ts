import type { Overlay } from '../config/snapshot.ts'
import type { Upstream } from '../protocol/exchange.ts'

/** One server of a workspace, as the workspace sees it. */
export interface Member {
  readonly server: string // its name in the configuration
  readonly bridged: Upstream // wrapped by the bridge: converts for every caller
  readonly native: Upstream // the same below the bridge: speaks its own revision
  readonly isRemote: boolean // reached over HTTP
  readonly overlays: ReadonlyMap<string, Overlay> // by the tool's own name
  /** Whether it is worth waiting for: false while it is known to be down. */
  readonly isUp: () => boolean
}
