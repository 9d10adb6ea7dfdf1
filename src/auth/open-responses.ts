import type { ServerResponse } from 'node:http'
import { type SlotEntry, SlotList } from '../std/slot-list.ts'

interface OpenResponse<T> extends SlotEntry {
  readonly response: ServerResponse
  readonly admittedBy: T
}

/** The responses that are open, each with what its request was admitted by. */
export class OpenResponses<T> {
  readonly #open = new SlotList<OpenResponse<T>>()

  /** Keeps a response until it closes. */
  add(response: ServerResponse, admittedBy: T): void {
    const entry = { response, admittedBy, slot: -1 }
    this.#open.add(entry)
    response.on('close', () => this.#open.delete(entry))
  }

  /** Destroys the connections of the responses that were admitted by something that is no longer valid. */
  destroyUnless(isValid: (admittedBy: T) => boolean): void {
    for (const { response, admittedBy } of this.#open.entries) if (!isValid(admittedBy)) response.req.socket.destroy()
  }
}
