import { deliver } from '../../protocol/deliver.ts'
import { RpcFailure, rpcError } from '../../protocol/errors.ts'
import type { Exchange, Frame, Peer, Upstream } from '../../protocol/exchange.ts'
import { META } from '../../protocol/meta.ts'
import { methodRow } from '../../protocol/methods.ts'
import { MODERN } from '../../protocol/revisions.ts'
import { Json } from '../../wire/json/json.ts'
import { type RunningCall, startCall } from './call.ts'
import { toRpcError } from './failures.ts'
import { type Handler, offersOf, type ServerDefinition } from './offers.ts'
import { type Changes, createHub } from './subscriptions.ts'

/** An upstream that lives in this process. */
export interface DefinedServer extends Upstream {
  /** For changes that no call brought about. */
  readonly changed: Changes
}

/** Makes an upstream of a definition. It speaks the newest revision; the bridge converts for older callers. */
export const defineServer = (definition: ServerDefinition): DefinedServer => {
  const { handlers, announces } = offersOf(definition)
  const stamp = stamper(definition)
  const hub = createHub(announces, stamp('subscriptions/listen', Json.empty))
  const running = new Set<RunningCall>()
  const closing = rpcError('internal', `The server ${definition.name} is closing`)
  let closed = false

  const run = (exchange: Exchange, handler: Handler): void => {
    const current = startCall(exchange, hub.changes)
    running.add(current)
    void answer(handler, current, result => stamp(exchange.method, result)).then(frame => {
      running.delete(current)
      current.end(frame)
    })
  }
  const dispatch = (exchange: Exchange): void => {
    if (exchange.kind === 'notification' || exchange.signal.reason) return
    const handler = handlers.get(exchange.method)
    if (closed) void deliver(exchange.sink, { kind: 'failure', error: closing })
    else if (exchange.method === 'subscriptions/listen') hub.listen(exchange)
    else if (handler) run(exchange, handler)
    else
      void deliver(exchange.sink, {
        kind: 'failure',
        error: rpcError('methodNotFound', `Method not found: ${exchange.method}`),
      })
  }
  const peer: Peer = { revision: MODERN, asks: true, dispatch }
  return {
    changed: hub.changes,
    open: async () => {
      if (closed) throw new RpcFailure(closing)
      return peer
    },
    close: async () => {
      closed = true
      hub.close()
      for (const { end } of running) end({ kind: 'failure', error: closing })
      running.clear()
    },
  }
}

/** Runs a handler to its last frame, whatever it throws. */
const answer = async (handler: Handler, { call }: RunningCall, stamp: (result: Json) => Json): Promise<Frame> => {
  try {
    return { kind: 'result', result: stamp(await handler(call)) }
  } catch (error) {
    return { kind: 'failure', error: toRpcError(error) }
  }
}

/** Adds what every modern result carries, unless its author already did. */
const stamper = ({ name, version, title, description }: ServerDefinition) => {
  const info = Json.of({ name, title, version, description })
  return (method: string, result: Json): Json => {
    const meta = result.get('_meta') ?? Json.empty
    let stamped = withDefault(result, 'resultType', 'complete')
    // Never fresh, never shared: what is shown may differ by who asks, and changes are announced anyway.
    if (methodRow(method)?.cacheable) stamped = withDefault(withDefault(stamped, 'ttlMs', 0), 'cacheScope', 'private')
    return stamped.with('_meta', withDefault(meta, META.serverInfo, info))
  }
}

const withDefault = (json: Json, key: string, value: Json | string | number): Json =>
  json.has(key) ? json : json.with(key, value)
