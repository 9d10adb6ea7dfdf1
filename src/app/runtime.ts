import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { createBridge } from '../bridge/bridge.ts'
import type { BuiltinServer, ServerConfig, Snapshot, WorkspaceConfig } from '../config/snapshot.ts'
import { createHealth } from '../health/health.ts'
import { deliver, failWith } from '../protocol/deliver.ts'
import { RpcFailure, rpcError } from '../protocol/errors.ts'
import type { Dispatch, Exchange, Upstream } from '../protocol/exchange.ts'
import { CHANGING_LISTS, type ChangingList } from '../protocol/notifications.ts'
import type { ServerStatus } from '../protocol/status.ts'
import { demo } from '../servers/demo/demo.ts'
import { files } from '../servers/files/files.ts'
import type { MemoryOptions } from '../servers/memory/start.ts'
import { startInThread } from '../servers/thread/upstream.ts'
import type { Log } from '../telemetry/log.ts'
import type { ServerCalls } from '../telemetry/server-calls.ts'
import { connectRemote } from '../upstreams/http/connect-remote.ts'
import { ProcessHost } from '../upstreams/process/process-host.ts'
import { KnownEras } from '../upstreams/stdio/known-era.ts'
import { connectProcess } from '../upstreams/stdio/process-upstream.ts'
import { Json } from '../wire/json/json.ts'
import type { Member } from '../workspace/member.ts'
import { createRequestCheck } from '../workspace/policy/request-check.ts'
import type { Workspace } from '../workspace/workspace.ts'
import { createHotSwap, type HotSwap, type HotSwapStep } from './hot-swap.ts'
import { openWorkspace } from './open-workspace.ts'
import { createCallerRenewal, keepEqualPolicies } from './renewal.ts'

interface Options {
  readonly log: Log
  readonly version: string
  readonly data: string | undefined // the data directory; without one nothing outlives the process
  readonly ownPort: () => number | undefined // where the gateway listens
  readonly calls?: ServerCalls | undefined // counts what each server answers
}

/** The servers and workspaces of a configuration, and the way to those of the next one. */
export interface Runtime {
  readonly snapshot: Snapshot
  readonly dispatch: Dispatch // to the workspace the caller names
  hasWorkspace(workspace: string): boolean
  hasServer(name: string): boolean
  serverStates(): readonly ServerStatus[]
  serverState(server: string): ServerStatus
  /** Tries every server that has not been tried yet. */
  probeAll(): Promise<void>
  /**
   * Goes over to another configuration at once. What is the same in both stays as it is, open connections included;
   * what is not there any more is closed once `drained` settles.
   */
  swap(next: Snapshot, drained: Promise<void>): void
  close(): Promise<void>
}

/** A server that is there: what it was built from, and what callers reach it by. */
interface Holding {
  readonly config: ServerConfig
  readonly upstream: Upstream
  readonly bridged: Upstream
}

/** A workspace that is there: the servers it was built on, its door, and what is behind the door now. */
interface Room {
  readonly config: WorkspaceConfig
  readonly holdings: readonly (Holding | undefined)[]
  readonly relay: HotSwap
  readonly inner: Workspace
}

