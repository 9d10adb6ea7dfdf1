import { NEVER } from '../protocol/cancellation.ts'
import type { Caller, Upstream } from '../protocol/exchange.ts'
import { isMethodOf } from '../protocol/methods.ts'
import { sendRequest } from '../protocol/send-request.ts'
import type { ServerPing } from '../protocol/status.ts'

/** Measures how long a server takes to connect and to answer; rejects with RpcFailure. Starts it if it does not run. */
export const pingServer = async (upstream: Upstream, self: Caller): Promise<ServerPing> => {
  const begun = performance.now()
  const peer = await upstream.open(self)
  const release = peer.hold?.()
  try {
    const { revision } = peer
    const method = isMethodOf('ping', revision) ? 'ping' : 'server/discover' // the newest revision has no ping
    const ask = () => sendRequest(peer.dispatch, { ...self, revision }, method, undefined, NEVER)
    await ask() // a known server is opened without a message: only the first request starts its process
    const opened = performance.now()
    await ask()
    return { revision, connectMs: tenths(opened - begun), ms: tenths(performance.now() - opened) }
  } finally {
    release?.()
  }
}

const tenths = (ms: number): number => Math.round(ms * 10) / 10
