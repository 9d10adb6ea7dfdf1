import type { Recording, RecordingSummary } from '../../protocol/recording.ts'
import { describeRecording, type RecordingView, summarize } from './describe-recording.ts'
import type { FlightRecorder } from './flight-recorder.ts'
import type { RecordedExchange } from './recorded-exchange.ts'
import { queryRecordings, type RecordingFilter, type RecordingPage } from './recording-query.ts'
import type { Redactor } from './redact.ts'

/** What is shown of the flight recorder, and how it is operated. */
export interface RecorderAccess {
  readonly state: () => {
    readonly isOn: boolean
    readonly kept: number
    readonly keptBytes: number
    readonly maxBytes: number
    readonly forgotten: number
    readonly skipped: number
  }
  /** `searchesTexts`: the search may look into messages. */
  query(filter: RecordingFilter, limit: number, searchesTexts: boolean): Promise<RecordingPage>
  /** Undefined if there is no such recording, or it was forgotten. */
  find(id: string): Recording | undefined
  /** The number of the exchange with that id; undefined if it is no id of this recorder. */
  orderOf(id: string): number | undefined
  switchTo(isOn: boolean): void
  clear(): void
  close(): void
}

interface RecorderAccessOptions {
  readonly redactor: Redactor
  readonly process?: number | undefined // of a gateway of several, each with a recorder of its own
  /** Gets the rows of exchanges that have begun or ended, oldest first, at most four times a second. */
  readonly publish?: ((changed: readonly RecordingSummary[], dropped: number) => void) | undefined
  readonly isWatched?: (() => boolean) | undefined // false: no page is open, and nothing is published
}

const PUBLISH_MS = 250
const MOST_PUBLISHED = 200 // rows at once

/** Operates a flight recorder. Ids have a prefix of their own: those of another process or replica mean nothing here. */
export const openRecorder = (
  recorder: FlightRecorder,
  { redactor, process, publish, isWatched = () => true }: RecorderAccessOptions,
): RecorderAccess => {
  const prefix = `${Date.now().toString(36)}${process === undefined ? '' : `.${process}`}-`
  const idOf = (order: number): string => `${prefix}${order}`
  const orderOf = (id: string): number | undefined => {
    const digits = id.startsWith(prefix) ? id.slice(prefix.length) : ''
    return /^[1-9]\d{0,14}$/.test(digits) ? Number(digits) : undefined
  }
  const view: RecordingView = { recorder, redactor, idOf }
  const batch = publish && new ChangedBatch(rows => publish(...rows), view)
  recorder.onChanged = batch && (recording => isWatched() && batch.add(recording))

  return {
    state: () => {
      const { isOn, kept, keptBytes, maxBytes, forgotten, skipped } = recorder
      return { isOn, kept, keptBytes, maxBytes, forgotten, skipped }
    },
    query: (filter, limit, searchesTexts) => queryRecordings(view, filter, limit, searchesTexts),
    find: id => {
      recorder.flushAll()
      const recording = recorder.find(orderOf(id) ?? -1)
      return recording && describeRecording(recording, view)
    },
    orderOf,
    switchTo: isOn => {
      recorder.isOn = isOn
    },
    clear: () => recorder.clear(),
    close: () => batch?.close(),
  }
}

/** Collects exchanges that have changed. Each is published once, as it is at that time. */
class ChangedBatch {
  readonly #publish: (rows: [readonly RecordingSummary[], number]) => void
  readonly #view: RecordingView
  #changed: RecordedExchange[] = []
  #dropped = 0
  #timer: NodeJS.Timeout | undefined

  constructor(publish: (rows: [readonly RecordingSummary[], number]) => void, view: RecordingView) {
    this.#publish = publish
    this.#view = view
  }

  add(recording: RecordedExchange): void {
    if (recording.isChanged) return
    recording.isChanged = true
    this.#changed.push(recording)
    if (this.#changed.length > 2 * MOST_PUBLISHED) this.#drop()
    this.#timer ??= setTimeout(() => this.#flush(), PUBLISH_MS).unref()
  }

  close(): void {
    clearTimeout(this.#timer)
  }

  #drop(): void {
    const dropped = this.#changed.splice(0, this.#changed.length - MOST_PUBLISHED)
    for (const recording of dropped) recording.isChanged = false
    this.#dropped += dropped.length
  }

  #flush(): void {
    if (this.#changed.length > MOST_PUBLISHED) this.#drop()
    const [changed, dropped] = [this.#changed, this.#dropped]
    this.#changed = []
    this.#dropped = 0
    this.#timer = undefined
    for (const recording of changed) recording.isChanged = false
    this.#view.recorder.flushAll()
    const rows = changed.flatMap(({ order }) => {
      const found = this.#view.recorder.find(order)
      return found ? [summarize(found, this.#view)] : []
    })
    if (rows.length > 0 || dropped > 0) this.#publish([rows.sort((a, b) => a.order - b.order), dropped])
  }
}
