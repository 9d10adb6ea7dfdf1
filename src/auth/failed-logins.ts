import { networkOf } from '../protocol/admission.ts'
import type { Log } from '../telemetry/log.ts'

const WINDOW_MS = 60_000
const MAX_FAILURES = 30 // of one address in one window, before its callers must wait
const MAX_ADDRESSES = 1000
const OTHERS = 'others' // counts for every new address while the table is full

/**
 * Counts rejected credentials per remote address. The first one is logged at once, further ones as one line per address
 * and minute. Valid tokens are not counted: the clients of a proxy share its address, and none may lock out the others.
 */
export class FailedLogins {
  readonly #log: Log
  readonly #windows = new Map<string, FailureWindow>() // oldest first
  #timer: NodeJS.Timeout | undefined

  constructor(log: Log) {
    this.#log = log
  }

  /** Counts a failure; returns the milliseconds to wait if its address has had too many. */
  record(address: string | undefined, rejection: RejectionFields): number | undefined {
    const now = Date.now()
    const network = this.#keyFor(networkOf(address))
    const window = this.#windows.get(network)
    if (!window) {
      this.#windows.set(network, { since: now, count: 1, unlogged: 0 })
      this.#timer ??= setTimeout(() => this.#sweep(), WINDOW_MS).unref()
      this.#log.warn({ security: true, address, ...rejection }, 'request rejected')
      return undefined
    }
    window.count++
    window.unlogged++
    return window.count > MAX_FAILURES ? Math.max(1, window.since + WINDOW_MS - now) : undefined
  }

  close(): void {
    clearTimeout(this.#timer)
    for (const [network, window] of this.#windows) this.#logCount(network, window)
    this.#windows.clear()
  }

  #keyFor(network: string): string {
    return this.#windows.size < MAX_ADDRESSES || this.#windows.has(network) ? network : OTHERS
  }

  /** Ends the windows that are over. An address that keeps failing gets a new window, whose first failure is not logged. */
  #sweep(): void {
    const now = Date.now()
    for (const [network, window] of this.#windows) {
      if (now - window.since < WINDOW_MS) break
      this.#windows.delete(network)
      if (this.#logCount(network, window)) this.#windows.set(network, { since: now, count: 0, unlogged: 0 })
    }
    const [oldest] = this.#windows.values()
    this.#timer = oldest && setTimeout(() => this.#sweep(), oldest.since + WINDOW_MS - now).unref()
  }

  #logCount(address: string, { unlogged, since }: FailureWindow): boolean {
    if (unlogged === 0) return false
    const seconds = Math.round((Date.now() - since) / 1000)
    this.#log.warn({ security: true, address, count: unlogged, seconds }, 'requests with rejected credentials')
    return true
  }
}

interface FailureWindow {
  readonly since: number
  count: number
  unlogged: number
}

/** The fields a rejected request is logged with. */
interface RejectionFields {
  readonly reason: string
  readonly workspace: string
  readonly token: string | undefined // the id, if the token is known
}
