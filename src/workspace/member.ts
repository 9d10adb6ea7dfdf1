import type { Overlay } from '../config/snapshot.ts'
import type { ToolTrim } from '../config/tool-list.ts'
import type { RpcError } from '../protocol/errors.ts'
import type { Caller, Upstream } from '../protocol/exchange.ts'
import type { LearntSource } from './catalog/learnt-server.ts'

/** One server of a workspace. */
export interface Member {
  readonly server: string // its name in the configuration
  readonly bridged: Upstream // above the bridge: converts for callers of every revision
  readonly native: Upstream // below the bridge: speaks the server's revision
  readonly isRemote: boolean // reached over HTTP
  readonly isProcess: boolean // a request may start a process
  /** Of a process: false if a request of this caller would have to start one. Undefined: that is not known. */
  readonly runsFor?: ((caller: Caller) => boolean) | undefined
  readonly wantsLogins?: boolean | undefined // callers may have to log in, and the gateway asks them to
  readonly overlays: ReadonlyMap<string, Overlay> // by the tool's original name
  readonly trim?: ToolTrim | undefined // undefined: definitions are shown whole
  readonly learnt?: LearntSource | undefined // undefined: what the server lists depends on the caller
  /** The error for a tool that waits for an approval of its definition; undefined: no tool does. */
  readonly quarantineOf?: ((caller: Caller, tool: string) => RpcError | undefined) | undefined
  /** False while the server is known to be down. */
  readonly isUp: () => boolean
}
