import { backoffMs, sleep } from '../../std/time.ts'
import { type FailureDetails, UpstreamFailure, withoutQuotes } from '../failures.ts'

interface RestartOptions {
  readonly backoffMs: number // after the first crash; doubles
  readonly breakAfter: number // crashes in a row, after which callers fail at once instead of waiting
  readonly breakMs: number // for how long; doubles
  readonly steadyMs: number // a process that ran this long ends the row of crashes
}

const LONGEST_BREAK_MS = 5 * 60_000

/** Delays the restarts of a server that crashes: an exponential backoff first, then a circuit breaker. */
export class RestartBackoff {
  readonly #server: string
  readonly #options: RestartOptions
  #crashes = 0
  #lastFailure: FailureDetails | undefined
  #until = 0

  constructor(server: string, options: RestartOptions) {
    this.#server = server
    this.#options = options
  }

  /** Crashes in a row. */
  get crashes(): number {
    return this.#crashes
  }

  /** Milliseconds until the next start is tried while callers fail at once; else 0. */
  get pausedMs(): number {
    return this.#crashes >= this.#options.breakAfter ? Math.max(0, this.#until - Date.now()) : 0
  }

  /** Waits until the next start is due; rejects with UpstreamFailure while starts are paused. */
  async wait(): Promise<void> {
    const retryMs = this.pausedMs
    if (this.#lastFailure && retryMs > 0) {
      const text = `${this.#lastFailure.text}. It failed ${this.#crashes} times`
      throw new UpstreamFailure(this.#server, { ...this.#lastFailure, text, retryMs })
    }
    const ms = this.#until - Date.now()
    if (ms > 0) await sleep(ms)
  }

  /** Records a failed start, or a process that ended by itself after `livedMs`. */
  recordCrash(failure: FailureDetails, livedMs: number): void {
    const { breakAfter, breakMs, steadyMs } = this.#options
    if (livedMs >= steadyMs) this.#crashes = 0
    this.#lastFailure = withoutQuotes(failure) // callers that did not use this process see it too
    const beyond = ++this.#crashes - breakAfter
    const delayMs =
      beyond < 0
        ? backoffMs({ firstMs: this.#options.backoffMs, longestMs: LONGEST_BREAK_MS }, this.#crashes - 1)
        : backoffMs({ firstMs: breakMs, longestMs: LONGEST_BREAK_MS }, beyond)
    this.#until = Date.now() + delayMs
  }
}
