/** The calls of the last ten minutes, oldest first; each place is ten seconds. */
export interface CallHistoryRows {
  readonly calls: readonly number[]
  readonly errors: readonly number[]
  readonly ms: readonly (number | null)[] // the mean duration; null: there was no call
}

const BUCKET_MS = 10_000
const BUCKETS = 60

/**
 * Counts the calls of one server in time. A ring of integers: every call updates it, so that an update costs one division,
 * one comparison and three additions.
 */
export class CallHistory {
  readonly #calls = new Uint32Array(BUCKETS)
  readonly #errors = new Uint32Array(BUCKETS)
  readonly #ms = new Float64Array(BUCKETS) // sums
  #bucket = 0 // the number of the newest bucket, since 1970

  add(isError: boolean, ms: number, now: number): void {
    const bucket = Math.floor(now / BUCKET_MS)
    if (bucket !== this.#bucket) this.#advance(bucket)
    const at = bucket % BUCKETS
    this.#calls[at] = (this.#calls[at] ?? 0) + 1
    this.#ms[at] = (this.#ms[at] ?? 0) + ms
    if (isError) this.#errors[at] = (this.#errors[at] ?? 0) + 1
  }

  /** Undefined if there was no call. */
  read(now: number): CallHistoryRows | undefined {
    this.#advance(Math.floor(now / BUCKET_MS))
    if (this.#calls.every(count => count === 0)) return undefined
    const order = Array.from({ length: BUCKETS }, (_, at) => (this.#bucket + 1 + at) % BUCKETS)
    return {
      calls: order.map(at => this.#calls[at] ?? 0),
      errors: order.map(at => this.#errors[at] ?? 0),
      ms: order.map(at => (this.#calls[at] ? rounded((this.#ms[at] ?? 0) / (this.#calls[at] ?? 1)) : null)),
    }
  }

  /** Empties the buckets of the time without calls. A clock that was set back empties all. */
  #advance(bucket: number): void {
    const passed = bucket - this.#bucket
    if (passed === 0) return
    const emptied = passed < 0 || passed > BUCKETS ? BUCKETS : passed
    for (let back = 0; back < emptied; back++) {
      const at = (bucket - back) % BUCKETS
      this.#calls[at] = 0
      this.#errors[at] = 0
      this.#ms[at] = 0
    }
    this.#bucket = bucket
  }
}

/** To a hundredth of a millisecond. */
const rounded = (ms: number): number => Math.round(ms * 100) / 100
