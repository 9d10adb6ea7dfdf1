import { type RpcError, rpcError } from '../../protocol/errors.ts'
import { Json } from '../../wire/json/json.ts'
import type { Incoming } from '../../wire/json-rpc.ts'

export const SUBSCRIBE = 'resources/subscribe'
const UNSUBSCRIBE = 'resources/unsubscribe'
export const SET_LEVEL = 'logging/setLevel'

/** Requests whose effect is part of the session: it is stored before they are answered. */
export const SESSION_REQUESTS: ReadonlySet<string> = new Set([SET_LEVEL, SUBSCRIBE, UNSUBSCRIBE])

/** Largest size of a client's capabilities, and of its `clientInfo`: the gateway keeps both and tells clients apart by them. */
const IDENTITY_BYTES = 64 * 1024
const AFFINITY_LENGTH = 1024 // characters

/** Says which part of a client's identity is too large; undefined if none is. */
export const findOversizedIdentity = (
  capabilities: Json,
  info: Json | undefined,
  affinity?: string,
): string | undefined => {
  if (capabilities.size > IDENTITY_BYTES) return identityTooLarge('capabilities', capabilities)
  if (info && info.size > IDENTITY_BYTES) return identityTooLarge('clientInfo', info)
  if (affinity !== undefined && affinity.length > AFFINITY_LENGTH)
    return `affinity must have at most ${AFFINITY_LENGTH} characters, but has ${affinity.length}`
  return undefined
}

const identityTooLarge = (name: string, value: Json): string =>
  `The client's ${name} must have at most ${IDENTITY_BYTES} bytes, but have ${value.size}`

/** Requests the gateway keeps as long as a session or a stream lives, with the largest size of their body in bytes. */
const KEPT_REQUESTS: ReadonlyMap<string, number> = new Map([
  ['initialize', 256 * 1024],
  ['subscriptions/listen', 1024 * 1024],
  [SUBSCRIBE, 64 * 1024],
  [UNSUBSCRIBE, 64 * 1024],
])

/** Says that a body is too large for a request in it; undefined if it is not. A batch may have the sum of its requests' limits. */
export const findOversizedBody = (incoming: Incoming, bytes: number): string | undefined => {
  const messages = incoming.kind === 'batch' ? incoming.messages : [incoming]
  let most = 0
  let method: string | undefined
  for (const message of messages) {
    const limit = message.kind === 'request' ? KEPT_REQUESTS.get(message.method) : undefined
    if (limit === undefined) continue
    most += limit
    if (message.kind === 'request') method ??= message.method
  }
  return method === undefined || bytes <= most
    ? undefined
    : `Payload Too Large: a request of ${method} must have at most ${most} bytes, but has ${bytes}`
}

const SUBSCRIPTION_BYTES = 1024 * 1024 // for one session, as much as one `subscriptions/listen` may have
const TOO_MANY = rpcError(
  'invalidParams',
  `The subscriptions of one session must have at most ${SUBSCRIPTION_BYTES} bytes together; unsubscribe from some first`,
)

/** How a request ended: `unknown` if it was aborted, because the server may have subscribed the session by then. */
export type RequestEnding = 'result' | 'failure' | 'unknown'

/** The resource subscriptions of one legacy session, bounded: the gateway and its upstreams keep each until the session ends. */
export class ResourceSubscriptions {
  #bytes = 0 // of subscriptions, and of subscribe requests in flight
  #sizes: Map<string, number> | undefined // by URI; absent while empty, as in most sessions

  get uris(): readonly string[] {
    return [...(this.#sizes?.keys() ?? [])]
  }

  has(uri: string): boolean {
    return this.#sizes?.has(uri) ?? false
  }

  /** Counts a request until `settle`; returns an error if the session would exceed its limit. */
  reserve(method: string, params: Json): RpcError | undefined {
    if (method !== SUBSCRIBE) return undefined
    const before = this.#sizes?.get(uriOf(params)) ?? 0
    if (this.#bytes - before + params.size > SUBSCRIPTION_BYTES) return TOO_MANY
    this.#bytes += params.size
    return undefined
  }

  /** Counts a subscription that was stored. */
  restore(uri: string): void {
    const params = Json.of({ uri })
    if (!this.reserve(SUBSCRIBE, params)) this.settle(SUBSCRIBE, params, 'result')
  }

  /** Counts what the request has changed. Called once for each request that `reserve` accepted. */
  settle(method: string, params: Json, ending: RequestEnding): void {
    if (method === SUBSCRIBE && ending === 'failure') this.#bytes -= params.size
    else if (method === SUBSCRIBE) {
      const uri = uriOf(params)
      this.#delete(uri)
      this.#sizes = (this.#sizes ?? new Map<string, number>()).set(uri, params.size)
    } else if (method === UNSUBSCRIBE && ending === 'result') this.#delete(uriOf(params))
  }

  #delete(uri: string): void {
    this.#bytes -= this.#sizes?.get(uri) ?? 0
    this.#sizes?.delete(uri)
  }
}

const uriOf = (params: Json): string => params.get('uri')?.asString() ?? ''
