const JUMP_MS = 60_000

/** Notices that the wall clock was changed, by comparing it with the monotonic one. */
export class ClockGuard {
  #offset: number

  constructor(wall = Date.now(), monotonic = performance.now()) {
    this.#offset = wall - monotonic
  }

  /** Whether the clock has jumped by over a minute since the last time this was asked. */
  hasJumped(wall = Date.now(), monotonic = performance.now()): boolean {
    const offset = wall - monotonic
    const jump = Math.abs(offset - this.#offset)
    this.#offset = offset
    return jump > JUMP_MS
  }
}
