import { type RpcError, rpcError } from '../protocol/errors.ts'
import { Json } from '../wire/json.ts'

const PATIENCE_MS = 5000 // with a call that waits for a person
const MOST_WAITING = 64

/** A call that may be asked something, as far as taking turns is concerned. */
export interface Turn {
  readonly askedAt: number | undefined // since when a person has been asked
  start(): void
  /** Ends a call whose person has not answered, for the sake of the next. */
  giveWay(): void
  refuse(error: RpcError): void
}

/**
 * Turns on a session that does not say which call a question belongs to: one call that can be asked at a time,
 * so that no answer ever reaches the wrong one.
 */
export class Turns {
  readonly #waiting: Turn[] = []
  #holder: Turn | undefined
  #impatience: NodeJS.Timeout | undefined

  take(turn: Turn): void {
    if (!this.#holder) return this.#give(turn)
    if (this.#waiting.length >= MOST_WAITING) return turn.refuse(EXHAUSTED)
    this.#waiting.push(turn)
    this.#impatience ??= this.#wait()
  }

  leave(turn: Turn): void {
    if (turn !== this.#holder) {
      const at = this.#waiting.indexOf(turn)
      if (at >= 0) this.#waiting.splice(at, 1)
      return
    }
    this.#holder = undefined
    const next = this.#waiting.shift()
    if (next) this.#give(next)
  }

  #give(turn: Turn): void {
    this.#holder = turn
    turn.start()
  }

  #wait(): NodeJS.Timeout {
    const timer = setTimeout(() => {
      this.#impatience = undefined
      const askedAt = this.#holder?.askedAt
      if (askedAt !== undefined && Date.now() - askedAt >= PATIENCE_MS) this.#holder?.giveWay()
      if (this.#waiting.length > 0) this.#impatience ??= this.#wait()
    }, PATIENCE_MS)
    timer.unref()
    return timer
  }
}

const EXHAUSTED = rpcError(
  'internal',
  'Too many calls wait for this session; try again when some of them have finished',
  Json.of({ reason: 'pool_exhausted' }),
)
