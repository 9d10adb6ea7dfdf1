// The flight recorder: `/admin/recordings`. Types only.

import type { RecordingSummary } from '../../protocol/recording.ts'

export type {
  RecordedMessage,
  RecordedServer,
  Recording,
  RecordingOutcome,
  RecordingSummary,
} from '../../protocol/recording.ts'

/** The recorder itself; also the answer to `PATCH /admin/recordings` with `{"isOn"}`, and to `DELETE`. */
export interface RecorderState {
  readonly isOn: boolean
  readonly replica?: string | undefined // each replica has recordings of its own; undefined: there are no others
  readonly kept: number // in memory
  readonly keptBytes: number
  readonly maxBytes: number
  readonly forgotten: number // removed because of the limit
  readonly skipped: number // exchanges that were not recorded because of the rate limit
}

/**
 * `GET /admin/recordings?before=&limit=&search=&method=&server=&workspace=&outcome=&principal=&client=&subject=`. A search
 * in the text of messages is for owners; viewers get summaries without error messages.
 */
export interface RecordingList extends RecorderState {
  readonly recordings: readonly RecordingSummary[] // newest first
  readonly next?: string | undefined // `before` of the next page, which may be empty after a search
  readonly isPartial: boolean // the search has stopped before the page was full: ask for the next one
}
