import type { Caller, Peer, Upstream } from '../protocol/exchange.ts'
import { ask, itemsOf } from '../protocol/listing.ts'
import { MODERN, type Revision } from '../protocol/revisions.ts'
import { Json } from '../wire/json/json.ts'

type Listed = (tool: string | undefined) => void

/** A server that was met. */
export interface ProbedServer {
  readonly revision: Revision
  /** Counts its tools, which may take long; must be called, and at once. */
  countTools(listed?: Listed): Promise<number>
}

/** Why a server cannot be met on the gateway's own behalf. */
export const PER_CALLER = 'credentials are per caller'

/** The gateway on its own behalf: nobody in particular, and opens nothing that stays. */
export const gatewayCaller = (info: Json): Caller => ({
  workspace: '',
  principal: undefined,
  revision: MODERN,
  capabilities: Json.empty,
  info,
  isHealthCheck: true,
  headers: new Map(),
})

/** Meets a server as a client would; rejects with RpcFailure. */
export const probeServer = async (upstream: Upstream, self: Caller): Promise<ProbedServer> => {
  const peer = await upstream.open(self)
  const release = peer.hold?.() ?? (() => {}) // another peer might be another process
  try {
    const found = await ask(peer.dispatch, self, 'server/discover')
    const hasTools = found.at('capabilities', 'tools') !== undefined
    const countTools = (listed?: Listed) => (hasTools ? count(peer, self, listed) : Promise.resolve(0)).finally(release)
    return { revision: peer.revision, countTools }
  } catch (error) {
    release()
    throw error
  }
}

const count = async (peer: Peer, self: Caller, listed?: Listed): Promise<number> => {
  let tools = 0
  for await (const tool of itemsOf('tools', params => ask(peer.dispatch, self, 'tools/list', params))) {
    tools++
    listed?.(tool.get('name')?.asString())
  }
  return tools
}
