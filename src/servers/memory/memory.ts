import type { Caller, Peer, Upstream } from '../../protocol/exchange.ts'
import { type DefinedServer, defineServer } from '../define/define.ts'
import { type Prompt, prompt } from '../define/prompts.ts'
import type { Resource } from '../define/resources.ts'
import type { Remember } from './remember.ts'
import { changedBy, latestEpisodes, memoryTemplates } from './resources.ts'
import type { EmbedQuery } from './search/passages.ts'
import type { MemoryStore, MemoryStores, StoreChange } from './store.ts'
import { memoryTools } from './tools/memory-tools.ts'
import type { ToolContext } from './tools/tool.ts'

/** Whether each workspace or each principal has a memory of its own. */
export type TenantBy = 'workspace' | 'principal'

export interface MemoryServerOptions {
  readonly stores: MemoryStores
  readonly tenantBy: TenantBy
  readonly group: string // the default group
  readonly remember: Remember
  readonly embed: EmbedQuery
  readonly embeds: boolean // vectors are computed for what is written
  readonly version: string
  readonly wake: (tenant: string) => void // there may be background work for this tenant
}

const COALESCE_MS = 200

/** The server's instructions, sent to every client that connects. */
const INSTRUCTIONS = `A memory that outlasts the conversation: episodes (texts, word for word), entities (the people and things they are about) and facts (statements with the time they are valid), separated by group.

Before you start a task, search: search_nodes for preferences, procedures and requirements (entity_types), search_memory_facts for what is known about the matter, search_episodes for the original texts. Ask with the words that matter: names, subjects, dates.
When you learn something worth keeping, add it at once with add_memory: a descriptive name, whole sentences, reference_time if it happened earlier. Summarise; do not paste transcripts. You know what the text means: state it in entities and facts, and when something has changed, name the outdated facts in supersedes.
Store only what is new. What was added is found by the very next search; nothing needs a key or a model.
Deleting, clear_graph and forget cannot be undone: ask the user first.`

const GUIDE = `How to use memory in this task.

1. Search first. search_nodes with entity_types ["Preference"], then ["Procedure"] and ["Requirement"], for the subject of the task; search_memory_facts for what is known about the people and things in it. Use max_nodes and max_facts to see more, valid_at_after and valid_at_before for a time, center_node_uuid to stay near an entity.
2. Follow what you find: preferences and procedures are instructions of the user. A fact with expired_at, or whose invalid_at has passed, is no longer valid; the newest valid one counts.
3. While you work, add what the user states: requirements and preferences at once, each as an episode of its own with facts. Give source "message" for "name: text" lines and "json" for structured data.
4. When something changes, add the new fact with supersedes. Do not delete what was true once.
5. At the end, add one episode that says what was decided and why, in a few sentences that are clear to a reader who was not there.`

const USE_MEMORY: Prompt = prompt({
  name: 'use_memory',
  title: 'Use memory well',
  description: 'How to search memory before a task, and what to add during and after it',
  arguments: { task: { description: 'What you are about to do' } },
  get: ({ task }) => (task ? `${GUIDE}\n\nThe task: ${task}` : GUIDE),
})

/** The memory server. Each tenant has a server of its own, so lists, notifications and data are never shared. */
export const createMemoryServer = (options: MemoryServerOptions): Upstream => {
  const servers = new Map<string, DefinedServer>()
  const serverFor = (caller: Caller): DefinedServer => {
    const tenant = tenantOf(caller, options.tenantBy)
    const server = servers.get(tenant) ?? createTenantServer(tenant, options)
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

/** Anonymous callers share one tenant. */
const tenantOf = ({ workspace, principal }: Caller, by: TenantBy): string => {
  if (by === 'workspace') return `workspace:${workspace}`
  return principal === undefined ? 'anybody' : `principal:${principal}`
}

const createTenantServer = (
  tenant: string,
  { stores, group, remember, embed, embeds, version, wake }: MemoryServerOptions,
): DefinedServer => {
  const watched = new WeakSet<MemoryStore>()
  const context: ToolContext = {
    defaultGroup: group,
    remember,
    embed,
    withStore: work =>
      stores.with(tenant, store => {
        if (!watched.has(store)) store.onChange(onChange)
        watched.add(store)
        return work(store)
      }),
    embedLater: async (store, among) => {
      if (!embeds) return
      await store.enqueue(among, { kind: 'embed' })
      wake(tenant)
    },
  }
  let latest: readonly Resource[] = []
  const server = defineServer({
    name: 'memory',
    title: 'Agent memory',
    version,
    description: 'A memory for agents: episodes, entities and facts with their times',
    instructions: INSTRUCTIONS,
    tools: memoryTools(context),
    prompts: [USE_MEMORY],
    resources: () => latest,
    templates: memoryTemplates(context),
  })
  let notifying: NodeJS.Timeout | undefined // coalesces many changes into one notification
  function onChange(change: StoreChange): void {
    for (const uri of changedBy(change)) server.changed.updated(uri)
    if (change.kind !== 'episode') return
    notifying ??= setTimeout(() => {
      notifying = undefined
      server.changed.resources()
    }, COALESCE_MS).unref()
    wake(tenant)
  }
  const refreshList = async (): Promise<void> => {
    latest = await latestEpisodes(context)
  }
  return {
    changed: server.changed,
    open: async caller => withFreshList(await server.open(caller), refreshList),
    close: () => {
      clearTimeout(notifying)
      return server.close()
    },
  }
}

/** Reads the listed resources from the store before each `resources/list`. */
const withFreshList = (peer: Peer, refresh: () => Promise<void>): Peer => ({
  ...peer,
  dispatch: exchange => {
    // The gateway's own probes have no workspace; they must not create a tenant.
    if (exchange.method !== 'resources/list' || exchange.caller.workspace === '') return peer.dispatch(exchange)
    const forward = (): void => peer.dispatch(exchange)
    refresh().then(forward, forward) // if the store fails, the last list is served
  },
})
