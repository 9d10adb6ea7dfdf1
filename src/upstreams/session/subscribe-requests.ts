import { deliver } from '../../protocol/deliver.ts'
import type { Exchange, Frame } from '../../protocol/exchange.ts'

interface SubscribeRequestsOptions {
  /** Sends a request that has waited, because the one before it was given up. */
  readonly send: (exchange: Exchange) => void
  /** The only request for that URI was given up. The server may have received it. */
  readonly abandoned: (uri: string) => void
}

/** Sends one `resources/subscribe` at a time for each URI: requests of other clients for the same URI get its answer. */
export class SubscribeRequests {
  readonly #options: SubscribeRequestsOptions
  readonly #waiting = new Map<string, Exchange[]>() // by URI, while a request for it is under way

  constructor(options: SubscribeRequestsOptions) {
    this.#options = options
  }

  /** Whether a request for that URI is under way. */
  has(uri: string): boolean {
    return this.#waiting.has(uri)
  }

  /** The request as it is to be sent; undefined if it waits for the answer to another. */
  admit(uri: string, exchange: Exchange): Exchange | undefined {
    const waiting = this.#waiting.get(uri)
    if (waiting) {
      waiting.push(exchange)
      return undefined
    }
    this.#waiting.set(uri, [])
    const stop = exchange.signal.onAbort(() => this.#giveUp(uri))
    return {
      ...exchange,
      sink: frame => {
        if (frame.kind === 'result' || frame.kind === 'failure') {
          stop()
          this.#settle(uri, frame)
        }
        return exchange.sink(frame)
      },
    }
  }

  #settle(uri: string, frame: Frame): void {
    for (const { sink } of this.#take(uri)) void deliver(sink, frame)
  }

  /** The first of the others takes its place. */
  #giveUp(uri: string): void {
    const others = this.#take(uri)
    if (others.length === 0) return this.#options.abandoned(uri)
    for (const exchange of others) {
      const admitted = this.admit(uri, exchange)
      if (admitted) this.#options.send(admitted)
    }
  }

  #take(uri: string): Exchange[] {
    const waiting = this.#waiting.get(uri) ?? []
    this.#waiting.delete(uri)
    return waiting.filter(({ signal }) => !signal.reason)
  }
}
