import type { RateLimit } from '../config/snapshot.ts'

export const WINDOW_MS = 1000
const BURST_WINDOW_MS = 10_000
const SLICES = 10 // of a limit: so much may be admitted before the other replicas know of it

/** The requests of one key. Counts of several replicas are sums over the same second of the clock. */
interface KeyCount {
  start: number // of the window
  own: number // admitted here
  reported: number // of them, to the other replicas
  others: number // admitted elsewhere, as far as is known
  burstStart: number
  burstUsed: number
}

/** What a request gets: admitted, to wait that many milliseconds, or to ask again after the next exchange of counts. */
export type RateDecision = 'admitted' | 'exchange' | number

/** Counts that have not been told to the other replicas. */
export interface UnreportedCount {
  readonly by: number
  /** With the sum over all replicas; undefined if it could not be exchanged. */
  settle(sum: number | undefined): void
}

/** The counts of one limit: `perSecond` requests of each key in a second, and `burst` more in each ten. */
export class RateWindow {
  readonly #limit: RateLimit
  readonly #replicas: (() => number) | undefined // undefined: counts are not shared
  readonly #counts = new Map<string, KeyCount>()
  #sweepAt = 0

  constructor(limit: RateLimit, replicas?: () => number) {
    this.#limit = limit
    this.#replicas = replicas
  }

  get size(): number {
    return this.#counts.size
  }

  /** Counts a request of that key if it is admitted. `canExchange` false: decide by what is known. */
  take(key: string, now: number, canExchange: boolean): RateDecision {
    const { perSecond } = this.#limit
    const count = this.#countOf(key, now)
    if (count.own + count.others >= perSecond) return this.#takeBurst(count, now)
    const replicas = this.#replicas?.() ?? 1
    const slice = Math.max(1, Math.floor(perSecond / SLICES))
    if (replicas > 1 && canExchange && count.own - count.reported >= slice) return 'exchange'
    count.own++
    return 'admitted'
  }

  /** The keys that were used in the second that began at `window`. */
  *unreported(window: number): Iterable<readonly [key: string, count: UnreportedCount]> {
    for (const [key, count] of this.#counts) {
      if (count.start !== window || count.own === 0) continue
      const by = count.own - count.reported
      count.reported = count.own
      const settle = (sum: number | undefined): void => {
        if (count.start !== window) return
        if (sum === undefined) count.reported -= by
        else count.others = Math.max(count.others, sum - count.reported)
      }
      yield [key, { by, settle }]
    }
  }

  /** A burst is divided among the replicas: there is no time to exchange its counts. */
  #takeBurst(count: KeyCount, now: number): RateDecision {
    const { burst } = this.#limit
    if (now - count.burstStart >= BURST_WINDOW_MS) Object.assign(count, { burstStart: now, burstUsed: 0 })
    const left = count.start + WINDOW_MS - now
    if (count.burstUsed >= Math.floor(burst / (this.#replicas?.() ?? 1))) return Math.max(1, left)
    count.burstUsed++
    return 'admitted'
  }

  #countOf(key: string, now: number): KeyCount {
    this.#sweep(now)
    const start = this.#replicas ? now - (now % WINDOW_MS) : now
    let count = this.#counts.get(key)
    if (!count) {
      count = { start, own: 0, reported: 0, others: 0, burstStart: Number.NEGATIVE_INFINITY, burstUsed: 0 }
      this.#counts.set(key, count)
    } else if (now - count.start >= WINDOW_MS || now < count.start) {
      Object.assign(count, { start, own: 0, reported: 0, others: 0 })
    }
    return count
  }

  /** Drops counts that decide nothing any more, in as many steps as there were bursts of ten seconds. */
  #sweep(now: number): void {
    if (now < this.#sweepAt && this.#sweepAt - now <= BURST_WINDOW_MS) return
    this.#sweepAt = now + BURST_WINDOW_MS
    for (const [key, { start, burstStart }] of this.#counts)
      if (now - start >= WINDOW_MS && now - burstStart >= BURST_WINDOW_MS) this.#counts.delete(key)
  }
}
