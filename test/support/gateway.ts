import {
  DEFAULT_LIMITS,
  DEFAULT_LISTEN,
  DEFAULT_TIMEOUT_MS,
  plainRules,
  type ServerConfig,
} from '../../src/config/snapshot.ts'
import { startGateway } from '../../src/gateway.ts'
import { SILENT } from '../../src/telemetry/log.ts'

/** A gateway in this process, on a port of its own, with one server: the one at the URL, or the demo server. */
export const startTestGateway = async (upstream?: string): Promise<{ url: string; close(): Promise<void> }> => {
  const snapshot = {
    listen: { ...DEFAULT_LISTEN, port: 0 },
    limits: { ...DEFAULT_LIMITS, shutdownMs: 500 },
    servers: new Map([['server', upstream === undefined ? DEMO : remote(upstream)]]),
    workspaces: new Map([['default', { name: 'default', servers: ['server'], ...plainRules(1) }]]),
    warnings: [],
  }
  const gateway = await startGateway(snapshot, { log: SILENT })
  return { url: gateway.url('default'), close: gateway.close }
}

const DEMO: ServerConfig = { name: 'server', disabled: false, kind: 'builtin', builtin: 'demo' }

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
