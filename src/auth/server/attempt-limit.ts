import { networkOf } from '../../protocol/admission.ts'

const WINDOW_MS = 60_000
const MOST_ADDRESSES = 1000
const OTHERS = 'others' // counts for every new address while the table is full

/** Limits what one remote address may do in a minute. */
export class AttemptLimit {
  readonly #most: number
  readonly #windows = new Map<string, { readonly since: number; count: number }>() // oldest first

  constructor(most: number) {
    this.#most = most
  }

  get size(): number {
    return this.#windows.size
  }

  /** Whether a further attempt would be one too many; counts nothing. */
  isExhausted(address: string | undefined): boolean {
    this.#sweep(Date.now())
    return (this.#windows.get(this.#keyOf(address))?.count ?? 0) >= this.#most
  }

  /** Counts an attempt; returns the milliseconds to wait if there were too many. */
  take(address: string | undefined): number | undefined {
    const now = Date.now()
    this.#sweep(now)
    const key = this.#keyOf(address)
    const window = this.#windows.get(key) ?? { since: now, count: 0 }
    this.#windows.set(key, window)
    window.count++
    return window.count > this.#most ? Math.max(1, window.since + WINDOW_MS - now) : undefined
  }

  #keyOf(address: string | undefined): string {
    const network = networkOf(address)
    return this.#windows.size < MOST_ADDRESSES || this.#windows.has(network) ? network : OTHERS
  }

  #sweep(now: number): void {
    for (const [key, { since }] of this.#windows) {
      if (now - since < WINDOW_MS && now >= since) return
      this.#windows.delete(key)
    }
  }
}
