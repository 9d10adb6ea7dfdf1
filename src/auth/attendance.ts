import type { Socket } from 'node:net'
import type { Token } from './token.ts'

/** Whose request a connection carries now, so that streams of a token end with it. */
export class Attendance {
  readonly #present = new Map<Socket, Token>()

  note(socket: Socket, token: Token): void {
    if (socket.destroyed) return
    if (!this.#present.has(socket)) socket.once('close', () => this.#present.delete(socket))
    this.#present.set(socket, token)
  }

  /** Cuts every connection whose token is no longer good. */
  review(isGood: (token: Token) => boolean): void {
    for (const [socket, token] of this.#present) if (!isGood(token)) socket.destroy()
  }
}
