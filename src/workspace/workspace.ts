import type { WorkspaceConfig } from '../config/snapshot.ts'
import type { Dispatch, Exchange } from '../protocol/exchange.ts'
import type { ServerStatus } from '../protocol/status.ts'
import type { Log } from '../telemetry/log.ts'
import type { Json } from '../wire/json/json.ts'
import { type CacheChange, Catalog } from './catalog/catalog.ts'
import { CACHE_TIMES, type CacheTimes } from './catalog/freshness.ts'
import { LIST_KINDS, listKindOf } from './catalog/kinds.ts'
import type { OnListFault } from './catalog/list-faults.ts'
import { createListSnapshots, type ListSnapshots } from './catalog/list-snapshots.ts'
import { createLists } from './catalog/lists.ts'
import { MergedLists } from './catalog/merged-lists.ts'
import { createProvenanceStore, type ProvenanceStore } from './catalog/provenance.ts'
import type { ListKind } from './catalog/view.ts'
import { createDiscover } from './discover.ts'
import type { Member } from './member.ts'
import { createRoutes } from './routing/routes.ts'
import { createSubscriptions } from './subscriptions/listen.ts'
import { createRefetcher } from './subscriptions/refetch.ts'

/** What a workspace is told besides its configuration and its members. */
export interface WorkspaceDeps {
  readonly log: Log
  readonly identity: Json // who we say we are
  readonly times?: Partial<CacheTimes>
  readonly previous?: Workspace | undefined // what this one takes the place of
  /** Tells of every change in how a server is, until the returned function is called. */
  readonly onServerStatus?: (listener: (status: ServerStatus) => void) => () => void
  readonly onListFault?: OnListFault
}

/** Several servers as one, or one with rules. */
export interface Workspace {
  readonly dispatch: Dispatch
  readonly catalog: Catalog | undefined // for the one that takes its place; undefined: it keeps no lists
  readonly provenanceStore: ProvenanceStore | undefined // for that one, too
  readonly snapshots: ListSnapshots | undefined // and for that one, if it has the same rules
  close(): void
}

const KIND_NAMES = Object.keys(LIST_KINDS) as ListKind[]
const AWAY: ReadonlySet<ServerStatus['state']> = new Set(['down', 'disabled', 'unavailable'])

export const createWorkspace = (
  config: WorkspaceConfig,
  members: readonly Member[],
  { log, identity, times, previous: before, onServerStatus: onHealth, onListFault: flawed }: WorkspaceDeps,
): Workspace => {
  const catalog = new Catalog({
    members,
    times: { ...CACHE_TIMES, ...times },
    log,
    onChange: (news: CacheChange) => audience.news(news),
    onListFault: flawed,
  })
  if (before?.catalog) catalog.copyFrom(before.catalog)
  const shelves = new MergedLists(config, members, catalog)
  const memory = before?.provenanceStore ?? createProvenanceStore()
  const routes = createRoutes(members, shelves, {
    config,
    log,
    provenanceStore: memory,
    capabilities: (caller, member) => catalog.introduction(member, caller).value?.result.get('capabilities'),
  })
  const follower = createRefetcher(catalog)
  const isAggregate = config.servers.length > 1
  const audience = createSubscriptions({
    members,
    catalog,
    lists: shelves,
    refetcher: follower,
    isAggregate,
    locate: routes.locate,
  })
  const rules = rulesKey(config)
  const snapshots = before?.snapshots?.rulesKey === rules ? before.snapshots : createListSnapshots(rules)
  const lists = createLists({ shelves, snapshots, isStrict: config.strict, log })
  const discover = createDiscover({ config, members, catalog, shelves, identity })
  const release = onHealth?.(watchHealth(members, catalog, audience.back))

  const choose = ({ kind, method }: Exchange): Dispatch => {
    if (kind !== 'request') return routes.dispatch
    if (listKindOf(method)) return lists
    if (method === 'server/discover') return discover
    return method === 'subscriptions/listen' ? audience.dispatch : routes.dispatch
  }

  return {
    dispatch: exchange => choose(exchange)(exchange),
    catalog,
    provenanceStore: memory,
    snapshots,
    close: () => {
      release?.()
      audience.close()
      follower.close()
      catalog.close()
    },
  }
}

/** Equal for configurations that show what servers list in the same way. */
const rulesKey = ({ names, policy, overlays }: WorkspaceConfig): string =>
  JSON.stringify([names, policy, [...overlays].map(([server, tools]) => [server, [...tools]])])

/** What a member listed is kept while it is away, and asked for again when it is back. */
const watchHealth = (members: readonly Member[], catalog: Catalog, back: (server: string) => void) => {
  const away = new Set(members.filter(({ isUp }) => !isUp()).map(({ server }) => server))
  for (const server of away) catalog.markDown(server, KIND_NAMES, 'down')
  return ({ name, state, reason }: ServerStatus): void => {
    if (!members.some(({ server }) => server === name)) return
    if (AWAY.has(state)) {
      away.add(name)
      return catalog.markDown(name, KIND_NAMES, reason ?? state)
    }
    if (!away.delete(name)) return
    catalog.markRecovered(name, KIND_NAMES)
    back(name)
  }
}
