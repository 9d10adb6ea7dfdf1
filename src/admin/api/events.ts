// The events of `GET /admin/events`, a stream of server-sent events. Types only: the console imports this file.

import type { GatewayStatus } from '../../protocol/status.ts'
import type { RecordingSummary } from './recorder.ts'

/** The data of each event. Several changes may become one event; `dropped` tells that some are missing. */
export interface FeedEvents {
  readonly status: GatewayStatus // at once, and after changes
  readonly log: { readonly line: Readonly<Record<string, unknown>> } // owners only
  readonly recording: readonly RecordingSummary[] // new or changed; oldest first
  readonly config: { readonly file?: string | undefined } // the file was read again: it is in use, or was rejected
  readonly tokens: Readonly<Record<string, never>> // the tokens have changed: read them again
  readonly logins: { readonly server: string; readonly principal: string }
  readonly dropped: { readonly kind: string; readonly count: number }
}
