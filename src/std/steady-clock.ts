const MOST_MS = 60_000

/** Notices when the time of day was set, or the machine slept: no time seems to have passed that did not. */
export class SteadyClock {
  readonly #elapsed: () => number
  #wall: number
  #steady: number

  /** `elapsed` counts milliseconds and is never set. */
  constructor(now = Date.now(), elapsed: () => number = () => performance.now()) {
    this.#elapsed = elapsed
    this.#wall = now
    this.#steady = elapsed()
  }

  /** True if the time of day has moved by more than a minute against the elapsed time since the last call. */
  hasJumped(now: number): boolean {
    const steady = this.#elapsed()
    const drift = now - this.#wall - (steady - this.#steady)
    this.#wall = now
    this.#steady = steady
    return Math.abs(drift) > MOST_MS
  }
}
