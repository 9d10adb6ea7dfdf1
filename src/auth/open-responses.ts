import type { ServerResponse } from 'node:http'

interface OpenResponse<T> {
  readonly response: ServerResponse
  readonly admittedBy: T
  slot: number // its index in the list
}

/**
 * The responses that are open, each with what its request was admitted by. A list in which the last entry takes the place of a
 * removed one, not a Map: when a Map grows, its old table keeps the new one alive, and with it every response, until the next
 * full garbage collection. That made a call cost a quarter more.
 */
export class OpenResponses<T> {
  readonly #entries: OpenResponse<T>[] = []

  /** Keeps a response until it closes. */
  add(response: ServerResponse, admittedBy: T): void {
    const entry = { response, admittedBy, slot: this.#entries.length }
    this.#entries.push(entry)
    response.on('close', () => this.#remove(entry))
  }

  /** Destroys the connections of the responses that were admitted by something that is no longer valid. */
  destroyUnless(isValid: (admittedBy: T) => boolean): void {
    for (const { response, admittedBy } of [...this.#entries]) if (!isValid(admittedBy)) response.req.socket.destroy()
  }

  #remove(entry: OpenResponse<T>): void {
    const last = this.#entries.pop()
    if (!last || last === entry) return
    this.#entries[entry.slot] = last
    last.slot = entry.slot
  }
}
