import { within } from '../../std/time.ts'
import type { Log } from '../../telemetry/log.ts'
import { isSqlFailure, SqlError } from '../sql.ts'
import { Listeners } from './listeners.ts'
import { StateError } from './state-store.ts'

/** How long a caller waits for the database before it counts as away. */
const WAIT_MS = 2000

/**
 * Whether the database can be used. Only the heartbeat tries it while it is away, so that no work piles up. A file that was
 * found damaged is not used again: other parts of it may still be readable, and what is written to them is lost with it.
 */
export class StoreContact {
  readonly #log: Log
  readonly #name: string
  readonly #back = new Listeners()
  #reason: string | undefined
  #since = performance.now()
  #isDamaged = false

  constructor(name: string, log: Log) {
    this.#name = name
    this.#log = log
  }

  /** Why the database is away; undefined while it can be used. */
  get reason(): string | undefined {
    return this.#reason
  }

  get isAway(): boolean {
    return this.#reason !== undefined
  }

  /** Whether it is away for the rest of this process. */
  get isDamaged(): boolean {
    return this.#isDamaged
  }

  /** Milliseconds since the database was opened or came back; 0 while it is away. */
  get steadyMs(): number {
    return this.isAway ? 0 : performance.now() - this.#since
  }

  /** Restarts `steadyMs`, for example because the clock of the database has jumped. */
  unsettle(): void {
    this.#since = performance.now()
  }

  onBack(listener: () => void): void {
    this.#back.add(listener)
  }

  /** Runs work on the database; rejects with a StateError if it is away. Errors of the program pass unchanged. */
  run<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#reason !== undefined) return Promise.reject(this.#away())
    return this.attempt(work)
  }

  /** Runs work even if the database was away, and finds out whether it still is. */
  async attempt<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#isDamaged) throw this.#away()
    try {
      const result = await within(WAIT_MS, work(), () => {
        throw new StateError('away', `it did not answer for ${WAIT_MS / 1000} s`)
      })
      this.#cameBack()
      return result
    } catch (error) {
      const isLost = error instanceof SqlError && !isSqlFailure(error, 'constraint', 'limit')
      if (!isLost && !(error instanceof StateError && error.reason === 'away')) throw error
      this.#leave(error)
      throw this.#away(error)
    }
  }

  #away(cause?: unknown): StateError {
    return new StateError('away', `The store ${this.#name} cannot be used: ${this.#reason}.`, { cause })
  }

  #leave(error: Error): void {
    const wasAway = this.isAway
    const isDamaged = isSqlFailure(error, 'damaged', 'foreign')
    this.#reason = isDamaged ? `it is damaged (${error.message})` : error.message
    const fields = { store: this.#name, reason: this.#reason }
    if (isDamaged && !this.#isDamaged)
      this.#log.error(fields, 'store is damaged; state is kept in memory until a restart')
    else if (!wasAway) this.#log.warn(fields, 'store went away; sessions go on and are stored later')
    this.#isDamaged ||= isDamaged
  }

  #cameBack(): void {
    if (!this.isAway || this.#isDamaged) return
    this.#reason = undefined
    this.unsettle()
    this.#log.info({ store: this.#name }, 'store came back')
    this.#back.call()
  }
}
