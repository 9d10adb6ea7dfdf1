import type { Json } from '../../wire/json/json.ts'
import type { Incoming } from '../../wire/json-rpc.ts'

/** Most bytes of a client's capabilities, and of its `clientInfo`: the gateway keeps both, and tells clients apart by them. */
const MOST_BYTES = 64 * 1024
const LONGEST_AFFINITY = 1024 // characters

/** Says what is too large in what a client tells about itself, or undefined. */
export const sizeFault = (capabilities: Json, info: Json | undefined, affinity?: string): string | undefined => {
  if (capabilities.size > MOST_BYTES) return tooLarge('capabilities', capabilities)
  if (info && info.size > MOST_BYTES) return tooLarge('clientInfo', info)
  if (affinity !== undefined && affinity.length > LONGEST_AFFINITY)
    return `affinity must have at most ${LONGEST_AFFINITY} characters, but has ${affinity.length}`
  return undefined
}

const tooLarge = (name: string, value: Json): string =>
  `The client's ${name} must have at most ${MOST_BYTES} bytes, but have ${value.size}`

/** Requests the gateway keeps for as long as a session or a stream lives, with the most bytes their body may have. */
const KEPT_REQUESTS: ReadonlyMap<string, number> = new Map([
  ['initialize', 256 * 1024],
  ['subscriptions/listen', 1024 * 1024],
  ['resources/subscribe', 64 * 1024],
  ['resources/unsubscribe', 64 * 1024],
])

/** Says that a body is too large for a request in it, or undefined. A batch may have what its requests may have together. */
export const bodyFault = (incoming: Incoming, bytes: number): string | undefined => {
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
