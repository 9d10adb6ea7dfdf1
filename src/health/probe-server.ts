import type { Caller, Peer, Upstream } from '../protocol/exchange.ts'
import { MODERN, type Revision } from '../protocol/revisions.ts'
import { listItems, sendRequest } from '../protocol/send-request.ts'
import { Json } from '../wire/json/json.ts'

/** Reads the lists of a server that the gateway itself has opened; resolves with its tools. */
export type ReadLists = (peer: Peer, self: Caller, discovered: Json) => Promise<readonly Json[]>

/** A server that answered `server/discover`. */
export interface ProbedServer {
  readonly revision: Revision
  /** Reads the lists, which may take long. Must be called at once: it releases the connection. */
  readTools(): Promise<readonly Json[]>
}

/** Why the gateway itself cannot probe a server. */
export const PER_CALLER = 'credentials are per caller'
export const needsLogin = (server: string): string => `needs a login: "dragoman login ${server}"`

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
export const probeServer = async (
  upstream: Upstream,
  self: Caller,
  readLists: ReadLists = readTools,
): Promise<ProbedServer> => {
  const peer = await upstream.open(self)
  const release = peer.hold?.() ?? (() => {}) // another peer might be another process
  try {
    const native = { ...self, revision: peer.revision }
    const found = await sendRequest(peer.dispatch, native, 'server/discover')
    const read = async (): Promise<readonly Json[]> => {
      try {
        return await readLists(peer, native, found)
      } finally {
        release()
      }
    }
    return { revision: peer.revision, readTools: read }
  } catch (error) {
    release()
    throw error
  }
}

const readTools: ReadLists = async (peer, self, discovered) => {
  const tools: Json[] = []
  if (!discovered.at('capabilities', 'tools')) return tools
  for await (const tool of listItems('tools', params => sendRequest(peer.dispatch, self, 'tools/list', params)))
    tools.push(tool.compact())
  return tools
}
