import { summaryOf } from '../../protocol/errors.ts'
import { SingleFlight } from '../../std/single-flight.ts'
import { type CacheHints, type CacheTimes, freshUntil } from './freshness.ts'

const LONGEST_BACKOFF_MS = 60_000
const BURST = 6 // fetches that need not wait for each other

/** A value from a server with its caching hints. */
export interface FetchResult<T> {
  readonly value: T
  readonly ttlMs: number | undefined
  readonly isPublic: boolean
}

/** A value that was fetched for another caller, and serves this one until its own fetch. */
export interface Seed<T> {
  readonly value: T
  readonly hints?: CacheHints | undefined // undefined: this caller may get another value, so its own fetch is due at once
}

const DUE: CacheHints = { fetchedAt: 0, ttlMs: 0, isPublic: false }

interface CacheEntryOptions<T> {
  readonly times: CacheTimes
  readonly isEqual: (a: T, b: T) => boolean
  readonly seed?: Seed<T> | undefined
  /** Called after every fetch. `notify` is false if the value is equal, or if no client has seen the old one. */
  readonly onChange: (notify: boolean) => void
  /** Called when a fetch has found another value than the one before it, of which no other replica knows yet. */
  readonly onDifferent?: (() => void) | undefined
}

/** One cached value of a server. Fetches it at most once at a time, with a rate limit and a backoff. */
export class CacheEntry<T> {
  value: T | undefined
  hints: CacheHints | undefined // of the value
  failure: string | undefined // of the last fetch
  failedSince = 0
  listenerCount = 0 // subscriptions that receive the server's change notifications
  hasLostListeners = false // its last listener left since the last fetch: changes may have been missed
  wasOmitted = false // a client was answered without it
  isProvisional = false // the value was fetched for another caller
  isOutdated = false // it has changed, and clients may know that: they wait for the next fetch
  #failures = 0 // in a row
  #isStale = false // it may have changed since
  #startedAt = Number.NEGATIVE_INFINITY
  #rateLimitedUntil = Number.NEGATIVE_INFINITY // each fetch adds one interval; a burst may run ahead
  readonly #pendingFetch = new SingleFlight()
  #expiry: NodeJS.Timeout | undefined
  #isClosed = false
  #onSeeded: (() => void) | undefined
  #seeded: Promise<void> | undefined // resolves when a value arrives that no fetch of this entry brought
  readonly #options: CacheEntryOptions<T>

  constructor(options: CacheEntryOptions<T>) {
    this.#options = options
    if (options.seed) this.#take(options.seed)
  }

  get pendingFetch(): Promise<void> | undefined {
    return this.#pendingFetch.running
  }

  get isStale(): boolean {
    return this.#isStale
  }

