const MOST_AT_ONCE = 1000
const PER_SECOND = 250

/**
 * How many exchanges are recorded with all their messages: each costs a tenth of a small call, and one of a burst pushes an
 * earlier one out of memory. At this rate recording takes less than a hundredth of a processor, and the memory lasts for minutes.
 */
export class RecordingRate {
  #left = MOST_AT_ONCE
  #countedAt: number

  /** `now` is in milliseconds of the monotonic clock. */
  constructor(now: number) {
    this.#countedAt = now
  }

  /** Whether one more may be recorded; then it is counted. */
  take(now: () => number): boolean {
    if (this.#left === 0) this.#count(now())
    if (this.#left === 0) return false
    this.#left--
    return true
  }

  #count(now: number): void {
    const more = Math.floor(((now - this.#countedAt) * PER_SECOND) / 1000)
    if (more <= 0) return
    this.#left = Math.min(MOST_AT_ONCE, more)
    this.#countedAt = more > MOST_AT_ONCE ? now : this.#countedAt + (more * 1000) / PER_SECOND
  }
}
