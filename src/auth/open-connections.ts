import type { ServerResponse } from 'node:http'
import type { Token } from './token.ts'

interface Held {
  readonly token: Token | undefined // undefined: admitted while no token was needed
  readonly end: () => void
}

/** What is open with each token (responses, sessions), so that it ends when the token is revoked or expires. */
export class OpenConnections {
  readonly #open = new Set<Held>()
  readonly #responses = new Map<ServerResponse, Token | undefined>()
  readonly #closed: (this: ServerResponse) => void

  constructor() {
    const responses = this.#responses
    // One listener for all responses: this runs for every request.
    this.#closed = function () {
      responses.delete(this)
    }
  }

  /** Calls `end` once the token is no longer good, unless the returned function was called before. */
  hold(token: Token | undefined, end: () => void): () => void {
    const held: Held = { token, end }
    this.#open.add(held)
    return () => this.#open.delete(held)
  }

  /** Destroys the connection of a response once the token is no longer good, unless the response has closed before. */
  holdResponse(token: Token | undefined, response: ServerResponse): void {
    this.#responses.set(response, token)
    response.on('close', this.#closed)
  }

  /** Ends everything whose token is no longer good. */
  review(isGood: (token: Token | undefined) => boolean): void {
    for (const held of [...this.#open]) if (!isGood(held.token) && this.#open.delete(held)) held.end()
    for (const [{ req }, token] of [...this.#responses]) if (!isGood(token)) req.socket.destroy()
  }
}
