import { randomBytes } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { createBridge } from '../bridge/bridge.ts'
import type { ParkingHome } from '../bridge/parking/parking.ts'
import type { BridgeTasksOptions, TaskAccess } from '../bridge/tasks/bridge-tasks.ts'
import { runsHere } from '../config/cluster.ts'
import type { ServerConfig, Snapshot, WorkspaceConfig } from '../config/snapshot.ts'
import { createHealth, type Health } from '../health/health.ts'
import { deliver, failWith } from '../protocol/deliver.ts'
import { rpcError } from '../protocol/errors.ts'
import type { Dispatch, Exchange, Upstream } from '../protocol/exchange.ts'
import { CHANGING_LISTS, type ChangingList, type ListChanges } from '../protocol/notifications.ts'
import type { ServerStatus } from '../protocol/status.ts'
import type { ToolPins } from '../safety/tool-pins.ts'
import type { StateStore } from '../stores/state/state-store.ts'
import type { Log } from '../telemetry/log.ts'
import type { ServerCalls } from '../telemetry/server-calls.ts'
import { ProcessHost } from '../upstreams/process/process-host.ts'
import { ServerSessionRecords } from '../upstreams/session/server-session-records.ts'
import { KnownEras } from '../upstreams/stdio/known-era.ts'
import { Json } from '../wire/json/json.ts'
import type { LearntSource } from '../workspace/catalog/learnt-server.ts'
import type { Member } from '../workspace/member.ts'
import { createRequestCheck } from '../workspace/policy/request-check.ts'
import { sendTo } from '../workspace/routing/send.ts'
import { openWorkspace, type Workspace } from '../workspace/workspace.ts'
import { buildServer, transportOf } from './build-server.ts'
import { createHotSwap, type HotSwap, type HotSwapStep } from './hot-swap.ts'
import { LearntServers } from './learnt-servers.ts'
import { createCallerRenewal, keepEqualPolicies } from './renew-policies.ts'
import { createLoginParts, type LoginParts, type OAuthAccess } from './server-logins.ts'
import { pinServer, type ServerPinning, withPins } from './server-pinning.ts'
import type { ServerReplicas } from './server-replicas.ts'
import { createToolEmbeddings } from './tool-embeddings.ts'
import { createToolFlags } from './tool-flags.ts'
import { createToolSizes, type ToolSizes } from './tool-sizes.ts'
import type { ToolUsages } from './tool-usage.ts'
import { placeServer } from './worker-role.ts'

interface RuntimeOptions {
  readonly log: Log
  readonly version: string
  readonly data: string | undefined // the data directory; undefined: no state outlives the process
  readonly ownPort: () => number | undefined // where the gateway listens
  readonly calls?: ServerCalls | undefined // counts the calls of each server
  readonly learnt?: LearntServers // what is known of servers before they are reached
  readonly store?: StateStore | undefined // undefined: sessions with servers end with the process
  readonly cursorKeys?: readonly [Uint8Array, ...Uint8Array[]] | undefined // undefined: cursors end with the process
  readonly parking?: ParkingHome | undefined // undefined: parked calls are known to this process only
  readonly replicas?: ServerReplicas | undefined // undefined: there are no others
  readonly listChanges?: ListChanges | undefined // of other replicas
  readonly usages?: ToolUsages | undefined // undefined: the use of tools is not counted
  readonly tasks?: BridgeTasksOptions | undefined // undefined: tasks end with the process
  readonly pins?: ToolPins | undefined // undefined: no server is pinned
  readonly isWorker?: boolean | undefined // what must run once runs in the main process of this gateway
  readonly oauth?: OAuthAccess | undefined // closed with the runtime; undefined: no server is called with OAuth
}

/** The servers and workspaces of the current configuration. */
export interface Runtime {
  readonly snapshot: Snapshot
  readonly dispatch: Dispatch // to the caller's workspace
  hasWorkspace(workspace: string): boolean
  hasServer(name: string): boolean
  /** Sends requests to one server, without the rules of a workspace; undefined if there is no such server. */
  dispatchTo(server: string): Dispatch | undefined
  /** A server as it was built, without the layers around it. */
  builtServer(name: string): Upstream | undefined
  /** All servers, with their calls. */
  serverStates(): readonly ServerStatus[]
  serverState(server: string): ServerStatus
  readonly toolSizes: ToolSizes
  /** What the owner does with single servers; the caller has checked the name. */
  readonly control: ServerControl
  /** The number of calls that wait for an answer of their client. */
  parkedCalls(): number
  /** Probes every server that is still connecting. */
  probeAll(): Promise<void>
  /**
   * Switches to another configuration at once. Servers and workspaces that are the same in both keep their state and
   * connections; the others are closed once `drained` settles.
   */
  swap(next: Snapshot, drained: Promise<void>): void
  readonly tasks: TaskAccess
  /** The number of tasks that the gateway itself runs in this process. */
  runningTasks(): number
  /** Resolves when tasks that run now, and would be lost with this process, are over, or after that time. */
  tasksSettled(timeoutMs: number): Promise<void>
  /** For a planned stop: from now on no session with a server, and no task, is ended that a later process can go on with. */
  keepSessions(): void
  close(): Promise<void>
}

