import type { ScopeRule, WorkspaceConfig } from '../config/snapshot.ts'
import type { Caller, Dispatch, Exchange } from '../protocol/exchange.ts'
import type { ListChanges } from '../protocol/notifications.ts'
import type { ServerStatus } from '../protocol/status.ts'
import type { Log } from '../telemetry/log.ts'
import type { Json } from '../wire/json/json.ts'
import { createGatewayToolRoute } from './budget/gateway-tool-route.ts'
import { ShownLists } from './budget/shown-lists.ts'
import type { RankByMeaning } from './budget/tool-meaning.ts'
import type { ToolUsage } from './budget/tool-usage.ts'
import { Catalog } from './catalog/catalog.ts'
import { CACHE_TIMES, type CacheTimes } from './catalog/freshness.ts'
import { listKindOf } from './catalog/list-kinds.ts'
import { createListSnapshots, type ListSnapshots } from './catalog/list-snapshots.ts'
import { createLists } from './catalog/lists.ts'
import { MergedLists } from './catalog/merged-lists.ts'
import { ListPages } from './catalog/pages.ts'
import { Provenance } from './catalog/provenance.ts'
import type { OnListFault } from './catalog/read-list.ts'
import { createDiscover } from './discover.ts'
import type { Member } from './member.ts'
import { createPolicy } from './policy/policy.ts'
import { createScopeCheck } from './policy/scopes.ts'
import { createDirectCalls } from './routing/direct-calls.ts'
import { createKnownAnswers } from './routing/known-answers.ts'
import { createRoutes } from './routing/routes.ts'
import { createSingleServerRoute } from './routing/single-server.ts'
import { createRefetcher } from './subscriptions/refetch.ts'
import { createWorkspaceSubscriptions, type WorkspaceSubscriptions } from './subscriptions/workspace-subscriptions.ts'

/** What a workspace needs besides its configuration and its members. */
export interface WorkspaceDeps {
  readonly log: Log
  readonly identity: Json // name and version of the gateway
  readonly cursorKeys: readonly [Uint8Array, ...Uint8Array[]] // of all replicas: the first seals, all of them open
  readonly times?: Partial<CacheTimes>
  readonly scopes?: ReadonlyMap<string, ScopeRule> | undefined // of tokens, and the tools that need them
  readonly previous?: Workspace | undefined // the workspace that this one replaces
  /** Calls the listener on every change of a server's status until the returned function is called. */
  readonly onServerStatus?: (listener: (status: ServerStatus) => void) => () => void
  readonly onListFault?: OnListFault
  readonly listChanges?: ListChanges | undefined // of other replicas; undefined: there are none
  /** The server that a task of a caller belongs to. */
  readonly serverOfTask?: (caller: Caller, taskId: string) => string | undefined
  readonly usage?: ToolUsage | undefined // of the tools of a workspace with a budget; undefined: it is not counted
  readonly rankByMeaning?: RankByMeaning | undefined // for searches of tools
}

/** Several servers as one, or one server with rules. */
export interface Workspace {
  readonly dispatch: Dispatch
  // What the workspace that replaces this one takes over; undefined: there is nothing yet.
  readonly catalog: Catalog | undefined
  readonly provenance: Provenance | undefined
  readonly snapshots: ListSnapshots | undefined // only for one with the same rules
  /** The login of a principal at a server came or went; undefined: of every principal. */
  onLoginChanged(server: string, principal: string | undefined): void
  /** The tools of a server have changed, and the server has not announced it. */
  onToolsChanged(server: string): void
  close(): void
}

/**
 * Opens a workspace. One server without rules is forwarded to directly, at no cost; only callers whose token has a policy
 * take the general path.
 */
export const openWorkspace = (config: WorkspaceConfig, members: readonly Member[], deps: WorkspaceDeps): Workspace => {
  const [only] = members
  if (!only || !isPlain(config)) return createWorkspace(config, members, deps)
  const { dispatch: route, subscriptions } = createSingleServerRoute(only, deps.log, {
    onListFault: deps.onListFault,
    missingScopes: createScopeCheck(deps.scopes),
  })
  const stopListening = deps.onServerStatus?.(followRecovery([only], subscriptions.onRecovered))
  const times = { ...CACHE_TIMES, ...deps.times }
  const known = only.learnt && createKnownAnswers(only, only.learnt, route, times)
  const direct = known?.dispatch ?? route
  const { previous, ...others } = deps // the previous workspace must not be kept in memory
  let ruled = previous?.catalog && createWorkspace(config, members, deps)
  const general: Dispatch = exchange => {
    ruled ??= createWorkspace(config, members, others)
    ruled.dispatch(exchange)
  }
  return {
    dispatch: exchange => (exchange.caller.policy ? general : direct)(exchange),
    get catalog() {
      return ruled?.catalog
    },
    get provenance() {
      return ruled?.provenance
    },
    get snapshots() {
      return ruled?.snapshots
    },
    onLoginChanged: (server, principal) => {
      if (server === only.server) subscriptions.onLoginChanged(principal)
      ruled?.onLoginChanged(server, principal)
    },
    onToolsChanged: server => {
      if (server === only.server) subscriptions.onToolsChanged()
      ruled?.onToolsChanged(server)
    },
    close: () => {
      stopListening?.()
      subscriptions.close()
      known?.close()
      ruled?.close()
    },
  }
}

const isPlain = (config: WorkspaceConfig): boolean =>
  config.budget === undefined && config.trim === undefined && config.instructions === undefined && callsArePlain(config)

/** One server, all of whose tools are called by their own names, and with the arguments that callers give. */
const callsArePlain = ({ servers, names, nameLength, policy, overlays }: WorkspaceConfig): boolean =>
  servers.length === 1 &&
  nameLength === undefined &&
  names === 'plain' &&
  createPolicy(policy).isOpen &&
  [...overlays.values()].every(tools => tools.size === 0)

