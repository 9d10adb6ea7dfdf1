import { GatewayError } from '../protocol/deliver.ts'
import type { Frame } from '../protocol/exchange.ts'
import { methodInfo } from '../protocol/methods.ts'
import type { Log } from '../telemetry/log.ts'
import { createMetrics } from '../telemetry/metrics.ts'

/** The counts of requests, which know the methods of MCP and the servers of the gateway. */
export const createRequestMetrics = (isServer: (name: string) => boolean, log: Log) =>
  createMetrics<Frame>({
    isKnown: method => methodInfo(method) !== undefined,
    isStanding: method => method === 'subscriptions/listen',
    serverFailureOf: createBlame(isServer, log),
  })

/** Finds the server and the reason of a failure, and logs failures of the gateway. An error from a server may claim anything. */
const createBlame = (isServer: (name: string) => boolean, log: Log) => (frame: Frame) => {
  if (frame.kind === 'failure' && frame.error instanceof GatewayError)
    log.error({ err: frame.error.cause }, 'call failed inside the gateway')
  const data = frame.kind === 'failure' ? frame.error.data : undefined
  const [server, reason] = [data?.get('upstream')?.asString() ?? '', data?.get('reason')?.asString() ?? '']
  return isServer(server) && /^[a-z_]{1,40}$/.test(reason) ? { server, reason } : undefined
}
