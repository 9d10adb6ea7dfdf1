import { signal } from '@preact/signals'
import type { RecordingList, RecordingSummary } from '../../../admin/api/recorder.ts'
import { api, messageOf } from '../../api.ts'
import { filterQuery, matchesFilter, type RecordingFilter } from './filters.ts'
import { joinRows, mergeRows } from './merge-rows.ts'

/** What the gateway says about its recorder besides the rows. */
export type RecorderFacts = Omit<RecordingList, 'recordings' | 'next'>

export const RECORDINGS = 'admin/recordings'
const PAGE = 200
const MOST_ROWS = 20_000
const FLUSH_MS = 150
const RELOAD_MS = 2000
const LEAST_SHOWN = 60 // rows that are looked for where the filter of the page excludes many

/** The rows of one filter: loaded in pages, kept up to date by events. */
export class RecordingsModel {
  readonly filter: RecordingFilter
  readonly rows = signal<readonly RecordingSummary[]>([])
  readonly facts = signal<RecorderFacts | undefined>(undefined)
  readonly problem = signal<string | undefined>(undefined)
  readonly isLoading = signal(false)
  /** New rows that are not shown yet, because the user has paused the list or has scrolled. */
  readonly waiting = signal(0)
  isHeld = false
  #held: readonly RecordingSummary[] = []
  #arrived: RecordingSummary[] = []
  #timer: ReturnType<typeof setTimeout> | undefined
  #reloading: ReturnType<typeof setTimeout> | undefined
  #hasGaps = false // some rows were never told
  #next: string | undefined
  #isLoaded = false
  readonly #stop = new AbortController()

  constructor(filter: RecordingFilter) {
    this.filter = filter
  }

  close(): void {
    this.#stop.abort()
    clearTimeout(this.#timer)
    clearTimeout(this.#reloading)
  }

  /** The gateway is so busy that it has left out rows: the list is read again, now and then. */
  missed(): void {
    this.#hasGaps = true
    this.#reloading ??= setTimeout(() => {
      this.#reloading = undefined
      if (this.#hasGaps && !this.isHeld) void this.load()
    }, RELOAD_MS)
  }

  /** Reads the newest rows; what was held back is among them. */
  async load(): Promise<void> {
    this.#held = []
    this.#hasGaps = false
    this.waiting.value = 0
    this.#next = undefined
    await this.#read(true)
  }

  /** Reads older rows, if there are any. */
  async loadMore(): Promise<void> {
    if (this.#isLoaded && this.#next !== undefined && !this.isLoading.peek()) await this.#read(false)
  }

  /** Takes the data of an event. Many arrive at once on a busy gateway: the list changes a few times a second. */
  take(changes: readonly RecordingSummary[]): void {
    for (const change of changes) this.#arrived.push(change)
    if (this.#arrived.length > MOST_ROWS) this.#arrived.splice(0, this.#arrived.length - MOST_ROWS)
    this.#timer ??= setTimeout(() => this.#flush(), FLUSH_MS)
  }

  /** Shows the rows that were held back. A search is made again: the page cannot search texts. */
  release(): void {
    if (this.filter.search || this.#hasGaps) return void this.load()
    this.rows.value = joinRows(this.#held, this.rows.peek(), MOST_ROWS)
    this.#held = []
    this.waiting.value = 0
  }

  empty(facts: RecorderFacts | undefined): void {
    this.#held = []
    this.#arrived = []
    this.#next = undefined
    this.waiting.value = 0
    this.rows.value = []
    if (facts) this.facts.value = facts
  }

  #flush(): void {
    this.#timer = undefined
    const arrived = this.#arrived
    this.#arrived = []
    if (!this.#isLoaded) return
    const { rows, added } = mergeRows(this.rows.peek(), arrived, this.filter)
    const isHeld = this.isHeld || this.filter.search !== undefined
    const facts = this.facts.peek()
    if (facts) this.facts.value = { ...facts, kept: Math.max(facts.kept, rows.length + added.length) }
    if (!isHeld) {
      this.rows.value = added.length === 0 && rows === this.rows.peek() ? rows : joinRows(added, rows, MOST_ROWS)
      return
    }
    this.rows.value = rows
    const held = mergeRows(this.#held, added, this.filter)
    this.#held = joinRows(held.added, held.rows, MOST_ROWS)
    this.waiting.value = this.#held.length
  }

  async #read(isFirst: boolean): Promise<void> {
    this.isLoading.value = true
    try {
      let list: RecordingList
      let found: readonly RecordingSummary[] = isFirst ? [] : this.rows.peek()
      const least = found.length + LEAST_SHOWN
      // A page of the gateway may have few rows that match, or none.
      do {
        list = await this.#fetchPage()
        found = joinRows(
          found,
          list.recordings.filter(row => matchesFilter(row, this.filter)),
          MOST_ROWS,
        )
        const isFurther = list.next !== this.#next // or a page would be read again and again
        this.#next = found.length >= MOST_ROWS || !isFurther ? undefined : list.next
        const { recordings: _recordings, next: _next, ...facts } = list
        this.facts.value = facts
        this.rows.value = found
        this.#isLoaded = true
      } while (this.#next !== undefined && found.length < least)
      this.problem.value = undefined
    } catch (error) {
      if (!this.#stop.signal.aborted) this.problem.value = messageOf(error)
    } finally {
      this.isLoading.value = false
    }
  }

  #fetchPage(): Promise<RecordingList> {
    const { translated: _translated, ...filter } = filterQuery(this.filter)
    const before = this.#next === undefined ? {} : { before: this.#next }
    const query = new URLSearchParams({ ...filter, ...before, limit: String(PAGE) })
    return api.get<RecordingList>(`${RECORDINGS}?${query}`, { signal: this.#stop.signal })
  }
}
