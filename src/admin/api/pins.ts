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

/** The body of `POST /admin/quarantine/approve`. A tool is named with the hash that was shown. */
export interface Approval {
  readonly tools: readonly PinnedTool[]
}

/** The answer to it. */
export interface ApprovalResult {
  readonly approved: readonly PinnedTool[]
}