export const createRuntime = (first: Snapshot, { log, version, data, ownPort, calls }: Options): Runtime => {
  const bridge = createBridge(first.limits)
  const host = new ProcessHost(first.limits.concurrentStarts)
  const knownEras = new KnownEras()
  const { principalUpstreamSessions: sessionsPerPrincipal } = first.limits
  const identity = Json.of({ name: 'dragoman', version })
  const health = createHealth(identity, log, calls)
  const leaving = new Set<Upstream>()
  let snapshot = first
  let holdings: ReadonlyMap<string, Holding> = new Map()
  let rooms: ReadonlyMap<string, Room> = new Map()

  const hold = (config: ServerConfig): Holding => {
    const before = holdings.get(config.name)
    if (before && isDeepStrictEqual(before.config, config)) return before
    const sources = () => snapshot.sources
    const upstream = health.add(
      config,
      buildServer(config, { log, version, host, knownEras, data, sources, ownPort, sessionsPerPrincipal }),
    )
    return { config, upstream, bridged: bridge.wrap(upstream, config.name) }
  }

  const memberOf = (workspace: WorkspaceConfig, server: string): Member[] => {
    const holding = holdings.get(server)
    // One that is disabled is not missed; but where there is no other, it says why.
    if (!holding || (holding.config.disabled && workspace.servers.length > 1)) return []
    return [
      {
        server,
        bridged: holding.bridged,
        native: holding.upstream,
        isRemote: holding.config.kind === 'remote',
        overlays: workspace.overlays.get(server) ?? new Map(),
        isUp: () => health.isUp(server),
      },
    ]
  }

  const open = (config: WorkspaceConfig, before: Workspace | undefined): Workspace =>
    openWorkspace(
      config,
      config.servers.flatMap(server => memberOf(config, server)),
      { log, identity, onServerStatus: health.onChange, onListFault: health.setListFault, previous: before },
    )

  const furnish = (config: WorkspaceConfig, turn: Omit<HotSwapStep, 'changed'>): Room => {
    const members = config.servers.map(server => holdings.get(server))
    const before = rooms.get(config.name)
    if (before && isDeepStrictEqual(before.config, config) && isSame(members, before.holdings)) {
      before.relay.swap(before.inner.dispatch, { ...turn, changed: CHANGING_LISTS })
      return before
    }
    const inner = open(config, before?.inner)
    if (!before) return { config, holdings: members, relay: createHotSwap(inner.dispatch), inner }
    before.relay.swap(inner.dispatch, { ...turn, changed: changedLists(before, config, members) })
    void turn.drained.then(() => before.inner.close())
    return { config, holdings: members, relay: before.relay, inner }
  }

  /** Clients without a session hear the end at once; a session ends when its calls have. */
  const vacate = (room: Room, drained: Promise<void>): void => {
    room.relay.end(({ session }) => session === undefined)
    void drained.then(() => {
      room.relay.end(() => true)
      room.inner.close()
    })
  }

  const leave = async (name: string, { upstream }: Holding, drained: Promise<void>): Promise<void> => {
    if (!holdings.has(name)) health.remove(name)
    leaving.add(upstream)
    await drained
    await upstream.close()
    leaving.delete(upstream)
  }

  const swap = (given: Snapshot, drained: Promise<void>): void => {
    const [oldHoldings, oldRooms] = [holdings, rooms]
    const next = { ...given, policies: keepEqualPolicies(snapshot.policies, given.policies) }
    const turn = { drained, renew: createCallerRenewal(snapshot, next) }
    holdings = new Map([...next.servers].map(([name, config]) => [name, hold(config)]))
    rooms = new Map([...next.workspaces].map(([name, config]) => [name, furnish(config, turn)]))
    snapshot = next
    for (const [name, room] of oldRooms) if (!rooms.has(name)) vacate(room, drained)
    for (const [name, holding] of oldHoldings) {
      if (holdings.get(name) === holding) continue
      leave(name, holding, drained).catch((error: unknown) => log.warn({ err: error, server: name }, 'closing failed'))
    }
  }

  /** Never throws: an error on the way down ends the request with a failure. */
  const dispatch = createRequestCheck(exchange => {
    const room = rooms.get(exchange.caller.workspace)
    if (!room) return refuse(exchange)
    try {
      room.relay.dispatch(exchange)
    } catch (thrown) {
      failWith(exchange, thrown)
    }
  }, log)

  const close = async (): Promise<void> => {
    for (const { inner } of rooms.values()) inner.close()
    bridge.close()
    health.close()
    const upstreams = [...holdings.values()].map(({ upstream }) => upstream)
    await Promise.allSettled([...upstreams, ...leaving].map(upstream => upstream.close()))
  }

  swap(first, Promise.resolve())
  return {
    get snapshot() {
      return snapshot
    },
    dispatch,
    hasWorkspace: workspace => rooms.has(workspace),
    hasServer: name => holdings.has(name),
    serverStates: () => [...holdings.keys()].map(health.statusOf),
    serverState: health.statusOf,
    probeAll: health.probeAll,
    swap,
    close,
  }
}

