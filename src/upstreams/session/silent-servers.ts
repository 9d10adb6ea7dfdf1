/** A server that did not respond when a session was to be ended. */
interface Silence {
  readonly since: number
  readonly triedAt: number
  readonly until: number // when the server is tried again
}

const SHORTEST_MS = 10_000
const LONGEST_MS = 10 * 60_000

/** Servers that did not respond, each with a backoff of its own: it is left alone for as long as it has been silent. */
export class SilentServers<Server extends object> {
  readonly #silences = new WeakMap<Server, Silence>()

  get(server: Server): Silence | undefined {
    return this.#silences.get(server)
  }

  didNotRespond(server: Server, now: number): void {
    const since = this.#silences.get(server)?.since ?? now
    const waitMs = Math.min(LONGEST_MS, Math.max(SHORTEST_MS, now - since))
    this.#silences.set(server, { since, triedAt: now, until: now + waitMs })
  }

  hasResponded(server: Server): void {
    this.#silences.delete(server)
  }
}
