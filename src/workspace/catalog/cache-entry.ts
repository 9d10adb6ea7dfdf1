import { summaryOf } from '../../protocol/errors.ts'
import { type CacheHints, type CacheTimes, freshUntil } from './freshness.ts'

const LONGEST_MS = 60_000 // between two askings that fail
const AT_ONCE = 3 // askings that need not wait for each other

/** What a server told, and how long it says that it holds. */
export interface FetchResult<T> {
  readonly value: T
  readonly ttlMs: number | undefined
  readonly isPublic: boolean
}

interface CacheEntryOptions<T> {
  readonly times: CacheTimes
  readonly isEqual: (a: T, b: T) => boolean
  /** The value is another; `isNews` where somebody may have been told the old one. */
  readonly onChange: (isNews: boolean) => void
}

/** Something a server tells, kept for those who may share it. It is asked for once at a time. */
export class CacheEntry<T> {
  value: T | undefined
  hints: CacheHints | undefined // of the value
  failure: string | undefined // why it could not be asked for the last time
  failedSince = 0
  listenerCount = 0 // listeners who would hear of a change
  hasLostListeners = false // its last listener left since it was asked for
  wasOmitted = false // somebody was answered without it
  #failures = 0 // in a row
  #isDoubted = false // it may have changed since
  #startedAt = Number.NEGATIVE_INFINITY
  #paidUntil = Number.NEGATIVE_INFINITY // every asking costs its time, and a few may be owed
  #flight: Promise<void> | undefined
  #grace: NodeJS.Timeout | undefined
  #isOver = false
  readonly #watch: CacheEntryOptions<T>

  constructor(watch: CacheEntryOptions<T>) {
    this.#watch = watch
  }

  /** The asking that is under way. */
  get pendingFetch(): Promise<void> | undefined {
    return this.#flight
  }

  /** Until when nobody needs to ask again. */
  get freshUntil(): number {
    if (!this.hints || this.#isDoubted || this.failure !== undefined) return 0
    return freshUntil(this.hints, this.listenerCount > 0, this.#watch.times)
  }

  /** When it may be asked for the next time. */
  get nextFetchAt(): number {
    const { fetchIntervalMs: againMs } = this.#watch.times
    if (this.#failures > 0) return this.#startedAt + Math.min(LONGEST_MS, againMs * 2 ** this.#failures)
    return this.#paidUntil - (AT_ONCE - 1) * againMs
  }

  /** Begins with what another one holds; if that could not be asked for, its time goes on. */
  copyFrom({ value, hints, failure, failedSince }: CacheEntry<T>): void {
    this.value = value
    this.hints = hints
    if (value === undefined || failure === undefined) return
    this.failure = failure
    this.failedSince = failedSince
    this.#grace ??= this.#later()
  }

  /** Somebody says that it has changed. */
  markStale(): void {
    this.#isDoubted = true
  }

  /** Its server is back: it may be asked again at once. */
  resetBackoff(): void {
    this.#isDoubted = true
    this.#failures = 0
    if (this.value === undefined) this.failure = undefined
  }

  get isStale(): boolean {
    return this.#isDoubted
  }

  /** Asks for it, unless that is under way; never rejects. */
  refresh(fetch: () => Promise<FetchResult<T>>): Promise<void> {
    this.#flight ??= this.#fly(fetch).finally(() => {
      this.#flight = undefined
    })
    return this.#flight
  }

  store({ value, ttlMs, isPublic }: FetchResult<T>, isNews = this.#isDoubted): void {
    clearTimeout(this.#grace)
    this.#grace = undefined
    this.failure = undefined
    this.#failures = 0
    this.hasLostListeners = false
    this.hints = { fetchedAt: Date.now(), ttlMs, isPublic }
    const before = this.value
    if (before !== undefined && this.#watch.isEqual(before, value)) return this.#watch.onChange(false)
    this.value = value
    const isTold = before !== undefined || this.wasOmitted || isNews
    this.wasOmitted = false
    this.#watch.onChange(isTold)
  }

  /** It cannot be had for now; what there is is kept for a while. */
  fail(reason: string): void {
    if (this.failure === undefined) this.failedSince = Date.now()
    this.failure = reason
    this.#failures++
    if (this.value !== undefined && !this.#isOver) this.#grace ??= this.#later()
    this.#watch.onChange(false)
  }

  close(): void {
    this.#isOver = true
    clearTimeout(this.#grace)
  }

  async #fly(fetch: () => Promise<FetchResult<T>>): Promise<void> {
    const wasDoubted = this.#isDoubted
    this.#isDoubted = false
    this.#startedAt = Date.now()
    this.#paidUntil = Math.max(this.#startedAt, this.#paidUntil) + this.#watch.times.fetchIntervalMs
    try {
      this.store(await fetch(), wasDoubted)
    } catch (error) {
      this.#isDoubted ||= wasDoubted
      this.fail(summaryOf(error))
    }
  }

  #later(): NodeJS.Timeout {
    const end = this.failedSince + this.#watch.times.staleIfErrorMs
    const timer = setTimeout(() => {
      this.#grace = undefined
      this.value = undefined
      this.hints = undefined
      this.wasOmitted = true
      this.#watch.onChange(true)
    }, end - Date.now())
    timer.unref()
    return timer
  }
}