export const createWorkspace = (
  config: WorkspaceConfig,
  members: readonly Member[],
  {
    log,
    identity,
    cursorKeys,
    times,
    scopes,
    previous,
    onServerStatus,
    onListFault,
    listChanges,
    serverOfTask,
    usage,
    rankByMeaning,
  }: WorkspaceDeps,
): Workspace => {
  const catalog = new Catalog({
    members,
    times: { ...CACHE_TIMES, ...times },
    log,
    onChange: change => subscriptions.onCacheChange(change),
    onListFault,
    announceChange: listChanges?.announce,
  })
  if (previous?.catalog) catalog.copyFrom(previous.catalog)
  const merged = new MergedLists(config, members, catalog)
  const provenance = previous?.provenance ?? new Provenance()
  const { budget, trim } = config
  const shown = new ShownLists({ lists: merged, budget, isTrimmed: trim !== undefined, mostUsed: usage?.mostUsed })
  const missingScopes = createScopeCheck(scopes)
  const routes = createRoutes(members, merged, {
    config,
    log,
    provenance,
    missingScopes,
    serverOfTask,
    onCall: usage?.count,
    capabilities: (caller, member) => catalog.discovery(member, caller).value?.result.get('capabilities'),
  })
  const refetcher = createRefetcher(catalog)
  const isAggregate = config.servers.length > 1
  const { locate } = routes
  const subscriptions: WorkspaceSubscriptions = createWorkspaceSubscriptions({
    members,
    catalog,
    lists: merged,
    shown,
    refetcher,
    isAggregate,
    announceChange: listChanges?.announce,
    locate,
  })
  const rulesKey = rulesKeyOf(config)
  const snapshots = previous?.snapshots?.rulesKey === rulesKey ? previous.snapshots : createListSnapshots(rulesKey)
  const lists = createLists({
    lists: shown,
    snapshots,
    pages: new ListPages(cursorKeys),
    isStrict: config.strict,
    log,
  })
  const discover = createDiscover({ config, members, catalog, lists: merged, identity })
  const stopListening = onServerStatus?.(followStatus(members, catalog, subscriptions))
  const stopChanges = listChanges?.onChanged((server, list) => catalog.markOutdated(server, list))

  const [only] = members
  const isDirect = (budget || trim) && callsArePlain(config)
  const single = isDirect && only && createSingleServerRoute(only, log, { onListFault, missingScopes })
  const route = single
    ? createDirectCalls({
        member: only,
        direct: single.dispatch,
        general: routes.dispatch,
        lists: merged,
        usage,
      })
    : routes.dispatch
  const stopUsage = usage?.onChanged(() =>
    subscriptions.onCacheChange({ kind: 'tools', server: '', scope: { kind: 'all' } }),
  )
  const callTool =
    budget || trim
      ? createGatewayToolRoute({
          lists: merged,
          route,
          log,
          instructionsOf: (caller, member) =>
            catalog.discovery(member, caller).value?.result.get('instructions')?.asString(),
          missingScopes,
          rankByMeaning,
        })
      : route

  const choose = ({ kind, method }: Exchange): Dispatch => {
    if (kind !== 'request') return routes.dispatch
    if (method === 'tools/call') return callTool
    if (listKindOf(method)) return lists
    if (method === 'server/discover') return discover
    return method === 'subscriptions/listen' ? subscriptions.dispatch : routes.dispatch
  }

  return {
    dispatch: exchange => choose(exchange)(exchange),
    catalog,
    provenance,
    snapshots,
    onLoginChanged: (server, principal) => {
      if (!members.some(member => member.server === server)) return
      catalog.forgetLogin(server, principal)
      subscriptions.onLoginChanged(server, principal)
    },
    onToolsChanged: server => {
      if (!members.some(member => member.server === server)) return
      catalog.markOutdated(server, 'tools')
      subscriptions.onToolsChanged(server)
    },
    close: () => {
      stopListening?.()
      stopChanges?.()
      stopUsage?.()
      if (single) single.subscriptions.close()
      subscriptions.close()
      refetcher.close()
      catalog.close()
    },
  }
}

/** Equal for configurations that show the lists of servers in the same way. */
const rulesKeyOf = ({ names, nameLength, policy, overlays, budget, trim }: WorkspaceConfig): string =>
  JSON.stringify([
    names,
    nameLength,
    policy,
    budget,
    trim,
    [...overlays].map(([server, tools]) => [server, [...tools]]),
  ])

const DOWN: ReadonlySet<ServerStatus['state']> = new Set(['down', 'disabled', 'unavailable'])

/** Keeps the lists of a server while it is down, and fetches them again when it is back. */
const followStatus = (members: readonly Member[], catalog: Catalog, subscriptions: WorkspaceSubscriptions) => {
  for (const { server, isUp } of members) if (!isUp()) catalog.markDown(server, 'down')
  const recovered = (server: string): void => {
    catalog.markRecovered(server)
    subscriptions.onRecovered(server)
  }
  return followRecovery(members, recovered, (server, reason) => catalog.markDown(server, reason))
}

/** A listener of server states that reports when a member goes down, and when it is back. */
const followRecovery = (
  members: readonly Member[],
  onRecovered: (server: string) => void,
  onDown: (server: string, reason: string) => void = () => {},
) => {
  const down = new Set(members.filter(({ isUp }) => !isUp()).map(({ server }) => server))
  return ({ name, state, reason }: ServerStatus): void => {
    if (!members.some(({ server }) => server === name)) return
    if (DOWN.has(state)) {
      down.add(name)
      onDown(name, reason ?? state)
    } else if (down.delete(name)) onRecovered(name)
  }
}
