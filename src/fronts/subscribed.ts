import { type RpcError, rpcError } from '../protocol/errors.ts'
import { shortKey } from '../protocol/short-key.ts'
import type { Json } from '../wire/json.ts'

const MOST_BYTES = 1024 * 1024 // of subscriptions of one session, as `subscriptions/listen` may have
const LONGEST_KEY = 64
const TOO_MANY = rpcError(
  'invalidParams',
  `The subscriptions of one session must have at most ${MOST_BYTES} bytes together; unsubscribe from some first`,
)

/** The resources a legacy session has subscribed to: the gateway and its upstreams keep each until the session ends. */
export class Subscribed {
  #bytes = 0
  #sizes: Map<string, number> | undefined // by URI; absent while there are none, as in most sessions

  /** Counts a request; an error where it would be one too many. */
  take(method: string, params: Json): RpcError | undefined {
    if (method !== 'resources/subscribe' && method !== 'resources/unsubscribe') return undefined
    const key = shortKey(params.get('uri')?.asString() ?? '', LONGEST_KEY)
    const before = this.#sizes?.get(key) ?? 0
    if (method === 'resources/unsubscribe') {
      if (this.#sizes?.delete(key)) this.#bytes -= before
      return undefined
    }
    const bytes = this.#bytes - before + params.size
    if (bytes > MOST_BYTES) return TOO_MANY
    this.#sizes ??= new Map()
    this.#sizes.set(key, params.size)
    this.#bytes = bytes
    return undefined
  }
}
