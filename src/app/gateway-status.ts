import type { GatewayStatus, StateStatus, WorkspaceStatus } from '../protocol/status.ts'
import type { Runtime } from './runtime.ts'

interface GatewayStatusOptions {
  readonly version: string
  readonly origin: () => string
  readonly runtime: Pick<
    Runtime,
    'snapshot' | 'serverStates' | 'serverState' | 'toolSizes' | 'parkedCalls' | 'runningTasks'
  >
  readonly load: () => Pick<GatewayStatus, 'sessions' | 'channels' | 'calls'>
  readonly streams: () => number
  readonly state: () => StateStatus
}

/** Describes a gateway and its workspaces, for operators. */
export const createGatewayStatus = (options: GatewayStatusOptions) => {
  const { version, origin, runtime, load, streams, state } = options
  const startedAt = Date.now()

  const url = (workspace = 'default'): string =>
    workspace === 'default' ? `${origin()}/mcp` : `${origin()}/mcp/${encodeURIComponent(workspace)}`

  // To measure tools takes longer than all else here, so that is done when it is read: a start prints names and URLs only.
  const workspaces = (): readonly WorkspaceStatus[] =>
    [...runtime.snapshot.workspaces.values()].map(config => ({
      name: config.name,
      url: url(config.name),
      get servers() {
        return config.servers.map(runtime.serverState)
      },
      get toolList() {
        return runtime.toolSizes.ofWorkspace(config)
      },
    }))

  /** What is open in this process. */
  const loadHere = () => ({
    memoryBytes: process.memoryUsage.rss(),
    ...load(),
    streams: streams(),
    parkedCalls: runtime.parkedCalls(),
    tasks: runtime.runningTasks(),
  })

  const status = (): GatewayStatus => ({
    version,
    pid: process.pid,
    origin: origin(),
    config: runtime.snapshot.file,
    startedAt,
    ...loadHere(),
    servers: runtime.serverStates(),
    workspaces: workspaces(),
    state: state(),
  })

  return { url, workspaces, status, load: loadHere }
}