/** What the owner of a gateway can do with one server. */
export interface ServerControl {
  /** Stops or starts a server, whatever the configuration says, until the opposite is done or the gateway restarts. */
  setStopped(server: string, isStopped: boolean, drained: Promise<void>): void
  /** Ends the connections and processes of a server once `drained` settles, and connects anew at once. */
  restart(server: string, drained: Promise<void>): void
  /** Probes a server that is not ready; resolves when the probe has ended or takes too long. */
  probe(server: string): Promise<void>
  /** Measures how long a server takes to answer; rejects with RpcFailure, also after a bounded time. */
  ping: Health['ping']
}

interface ServerEntry {
  readonly config: ServerConfig
  readonly built: Upstream // as its transport made it
  readonly native: Upstream
  readonly bridged: Upstream
  readonly send: Dispatch // to the server, above the bridge
  readonly learnt: LearntSource | undefined
  readonly logins: LoginParts | undefined
  readonly pinning: ServerPinning | undefined
}

interface WorkspaceEntry {
  readonly config: WorkspaceConfig
  readonly servers: readonly (ServerEntry | undefined)[] // it was built with
  readonly hotSwap: HotSwap
  readonly workspace: Workspace
}

export const createRuntime = (first: Snapshot, options: RuntimeOptions): Runtime => {
  const { log, version, data, ownPort, calls, learnt = new LearntServers(undefined, log) } = options
  const { cursorKeys = [randomBytes(32)], replicas, oauth, pins, isWorker = false } = options
  const bridge = createBridge({ ...first.limits, home: options.parking, tasks: options.tasks })
  const host = new ProcessHost(first.limits.concurrentStarts)
  const knownEras = new KnownEras()
  const records = options.store && new ServerSessionRecords({ store: options.store, log })
  const { principalUpstreamSessions: sessionsPerPrincipal } = first.limits
  const identity = Json.of({ name: 'dragoman', version })
  const health = createHealth(identity, log, calls)
  const placement = { cluster: first.cluster, connect: replicas?.connect }
  const toolSizes = createToolSizes(health.toolsOf, config => options.usages?.of(config)?.mostUsed() ?? [])
  const toolFlags = createToolFlags(health.toolsOf, () => snapshot.workspaces.values())
  const toolEmbeddings = createToolEmbeddings({ serverOf: name => snapshot.servers.get(name), log })
  const draining = new Set<Upstream>()
  let snapshot = first
  let servers: ReadonlyMap<string, ServerEntry> = new Map()
  let workspaces: ReadonlyMap<string, WorkspaceEntry> = new Map()
  const switched = new Map<string, boolean>() // servers that their owner has stopped (true) or started (false)
  let restarting: string | undefined

  const addServer = (given: ServerConfig): ServerEntry => {
    const disabled = switched.get(given.name) ?? given.disabled
    const config = disabled === given.disabled ? given : { ...given, disabled }
    const before = servers.get(config.name)
    if (before && isDeepStrictEqual(before.config, config) && config.name !== restarting) return before
    const sources = () => snapshot.sources
    const placed = placeServer(config, isWorker)
    const isHere = runsHere(placed, first.cluster)
    const logins = isHere
      ? createLoginParts(config, oauth, principal => loginChanged(config.name, principal))
      : undefined
    const shared = { log, version, host, knownEras, data, sources, ownPort, sessionsPerPrincipal, records, placement }
    const unpinned = buildServer(placed, { ...shared, logins: logins?.upstream })
    const pinning = isHere ? pinServer(config, unpinned, pins, logins) : undefined
    const built = pinning?.upstream ?? unpinned
    const access = learnt.accessTo(config, built)
    const guarded = health.add(config, built, { readLists: access?.readLists, standIn: logins?.standIn })
    const again: Dispatch = exchange => send(exchange)
    const isShared = replicas && isHere
    const native = isShared ? replicas.share(config.name, built, guarded, again) : guarded
    const bridged = bridge.wrap(native, config.name, {
      isLocal: isShared && config.kind !== 'remote' && config.kind !== 'openapi',
      login: logins?.standIn && logins.questions(again),
    })
    const send = sendTo(bridged, log)
    return { config, built, native, bridged, send, learnt: access?.source, logins, pinning }
  }

  const loginChanged = (server: string, principal: string | undefined): void => {
    for (const { workspace } of workspaces.values()) workspace.onLoginChanged(server, principal)
  }

  /** What a server lists has changed here, without a word of the server. */
  const listChanged = (server: string): void => {
    health.readAgain(server)
    for (const { workspace } of workspaces.values()) workspace.onToolsChanged(server)
  }
  const stopApprovals = pins?.onApproved(listChanged)

  const memberOf = (workspace: WorkspaceConfig, server: string): Member[] => {
    const entry = servers.get(server)
    // A disabled server is left out, unless it is the only one: then its error says so.
    if (!entry || (entry.config.disabled && workspace.servers.length > 1)) return []
    return [
      {
        server,
        bridged: entry.bridged,
        native: entry.native,
        isRemote: entry.config.kind === 'remote',
        isProcess: entry.config.kind === 'process',
        runsFor: entry.config.kind === 'process' ? entry.built.runsFor : undefined,
        wantsLogins: entry.logins?.standIn !== undefined,
        overlays: workspace.overlays.get(server) ?? new Map(),
        trim: workspace.trim,
        learnt: entry.learnt,
        isUp: () => health.isUp(server),
        quarantineOf: entry.pinning?.quarantineOf,
      },
    ]
  }

  const addWorkspace = (config: WorkspaceConfig, step: Omit<HotSwapStep, 'changed'>): WorkspaceEntry => {
    const members = config.servers.map(server => servers.get(server))
    const before = workspaces.get(config.name)
    if (before && isDeepStrictEqual(before.config, config) && isSame(members, before.servers)) {
      before.hotSwap.swap(before.workspace.dispatch, { ...step, changed: CHANGING_LISTS })
      return before
    }
    const workspace = openWorkspace(
      config,
      config.servers.flatMap(server => memberOf(config, server)),
      {
        log,
        identity,
        cursorKeys,
        times: { listWaitMs: first.limits.listWaitMs },
        scopes: first.auth?.scopes,
        onServerStatus: health.onChange,
        onListFault: health.setListFault,
        serverOfTask: bridge.serverOfTask,
        listChanges: options.listChanges,
        usage: options.usages?.of(config),
        rankByMeaning: toolEmbeddings.of(config),
        previous: before?.workspace,
      },
    )
    if (!before) return { config, servers: members, hotSwap: createHotSwap(workspace.dispatch), workspace }
    before.hotSwap.swap(workspace.dispatch, { ...step, changed: changedLists(before, config, members) })
    void step.drained.then(() => before.workspace.close())
    return { config, servers: members, hotSwap: before.hotSwap, workspace }
  }

  /** Ends the subscriptions of clients without a session at once, those of sessions when their calls have ended. */
  const removeWorkspace = ({ hotSwap, workspace }: WorkspaceEntry, drained: Promise<void>): void => {
    hotSwap.end(({ session }) => session === undefined)
    void drained.then(() => {
      hotSwap.end(() => true)
      workspace.close()
    })
  }

  const removeServer = async (name: string, { native, logins }: ServerEntry, drained: Promise<void>): Promise<void> => {
    logins?.close()
    if (!servers.has(name)) {
      health.remove(name)
      records?.removeServer(name)
    }
    draining.add(native)
    await drained
    await native.close()
    draining.delete(native)
  }

  const swap = (given: Snapshot, drained: Promise<void>): void => {
    const [oldServers, oldWorkspaces] = [servers, workspaces]
    const next = { ...given, policies: keepEqualPolicies(snapshot.policies, given.policies) }
    const step = { drained, renew: createCallerRenewal(snapshot, next) }
    servers = new Map([...next.servers].map(([name, config]) => [name, addServer(config)]))
    workspaces = new Map([...next.workspaces].map(([name, config]) => [name, addWorkspace(config, step)]))
    snapshot = next
    learnt.keepOnly(next.servers.values())
    pins?.keepOnly(new Set([...next.servers.values()].flatMap(({ name, pin }) => (pin ? name : []))))
    for (const name of switched.keys()) if (!next.servers.has(name)) switched.delete(name)
    for (const [name, entry] of oldWorkspaces) if (!workspaces.has(name)) removeWorkspace(entry, drained)
    for (const [name, entry] of oldServers) {
      if (servers.get(name) === entry) continue
      removeServer(name, entry, drained).catch((error: unknown) =>
        log.warn({ err: error, server: name }, 'server not closed'),
      )
    }
  }

  /** Never throws: an exception fails the request. */
  const dispatch = createRequestCheck(exchange => {
    const entry = workspaces.get(exchange.caller.workspace)
    if (!entry) return rejectRemoved(exchange)
    try {
      bridge.addTasks(exchange, entry.hotSwap.dispatch)
    } catch (thrown) {
      failWith(exchange, thrown)
    }
  }, log)

  const close = async (): Promise<void> => {
    stopApprovals?.()
    pins?.close()
    for (const { workspace } of workspaces.values()) workspace.close()
    for (const { logins } of servers.values()) logins?.close()
    bridge.close()
    health.close()
    const upstreams = [...servers.values()].map(({ native }) => native)
    await Promise.allSettled([...[...upstreams, ...draining].map(upstream => upstream.close()), learnt.close()])
    await Promise.all([records?.close(), oauth?.close(), toolEmbeddings.close()])
  }

  const statusOf = (server: string): ServerStatus => {
    const entry = servers.get(server)
    const processes = entry?.built.processCount?.()
    const toolSize = toolSizes.ofServer(server)
    const pinned = pins?.statusOf(server)
    const flags = toolFlags.ofServer(server)
    return {
      ...withPins(health.statusOf(server), pinned),
      ...(toolSize && { toolSize, largestTools: toolSizes.largestOf(server) }),
      ...(flags.length > 0 && { flags }),
      ...(processes !== undefined && { processes }),
      ...(entry && { transport: transportOf(entry.config) }),
      ...(entry?.logins?.isDemanded() && { hasLogin: true }),
      ...(switched.get(server) === true && { isStopped: true, reason: STOPPED }),
    }
  }

  const control: ServerControl = {
    setStopped: (server, isStopped, drained) => {
      if (isStopped === snapshot.servers.get(server)?.disabled) switched.delete(server)
      else switched.set(server, isStopped)
      swap(snapshot, drained)
      void health.probeAll()
    },
    restart: (server, drained) => {
      restarting = server
      swap(snapshot, drained)
      restarting = undefined
      void health.probeAll()
    },
    probe: health.probeNow,
    ping: health.ping,
  }

  swap(first, Promise.resolve())
  return {
    get snapshot() {
      return snapshot
    },
    dispatch,
    hasWorkspace: workspace => workspaces.has(workspace),
    hasServer: name => servers.has(name),
    dispatchTo: server => servers.get(server)?.send,
    builtServer: name => servers.get(name)?.built,
    serverStates: () =>
      [...servers.keys()].map(server => {
        const activity = calls?.activityOf(server)
        return { ...statusOf(server), ...(activity && { activity }) }
      }),
    control,
    serverState: statusOf,
    toolSizes,
    parkedCalls: bridge.parkedCalls,
    probeAll: health.probeAll,
    swap,
    tasks: bridge.tasks,
    runningTasks: bridge.runningTasks,
    tasksSettled: bridge.tasksSettled,
    keepSessions: () => {
      bridge.releaseTasks() // before sessions end, and calls with them
      records?.keepSessions()
    },
    close,
  }
}

