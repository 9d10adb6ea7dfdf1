import type { Caller, Peer, Upstream } from '../protocol/exchange.ts'
import { MODERN, type Revision } from '../protocol/revisions.ts'
import { listItems, sendRequest } from '../protocol/send-request.ts'
import { Json } from '../wire/json/json.ts'

type OnTool = (name: string | undefined) => void

/** A server that answered `server/discover`. */
export interface ProbedServer {
  readonly revision: Revision
  /** Lists the tools, which may take long. Must be called at once: it releases the connection. */
  countTools(onTool?: OnTool): Promise<number>
}

/** Why the gateway itself cannot probe a server. */
export const PER_CALLER = 'credentials are per caller'

/** The gateway as a caller of its own: anonymous, and without a session that stays open. */
export const gatewayCaller = (info: Json): Caller => ({
  workspace: '',
  principal: undefined,
  revision: MODERN,
  capabilities: Json.empty,
  info,
  isHealthCheck: true,
  headers: new Map(),
})

/** Connects to a server as a client would; rejects with RpcFailure. */
export const probeServer = async (upstream: Upstream, self: Caller): Promise<ProbedServer> => {
  const peer = await upstream.open(self)
  const release = peer.hold?.() ?? (() => {}) // another peer might be another process
  try {
    const found = await sendRequest(peer.dispatch, self, 'server/discover')
    const hasTools = found.at('capabilities', 'tools') !== undefined
    const countTools = (onTool?: OnTool) => (hasTools ? count(peer, self, onTool) : Promise.resolve(0)).finally(release)
    return { revision: peer.revision, countTools }
  } catch (error) {
    release()
    throw error
  }
}

const count = async (peer: Peer, self: Caller, onTool?: OnTool): Promise<number> => {
  let tools = 0
  for await (const tool of listItems('tools', params => sendRequest(peer.dispatch, self, 'tools/list', params))) {
    tools++
    onTool?.(tool.get('name')?.asString())
  }
  return tools
}
