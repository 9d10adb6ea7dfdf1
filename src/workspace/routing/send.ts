import { deliver } from '../../protocol/deliver.ts'
import { type RpcError, RpcFailure, rpcError } from '../../protocol/errors.ts'
import type { Dispatch, Exchange, Peer, Upstream } from '../../protocol/exchange.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Json } from '../../wire/json/json.ts'

/** Opens an upstream for each exchange and dispatches it there; a failure to open fails the exchange. */
export const sendTo =
  (upstream: Upstream, log: Log): Dispatch =>
  exchange => {
    if (upstream.resume?.(exchange)) return
    const known = upstream.knownPeer?.(exchange.caller)
    if (known) return dispatchTo(known, exchange, log)
    upstream
      .open(exchange.caller)
      .then(peer => {
        if (!exchange.signal.reason || isForOwnSession(exchange)) peer.dispatch(exchange)
      })
      .catch((error: unknown) => rejectThrown(exchange, error, log))
  }

/** The client is still there: nothing has been waited for. */
const dispatchTo = (peer: Peer, exchange: Exchange, log: Log): void => {
  try {
    peer.dispatch(exchange)
  } catch (error) {
    rejectThrown(exchange, error, log)
  }
}

/**
 * A session that a server has for one client ends with the last listener. If the client leaves while the session is being
 * opened, it ends by the listener that comes too late.
 */
export const isForOwnSession = ({ method, caller }: Exchange): boolean =>
  method === 'subscriptions/listen' && caller.session !== undefined

/** Ends a request with an error; a notification has no answer. */
export const rejectWith = (exchange: Exchange, error: RpcError): void => {
  if (exchange.kind === 'request') void deliver(exchange.sink, { kind: 'failure', error })
}

export const rejectParams = (exchange: Exchange, message: string, data?: Json): void =>
  rejectWith(exchange, rpcError('invalidParams', message, data))

/** Ends a request with the error of an RpcFailure; anything else thrown is a bug of the gateway, and is logged. */
export const rejectThrown = (exchange: Exchange, thrown: unknown, log: Log): void => {
  if (thrown instanceof RpcFailure) return rejectWith(exchange, thrown.error)
  log.error({ err: thrown }, 'call failed inside the gateway')
  rejectWith(exchange, rpcError('internal'))
}
