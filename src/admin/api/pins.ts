import type { PinnedTool, PinStatus, QuarantinedTool } from '../../protocol/pins.ts'

/** `GET /admin/quarantine`: the servers with `"pin": true`, and their tools that wait for an approval. */
export interface Quarantine {
  readonly servers: readonly PinnedServer[]
  readonly tools: readonly QuarantinedTool[]
  readonly isLasting: boolean // false: pins end with the gateway, because it has no data directory
}

export interface PinnedServer extends PinStatus {
  readonly name: string
}

/** The answer to `POST /admin/quarantine/approve`. */
export interface ApprovalResult {
  readonly approved: readonly PinnedTool[]
}