const isSame = <T>(some: readonly T[], others: readonly T[]): boolean =>
  some.length === others.length && some.every((one, at) => one === others[at])

/** What listeners of a workspace are told when it becomes another. */
const changedLists = (before: Room, config: WorkspaceConfig, members: Room['holdings']): readonly ChangingList[] => {
  const { servers, names, policy } = before.config
  const isMixedAnew =
    !isSame(members, before.holdings) ||
    !isDeepStrictEqual([servers, names, policy], [config.servers, config.names, config.policy])
  if (isMixedAnew) return CHANGING_LISTS
  return isDeepStrictEqual(before.config.overlays, config.overlays) ? [] : ['tools']
}

/** Its workspace went away between its admission and now. */
const refuse = ({ kind, caller, sink }: Exchange): void => {
  const error = rpcError('invalidRequest', `There is no workspace ${JSON.stringify(caller.workspace)} any more`)
  if (kind === 'request') void deliver(sink, { kind: 'failure', error })
}

interface Building {
  readonly log: Log
  readonly version: string
  readonly host: ProcessHost
  readonly knownEras: KnownEras
  readonly data: string | undefined // the data directory
  readonly sessionsPerPrincipal?: number // at each server, for callers without a session of their own
  readonly sources: () => Snapshot['sources'] // the files of the configuration now in force
  readonly ownPort: () => number | undefined // where the gateway listens
}

/** What a server is reached by; nothing is opened yet. */
export const buildServer = (config: ServerConfig, building: Building): Upstream => {
  const { log, version, host, knownEras, ownPort, sessionsPerPrincipal } = building
  if (config.disabled) return unavailable(config.name, 'is disabled in the configuration')
  switch (config.kind) {
    case 'remote':
      return connectRemote(config, { log, identity: { name: 'dragoman', version }, ownPort, sessionsPerPrincipal })
    case 'process':
      return connectProcess(config, {
        log: log.child({ server: config.name }),
        identity: { name: 'dragoman', version },
        host,
        knownEras,
        sessionsPerPrincipal,
      })
    case 'builtin':
      return buildBuiltin(config, { ...building, log: log.child({ server: config.name }) })
    case 'embedded':
      return config.upstream
    case 'unavailable':
      return unavailable(config.name, `cannot be served: ${config.reason}`)
  }
}

const buildBuiltin = (
  config: BuiltinServer & { readonly name: string },
  { log, version, data, sources }: Omit<Building, 'host' | 'knownEras' | 'ownPort'>,
): Upstream => {
  switch (config.builtin) {
    case 'demo':
      return demo(version)
    case 'files':
      return files({ ...config, version, protectedPaths: () => [...(data ? [data] : []), ...(sources() ?? [])] })
    case 'memory':
      if (data === undefined)
        return unavailable(config.name, 'needs a data directory to keep things in; give --data DIR')
      // Only the thread loads the memory server's modules.
      return startInThread({
        name: 'memory',
        entry: new URL('../servers/memory/thread-entry', import.meta.url),
        data: { ...config, folder: join(data, 'memory'), version } satisfies Omit<MemoryOptions, 'log'>,
        log,
      })
  }
}

const unavailable = (server: string, why: string): Upstream => {
  const data = Json.of({ reason: 'unavailable', upstream: server })
  return {
    open: () => Promise.reject(new RpcFailure(rpcError('internal', `Server "${server}" ${why}`, data))),
    close: () => Promise.resolve(),
  }
}
