import { type RpcError, rpcError } from '../../protocol/errors.ts'
import { shortKey } from '../../protocol/short-key.ts'
import type { Json } from '../../wire/json/json.ts'

const MOST_BYTES = 1024 * 1024 // of subscriptions of one session, as `subscriptions/listen` may have
const LONGEST_KEY = 64
const [SUBSCRIBE, UNSUBSCRIBE] = ['resources/subscribe', 'resources/unsubscribe']
const TOO_MANY = rpcError(
  'invalidParams',
  `The subscriptions of one session must have at most ${MOST_BYTES} bytes together; unsubscribe from some first`,
)

/** How a request ended: `unknown` if it was aborted, since the server may have subscribed the session by then. */
export type Ending = 'result' | 'failure' | 'unknown'

/** The resources a legacy session has subscribed to: the gateway and its upstreams keep each until the session ends. */
export class Subscribed {
  #bytes = 0 // of subscriptions, and of requests for some that are not answered yet
  #sizes: Map<string, number> | undefined // by URI; absent while there are none, as in most sessions

  /** Counts a request until `settle`; an error if the session would have too many subscriptions. */
  reserve(method: string, params: Json): RpcError | undefined {
    if (method !== SUBSCRIBE) return undefined
    const before = this.#sizes?.get(keyOf(params)) ?? 0
    if (this.#bytes - before + params.size > MOST_BYTES) return TOO_MANY
    this.#bytes += params.size
    return undefined
  }

  /** Counts what the request has changed. Called once for each request that `reserve` took. */
  settle(method: string, params: Json, ending: Ending): void {
    if (method === SUBSCRIBE && ending === 'failure') this.#bytes -= params.size
    else if (method === SUBSCRIBE) {
      this.#forget(keyOf(params))
      this.#sizes = (this.#sizes ?? new Map<string, number>()).set(keyOf(params), params.size)
    } else if (method === UNSUBSCRIBE && ending === 'result') this.#forget(keyOf(params))
  }

  #forget(key: string): void {
    this.#bytes -= this.#sizes?.get(key) ?? 0
    this.#sizes?.delete(key)
  }
}

const keyOf = (params: Json): string => shortKey(params.get('uri')?.asString() ?? '', LONGEST_KEY)
