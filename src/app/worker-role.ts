import type { ClusterConfig, ServerConfig, Snapshot } from '../config/snapshot.ts'
import { findMain, MAIN_LABEL } from '../fronts/cluster/main-process.ts'
import type { GatewayStatus, ServerStatus } from '../protocol/status.ts'
import type { StateStore } from '../stores/state/state-store.ts'
import type { Log } from '../telemetry/log.ts'
import { mergeActivities } from '../telemetry/merge-activity.ts'
import type { CallActivity } from '../telemetry/server-calls.ts'
import type { MainLink } from '../workers/main-link.ts'
import type { WorkerLoad } from '../workers/messages.ts'
import type { WorkerProcesses } from '../workers/worker-processes.ts'
import type { ServerControl } from './runtime.ts'

/** The part of this process in a gateway of several: it has workers, or a main process, or is alone. */
export interface WorkerRole {
  readonly workers?: WorkerProcesses | undefined
  readonly main?: MainLink | undefined
}

const LOOPBACK = { host: '127.0.0.1', port: 0 }
const NO_SHARED_STATE =
  'no workers are started: they share sessions through the data directory, which cannot be used; this process serves alone'

/** The role that this process can have: without a store that others can open, it serves alone. */
export const roleOf = (given: WorkerRole, store: StateStore | undefined, log: Log): WorkerRole => {
  if (!given.workers || store?.health().state === 'ok') return given
  log.error({ reason: store?.health().reason }, NO_SHARED_STATE)
  return {}
}

/** How the processes of one gateway reach each other; undefined if there is only one. */
export const workerCluster = ({ workers, main }: WorkerRole, { cluster }: Snapshot): ClusterConfig | undefined => {
  if (!workers && !main) return undefined
  return { listen: LOOPBACK, labels: [...(cluster?.labels ?? []), ...(workers ? [MAIN_LABEL] : [])] }
}

/**
 * Whether a server runs in the main process only. A process must not run once for each worker, and neither must a server
 * that keeps state in its memory.
 */
const needsMain = (config: ServerConfig): boolean =>
  config.kind === 'process' || (config.kind === 'builtin' && config.builtin !== 'files')

/** The entry of a server as a worker builds it: what runs in the main process is reached there. */
export const placeServer = (config: ServerConfig, isWorker: boolean): ServerConfig =>
  isWorker && needsMain(config) ? { ...config, on: MAIN_LABEL } : config

/**
 * Where the sessions of a workspace live. Legacy clients share the process of a stdio server, so their sessions are where
 * that runs; other sessions live in the worker that a client reaches.
 */
export const createSessionPlace =
  ({ main }: WorkerRole, { members }: Pick<StateStore, 'members'>, current: () => Snapshot) =>
  (workspace: string): string | undefined => {
    if (!main) return undefined
    const { workspaces, servers } = current()
    const hasProcess = workspaces.get(workspace)?.servers.some(name => servers.get(name)?.kind === 'process')
    return hasProcess ? findMain(members)?.replica : undefined
  }

/** What the owner does with a server, in all workers. */
export const controlAll = (control: ServerControl, workers: WorkerProcesses | undefined): ServerControl => {
  if (!workers) return control
  return {
    ...control,
    setStopped: (server, isStopped, drained) => {
      control.setStopped(server, isStopped, drained)
      workers.order({ action: 'switch', server, isStopped })
    },
    restart: (server, drained) => {
      control.restart(server, drained)
      workers.order({ action: 'restart', server })
    },
    probe: server => {
      workers.order({ action: 'probe', server })
      return control.probe(server)
    },
  }
}

/** The figures of all processes. */
export const addLoads = (status: GatewayStatus, loads: readonly WorkerLoad[]): GatewayStatus => {
  if (loads.length === 0) return status
  const sum = (of: (load: WorkerLoad) => number): number => loads.reduce((total, load) => total + of(load), 0)
  return {
    ...status,
    memoryBytes: status.memoryBytes + sum(({ memoryBytes }) => memoryBytes),
    sessions: status.sessions + sum(({ sessions }) => sessions),
    channels: status.channels + sum(({ channels }) => channels),
    streams: status.streams + sum(({ streams }) => streams),
    calls: status.calls + sum(({ calls }) => calls),
    parkedCalls: status.parkedCalls + sum(({ parkedCalls }) => parkedCalls),
    tasks: (status.tasks ?? 0) + sum(({ tasks }) => tasks),
    servers: status.servers.map(server => {
      const all = [server.activity, ...loads.map(({ activity }) => activity.get(server.name))]
      const activity = mergeActivities(all.flatMap(each => each ?? []))
      return activity ? { ...server, activity } : server
    }),
  }
}

/** The calls of all servers of a worker. The history is for the console only, and a server may have many. */
export const activitiesOf = (servers: readonly ServerStatus[], isWatched: boolean): ReadonlyMap<string, CallActivity> =>
  new Map(
    servers.flatMap(({ name, activity }) =>
      activity ? [[name, isWatched ? activity : { ...activity, history: undefined }] as const] : [],
    ),
  )

/** What a worker is asked: for its metrics, and for its recordings. */
export const METRICS = 'metrics'
export const RECORDINGS = 'recordings'
