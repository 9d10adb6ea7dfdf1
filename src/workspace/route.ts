import { type RpcError, RpcFailure, rpcError } from '../protocol/errors.ts'
import type { Dispatch, Upstream } from '../protocol/exchange.ts'
import type { Log } from '../telemetry/log.ts'

/** A workspace of a single server: whatever comes goes there as it is. */
export const routeTo = (upstream: Upstream, log: Log): Dispatch => {
  const asRpcError = (error: unknown): RpcError => {
    if (error instanceof RpcFailure) return error.error
    log.error({ err: error }, 'a call failed inside the gateway')
    return rpcError('internal')
  }
  return exchange => {
    upstream
      .open(exchange.caller)
      .then(peer => {
        if (!exchange.signal.reason) peer.dispatch(exchange)
      })
      .catch((error: unknown) => {
        if (exchange.kind === 'request') void exchange.sink({ kind: 'failure', error: asRpcError(error) })
      })
  }
}
