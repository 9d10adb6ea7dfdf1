import { networkOf } from '../protocol/network.ts'
import type { Log } from '../telemetry/log.ts'

const WINDOW_MS = 60_000
const MOST_FAILURES = 30 // of one address in one window, before its callers are told to wait
const MOST_ADDRESSES = 1000
const OTHERS = 'others' // every address that comes while the table is full

interface Entry {
  readonly since: number
  count: number
  unlogged: number
}

/** What a rejected request is logged with. */
interface Rejection {
  readonly reason: string
  readonly workspace: string
  readonly token: string | undefined // the id, where the token is known
}

/**
 * Counts rejected credentials per remote address. The first one is logged at once, further ones as one line per address
 * and minute. Good tokens are not looked at: the clients of a proxy share its address, and none may lock out the others.
 */
export class FailedLogins {
  readonly #log: Log
  readonly #entries = new Map<string, Entry>() // oldest window first
  #timer: NodeJS.Timeout | undefined

  constructor(log: Log) {
    this.#log = log
  }

  /** Counts one; yields the milliseconds to wait where its address has had too many. */
  record(address: string | undefined, rejection: Rejection): number | undefined {
    const now = Date.now()
    const network = this.#placeFor(networkOf(address))
    const known = this.#entries.get(network)
    if (!known) {
      this.#begin(network, { since: now, count: 1, unlogged: 0 })
      this.#log.warn({ security: true, address, ...rejection }, 'request rejected')
      return undefined
    }
    known.count++
    known.unlogged++
    return known.count > MOST_FAILURES ? Math.max(1, known.since + WINDOW_MS - now) : undefined
  }

  close(): void {
    clearTimeout(this.#timer)
    for (const [network, entry] of this.#entries) this.#logSum(network, entry)
    this.#entries.clear()
  }

  #placeFor(network: string): string {
    return this.#entries.size < MOST_ADDRESSES || this.#entries.has(network) ? network : OTHERS
  }

  #begin(network: string, entry: Entry): void {
    this.#entries.set(network, entry)
    this.#timer ??= setTimeout(() => this.#sweep(), WINDOW_MS).unref()
  }

  /** Ends the windows that are over. An address that keeps failing gets a new window, whose first failure is not logged. */
  #sweep(): void {
    const now = Date.now()
    for (const [network, entry] of this.#entries) {
      if (now - entry.since < WINDOW_MS) break
      this.#entries.delete(network)
      if (this.#logSum(network, entry)) this.#entries.set(network, { since: now, count: 0, unlogged: 0 })
    }
    const [oldest] = this.#entries.values()
    this.#timer = oldest && setTimeout(() => this.#sweep(), oldest.since + WINDOW_MS - now).unref()
  }

  #logSum(address: string, { unlogged, since }: Entry): boolean {
    if (unlogged === 0) return false
    const seconds = Math.round((Date.now() - since) / 1000)
    this.#log.warn({ security: true, address, count: unlogged, seconds }, 'requests with rejected credentials')
    return true
  }
}
