import { buildConnector } from 'undici'
import { type GuardedConnectorOptions, guardOf, withoutBrackets } from './guarded-connector.ts'

/** Opens connections for undici, as `buildGuardedSocketConnector` does, with TLS where the URL wants it. */
export const buildGuardedConnector = (options: GuardedConnectorOptions): buildConnector.connector => {
  const guard = guardOf(options)
  const connect = buildConnector({ timeout: options.connectMs, lookup: guard.lookup, ...options.tls })
  return (target, callback) => {
    const { protocol } = target
    const host = withoutBrackets(target.hostname)
    const port = Number(target.port) || (protocol === 'https:' ? 443 : 80)
    const early = guard.refusalOfHost(protocol, host, port)
    if (early) return callback(early, null)
    connect(target, (...[error, socket]) => {
      if (error) return callback(error, null)
      const refusal = guard.refusalOfConnection(protocol, target.host ?? host, port, socket)
      if (!refusal) return callback(null, socket)
      socket.destroy()
      callback(refusal, null)
    })
  }
}