  /** Until when no fetch is needed. */
  get freshUntil(): number {
    if (!this.hints || this.#isStale || this.failure !== undefined) return 0
    return freshUntil(this.hints, this.listenerCount > 0, this.#options.times)
  }

  get nextFetchAt(): number {
    const { fetchIntervalMs } = this.#options.times
    if (this.#failures > 0) return this.#startedAt + Math.min(LONGEST_BACKOFF_MS, fetchIntervalMs * 2 ** this.#failures)
    return this.#rateLimitedUntil - (BURST - 1) * fetchIntervalMs
  }

  /** Whether a fetch is needed and allowed. */
  isDue(now: number): boolean {
    return this.freshUntil <= now && this.nextFetchAt <= now
  }

  /** Starts with a value that was fetched for another caller, unless there is a value. */
  seed(seed: Seed<T>): void {
    if (this.value !== undefined) return
    this.#take(seed)
    this.#onSeeded?.()
    const notify = this.wasOmitted
    this.wasOmitted = false
    this.#options.onChange(notify)
  }

  /** Replaces a provisional value with what callers like this one get, unless that is not known either. */
  confirm({ value, hints }: Seed<T>): void {
    if (!this.isProvisional || !hints) return
    const wasStale = this.#isStale
    this.#isStale = false
    this.store({ value, ttlMs: hints.ttlMs, isPublic: false }, wasStale)
  }

  /** The value may be out of date: what is learnt next replaces it. */
  markProvisional(): void {
    this.isProvisional = this.value !== undefined
  }

  /** Resolves when there is a value, or when the pending fetch has failed. */
  whenFilled(): Promise<void> {
    this.#seeded ??= new Promise(resolve => {
      this.#onSeeded = resolve
    })
    return Promise.race([this.#seeded, this.pendingFetch])
  }

  /** Starts with the value of another entry; if its last fetch failed, the value expires when it would have there. */
  copyFrom({ value, hints, failure, failedSince, isProvisional }: CacheEntry<T>): void {
    this.value = value
    this.hints = hints
    this.isProvisional = isProvisional
    if (value === undefined || failure === undefined) return
    this.failure = failure
    this.failedSince = failedSince
    this.#expiry ??= this.#expireLater()
  }

  countListener(by: number): void {
    this.listenerCount = Math.max(0, this.listenerCount + by) // the entry may have been evicted and created again meanwhile
    this.hasLostListeners ||= by < 0 && this.listenerCount === 0
  }

  markOmitted(): void {
    this.wasOmitted ||= this.value === undefined
  }

  markStale(): void {
    this.#isStale = true
  }

  /** Another replica was told of a change. */
  markOutdated(): void {
    this.#isStale = true
    this.isOutdated = this.value !== undefined
  }

  /** The server is back: the value may be fetched at once. */
  resetBackoff(): void {
    this.#isStale = true
    this.#failures = 0
    if (this.value === undefined) this.failure = undefined
  }

  /** The value may no longer be shown, and is fetched again at once. */
  clear(): void {
    this.wasOmitted ||= this.value !== undefined
    this.isOutdated = false
    this.value = undefined
    this.hints = undefined
    this.failure = undefined
    clearTimeout(this.#expiry)
    this.#expiry = undefined
    this.#rateLimitedUntil = Number.NEGATIVE_INFINITY
    this.#seeded = this.#onSeeded = undefined
    this.resetBackoff()
  }

  /** Fetches the value unless a fetch is pending; never rejects. */
  refresh(fetch: () => Promise<FetchResult<T>>): Promise<void> {
    return this.#pendingFetch.run(() => this.#fetch(fetch))
  }

  store({ value, ttlMs, isPublic }: FetchResult<T>, wasStale = this.#isStale): void {
    clearTimeout(this.#expiry)
    this.#expiry = undefined
    this.failure = undefined
    this.#failures = 0
    this.hasLostListeners = false
    this.hints = { fetchedAt: Date.now(), ttlMs, isPublic }
    const isKnown = this.isProvisional || this.isOutdated || wasStale
    this.isProvisional = false
    this.isOutdated = false
    const before = this.value
    if (before !== undefined && this.#options.isEqual(before, value)) return this.#options.onChange(false)
    this.value = value
    if (before !== undefined && !isKnown) this.#options.onDifferent?.()
    const notify = before !== undefined || this.wasOmitted || wasStale
    this.wasOmitted = false
    this.#options.onChange(notify)
  }

  /** Records a failed fetch; the value is served for `staleIfErrorMs` more. */
  fail(reason: string): void {
    if (this.failure === undefined) this.failedSince = Date.now()
    this.failure = reason
    this.isOutdated = false
    this.#failures++
    if (this.value !== undefined && !this.#isClosed) this.#expiry ??= this.#expireLater()
    this.#options.onChange(false)
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#expiry)
  }

  #take({ value, hints }: Seed<T>): void {
    this.value = value
    this.hints = hints ?? DUE
    this.isProvisional = hints === undefined
  }

  async #fetch(fetch: () => Promise<FetchResult<T>>): Promise<void> {
    const wasStale = this.#isStale
    this.#isStale = false
    this.#startedAt = Date.now()
    this.#rateLimitedUntil = Math.max(this.#startedAt, this.#rateLimitedUntil) + this.#options.times.fetchIntervalMs
    try {
      this.store(await fetch(), wasStale)
    } catch (error) {
      this.#isStale ||= wasStale
      this.fail(summaryOf(error))
    }
  }

  #expireLater(): NodeJS.Timeout {
    const expire = (): void => {
      this.#expiry = undefined
      this.value = undefined
      this.hints = undefined
      this.wasOmitted = true
      this.#options.onChange(true)
    }
    return setTimeout(expire, this.failedSince + this.#options.times.staleIfErrorMs - Date.now()).unref()
  }
}