const STOPPED = 'stopped by the owner; it stays so until it is started, or until the gateway restarts'

const isSame = <T>(some: readonly T[], others: readonly T[]): boolean =>
  some.length === others.length && some.every((one, at) => one === others[at])

/** The lists that differ between two configurations of a workspace. */
const changedLists = (
  before: WorkspaceEntry,
  config: WorkspaceConfig,
  members: WorkspaceEntry['servers'],
): readonly ChangingList[] => {
  const { servers, names, nameLength, policy } = before.config
  const isRebuilt =
    !isSame(members, before.servers) ||
    !isDeepStrictEqual(
      [servers, names, nameLength, policy],
      [config.servers, config.names, config.nameLength, config.policy],
    )
  if (isRebuilt) return CHANGING_LISTS
  const { overlays, budget, trim } = before.config
  const isSameTools = isDeepStrictEqual([overlays, budget, trim], [config.overlays, config.budget, config.trim])
  return isSameTools ? [] : ['tools']
}

/** The workspace was removed after the caller was admitted. */
const rejectRemoved = ({ kind, caller, sink }: Exchange): void => {
  const error = rpcError('invalidRequest', `There is no workspace ${JSON.stringify(caller.workspace)} any more`)
  if (kind === 'request') void deliver(sink, { kind: 'failure', error })
}
