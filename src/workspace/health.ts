import type { ServerConfig } from '../config/snapshot.ts'
import type { Caller, Peer, Upstream } from '../protocol/exchange.ts'
import { ask, itemsOf } from '../protocol/listing.ts'
import { MODERN } from '../protocol/revisions.ts'
import type { ServerStatus } from '../protocol/status.ts'
import { Json } from '../wire/json.ts'

const TRY_MS = 10_000

/** The gateway on its own behalf: nobody in particular, and opens nothing that stays. */
const observer = (info: Json): Caller => ({
  workspace: '',
  principal: undefined,
  revision: MODERN,
  capabilities: Json.empty,
  info,
  headers: new Map(),
})

/** What is known of every configured server. */
export interface Health {
  /** Tries every server once, all at the same time, each within its own bound. */
  tryAll(): Promise<void>
  of(server: string): ServerStatus
}

export const createHealth = (
  configs: readonly ServerConfig[],
  upstreams: ReadonlyMap<string, Upstream>,
  identity: Json,
): Health => {
  const self = observer(identity)
  const known = new Map<string, ServerStatus>(configs.map(config => [config.name, atFirst(config)]))

  const attempt = async ({ name }: ServerConfig): Promise<void> => {
    const upstream = upstreams.get(name)
    if (!upstream || known.get(name)?.state !== 'connecting') return
    known.set(
      name,
      await within(TRY_MS, examine(name, upstream, self), {
        name,
        state: 'down',
        reason: `no answer within ${TRY_MS / 1000} s`,
      }),
    )
  }

  return {
    tryAll: async () => void (await Promise.all(configs.map(attempt))),
    of: server => known.get(server) ?? { name: server, state: 'unavailable', reason: 'not configured' },
  }
}

const atFirst = (config: ServerConfig): ServerStatus => {
  if (config.disabled) return { name: config.name, state: 'disabled' }
  if (config.kind === 'unavailable') return { name: config.name, state: 'unavailable', reason: config.reason }
  return { name: config.name, state: 'connecting' }
}

const examine = async (name: string, upstream: Upstream, self: Caller): Promise<ServerStatus> => {
  try {
    const peer = await upstream.open(self)
    const found = await ask(peer.dispatch, self, 'server/discover')
    const tools = found.at('capabilities', 'tools') ? await countTools(peer, self) : 0
    return { name, state: 'ready', revision: peer.revision, tools }
  } catch (error) {
    return { name, state: 'down', reason: error instanceof Error ? error.message : String(error) }
  }
}

/** With the same peer: another one might be another process. */
const countTools = async (peer: Peer, self: Caller): Promise<number> => {
  let tools = 0
  for await (const _tool of itemsOf('tools', params => ask(peer.dispatch, self, 'tools/list', params))) tools++
  return tools
}

const within = <T>(ms: number, work: Promise<T>, otherwise: T): Promise<T> =>
  new Promise(resolve => {
    const timer = setTimeout(() => resolve(otherwise), ms)
    void work.then(value => {
      clearTimeout(timer)
      resolve(value)
    })
  })
