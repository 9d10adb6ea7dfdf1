import { type Loss, UpstreamFailure, withoutQuotes } from '../failures.ts'

interface Options {
  readonly backoffMs: number // after a first crash; doubles
  readonly breakAfter: number // crashes in a row, after which callers are told at once
  readonly breakMs: number // how long they are; doubles
  readonly steadyMs: number // a process that lived so long has not crashed in a row
}

const LONGEST_BREAK_MS = 5 * 60_000

/** Decides when a server that crashed may be started again: sooner at first, later each time. */
export class Restarts {
  crashes = 0 // in a row
  readonly #name: string
  readonly #options: Options
  #last: Loss | undefined
  #until = 0

  constructor(name: string, options: Options) {
    this.#name = name
    this.#options = options
  }

  /** Milliseconds until the next start, while callers are told instead of kept waiting. */
  get brokenMs(): number {
    return this.crashes >= this.#options.breakAfter ? Math.max(0, this.#until - Date.now()) : 0
  }

  /** Waits for the next start; rejects with UpstreamFailure where that is too long to wait. */
  async turn(): Promise<void> {
    const retryMs = this.brokenMs
    if (this.#last && retryMs > 0) {
      const text = `${this.#last.text}. It failed ${this.crashes} times`
      throw new UpstreamFailure(this.#name, { ...this.#last, text, retryMs })
    }
    const ms = this.#until - Date.now()
    if (ms > 0) await new Promise(resolve => setTimeout(resolve, ms).unref())
  }

  /** It could not be started, or it ended unasked after that time. */
  crashed(loss: Loss, livedMs: number): void {
    const { backoffMs, breakAfter, breakMs, steadyMs } = this.#options
    if (livedMs >= steadyMs) this.crashes = 0
    this.#last = withoutQuotes(loss) // it is told to callers whose process it was not
    this.crashes++
    const beyond = this.crashes - breakAfter
    const ms = beyond < 0 ? backoffMs * 2 ** (this.crashes - 1) : Math.min(LONGEST_BREAK_MS, breakMs * 2 ** beyond)
    this.#until = Date.now() + ms * (0.5 + Math.random() / 2)
  }
}
