import { deliver, failWith } from '../../protocol/deliver.ts'
import { type RpcError, RpcFailure, rpcError } from '../../protocol/errors.ts'
import type { Dispatch, Exchange, Upstream } from '../../protocol/exchange.ts'
import type { Log } from '../../telemetry/log.ts'
import { createListFaultReport, type OnListFault } from '../catalog/list-faults.ts'
import { mergePages } from '../catalog/merge-pages.ts'
import { withoutServer } from '../catalog/names.ts'
import { createOwnNames, type NamedList } from '../catalog/own-names.ts'

/** Methods that call something by a name, and where the server lists such names. */
const CALLS: Readonly<Record<string, NamedList>> = {
  'tools/call': { method: 'tools/list', member: 'tools' },
  'prompts/get': { method: 'prompts/list', member: 'prompts' },
}
const LISTEN = 'subscriptions/listen'

/** What a caller is told of something thrown: what was meant for it, or that it is our fault. */
export const asRpcError = (error: unknown, log: Log): RpcError => {
  if (error instanceof RpcFailure) return error.error
  log.error({ err: error }, 'a call failed inside the gateway')
  return rpcError('internal')
}

/** Opens an upstream for each exchange and hands it over; one that cannot be opened fails the exchange. */
export const sendTo = (upstream: Upstream, log: Log): Dispatch => {
  return exchange => {
    if (upstream.resume?.(exchange)) return
    upstream
      .open(exchange.caller)
      .then(peer => {
        if (!exchange.signal.reason) peer.dispatch(exchange)
      })
      .catch((error: unknown) => {
        if (exchange.kind === 'request') void deliver(exchange.sink, { kind: 'failure', error: asRpcError(error, log) })
      })
  }
}

/** A workspace of a single server: whatever comes goes there as it is, under whichever form of a name. */
export const createSingleServerRoute = (
  server: string,
  upstream: Upstream,
  log: Log,
  flawed?: OnListFault,
): Dispatch => {
  const own = createOwnNames(upstream)
  const send = mergePages(server, sendTo(upstream, log), createListFaultReport(log, flawed))
  return exchange => {
    if (exchange.method === LISTEN) return send(attentive(exchange, own.forget))
    const list = Object.hasOwn(CALLS, exchange.method) ? CALLS[exchange.method] : undefined
    const name = list && exchange.params.get('name')?.asString()
    const bare = name === undefined ? undefined : withoutServer(server, name)
    if (!list || name === undefined || bare === undefined) return send(exchange)
    // It looks like a name with the server in front, but the server may call it so itself.
    void own
      .has(exchange.caller, list, name)
      .then(isOwn => send(isOwn ? exchange : { ...exchange, params: exchange.params.with('name', bare) }))
      .catch((thrown: unknown) => failWith(exchange, thrown))
  }
}

/** Hears of changed lists on their way to whoever listens. */
const attentive = (exchange: Exchange, changed: () => void): Exchange => ({
  ...exchange,
  sink: frame => {
    if (frame.kind === 'notice' && frame.method.endsWith('/list_changed')) changed()
    return exchange.sink(frame)
  },
})
