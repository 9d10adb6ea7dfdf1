import { startGateway } from '../../src/app/gateway.ts'
import {
  DEFAULT_LIMITS,
  DEFAULT_LISTEN,
  DEFAULT_TIMEOUT_MS,
  defaultRules,
  type ServerConfig,
  type TasksConfig,
  type WorkspaceRules,
} from '../../src/config/snapshot.ts'
import { SILENT } from '../../src/telemetry/log.ts'

/** A gateway in this process, on a port of its own, with one server: the one at the URL, or the demo server. */
export const startTestGateway = (
  upstream?: string,
  state?: Parameters<typeof startGateway>[1]['state'],
  tasks?: TasksConfig,
  rules?: Partial<WorkspaceRules>,
): Promise<{ url: string; close(): Promise<void> }> =>
  startGatewayBefore([upstream === undefined ? DEMO : remote(upstream)], state, tasks, rules)

/** A gateway in this process, on a port of its own, with these servers in one workspace. */
export const startGatewayBefore = async (
  servers: readonly ServerConfig[],
  state?: Parameters<typeof startGateway>[1]['state'],
  tasks?: TasksConfig,
  rules: Partial<WorkspaceRules> = {},
): Promise<{ url: string; close(): Promise<void> }> => {
  const names = servers.map(({ name }) => name)
  const snapshot = {
    listen: { ...DEFAULT_LISTEN, port: 0 },
    limits: { ...DEFAULT_LIMITS, shutdownMs: 500 },
    tasks,
    servers: new Map(servers.map(server => [server.name, server])),
    workspaces: new Map([['default', { name: 'default', servers: names, ...defaultRules(names.length), ...rules }]]),
    warnings: [],
  }
  const gateway = await startGateway(snapshot, { log: SILENT, state })
  return { url: gateway.url('default'), close: gateway.close }
}

const DEMO: ServerConfig = { name: 'server', disabled: false, kind: 'builtin', builtin: 'demo' }

/** A server that is started with `node` and these arguments. */
export const nodeServer = (name: string, args: readonly string[], env: Record<string, string> = {}): ServerConfig => ({
  name,
  disabled: false,
  kind: 'process',
  command: process.execPath,
  args: [...args],
  cwd: undefined,
  env,
  era: 'auto',
  timeoutMs: DEFAULT_TIMEOUT_MS,
})

const remote = (url: string): ServerConfig => ({
  name: 'server',
  disabled: false,
  kind: 'remote',
  url,
  type: 'auto',
  headers: {},
  era: 'auto',
  timeoutMs: DEFAULT_TIMEOUT_MS,
})
