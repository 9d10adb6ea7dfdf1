import type { Caller, Peer, Upstream } from '../../protocol/exchange.ts'
import { type DefinedServer, defineServer } from '../define/define.ts'
import type { Resource } from '../define/resources.ts'
import { createDesk, type Desk, type TenantBy, tenantOf } from './desk.ts'
import { INSTRUCTIONS, memoryPrompts } from './prompt.ts'
import type { Remember } from './remember.ts'
import { changedBy, latestEpisodes, memoryTemplates } from './resources.ts'
import type { Change, MemoryStore, MemoryStores } from './store.ts'
import { memoryTools } from './tools/all.ts'
import type { Embed } from './tools/searching.ts'

export interface MemoryServerOptions {
  readonly stores: MemoryStores
  readonly tenantBy: TenantBy
  readonly group: string // where things go that name none
  readonly remember: Remember
  readonly embed: Embed
  readonly embeds: boolean // whether vectors are kept of what is written
  readonly version: string
  /** There may be background work for this tenant. */
  readonly wake: (tenant: string) => void
}

const COALESCE_MS = 200

/** An agent memory. Every tenant has a server of its own: lists, notices and data never meet. */
export const memory = (options: MemoryServerOptions): Upstream => {
  const servers = new Map<string, DefinedServer>()
  const serverFor = (caller: Caller): DefinedServer => {
    const tenant = tenantOf(caller, options.tenantBy)
    const server = servers.get(tenant) ?? tenantServer(tenant, options)
    servers.set(tenant, server)
    return server
  }
  return {
    open: caller => serverFor(caller).open(caller),
    close: async () => {
      await Promise.all([...servers.values()].map(server => server.close()))
      await options.stores.close()
    },
  }
}

const tenantServer = (
  tenant: string,
  { stores, group, remember, embed, embeds, version, wake }: MemoryServerOptions,
): DefinedServer => {
  const known = new WeakSet<MemoryStore>()
  const watched = <T>(work: (store: MemoryStore) => Promise<T>): Promise<T> =>
    stores.with(tenant, store => {
      if (!known.has(store)) store.onChange(announce)
      known.add(store)
      return work(store)
    })
  const embedLater = async (store: MemoryStore, among: string): Promise<void> => {
    if (!embeds) return
    await store.enqueue(among, { kind: 'embed' })
    wake(tenant)
  }
  const desk = createDesk(watched, group, embedLater)
  let latest: readonly Resource[] = []
  const server = defineServer({
    name: 'memory',
    title: 'Agent memory',
    version,
    description: 'A memory for agents: episodes, entities and facts with their times',
    instructions: INSTRUCTIONS,
    tools: memoryTools(desk, remember, embed),
    prompts: memoryPrompts(),
    resources: () => latest,
    templates: memoryTemplates(desk),
  })
  const listChange = coalesced(server.changed.resources)
  function announce(change: Change): void {
    for (const uri of changedBy(change)) server.changed.updated(uri)
    if (change.kind !== 'episode') return
    listChange.soon()
    wake(tenant)
  }
  return {
    changed: server.changed,
    open: async caller => withLatest(await server.open(caller), desk, found => (latest = found)),
    close: () => {
      listChange.stop()
      return server.close()
    },
  }
}

/** The list of resources is looked up when somebody asks for it. */
const withLatest = (peer: Peer, desk: Desk, keep: (found: readonly Resource[]) => void): Peer => ({
  ...peer,
  dispatch: exchange => {
    // Where the gateway itself looks around there is no workspace, and none shall get a memory by it.
    if (exchange.method !== 'resources/list' || exchange.caller.workspace === '') return peer.dispatch(exchange)
    const go = (): void => peer.dispatch(exchange)
    latestEpisodes(desk).then(keep).then(go, go) // what cannot be looked up again is shown as it was
  },
})

/** Many changes at once are one announcement. */
const coalesced = (announce: () => void) => {
  let timer: NodeJS.Timeout | undefined
  return {
    soon: (): void => {
      timer ??= setTimeout(() => {
        timer = undefined
        announce()
      }, COALESCE_MS).unref()
    },
    stop: (): void => clearTimeout(timer),
  }
}
