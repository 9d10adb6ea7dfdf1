import type { ConfigDifference } from '../config/difference.ts'
import { ConfigError } from '../config/problems.ts'
import type { GatewayStatus } from '../protocol/status.ts'
import type { LogHistory } from '../telemetry/log-history.ts'
import type { AdminCall, AdminEndpoint } from './endpoints.ts'
import { streamLog } from './log-stream.ts'

/** What the program that runs the gateway lets its owner do. */
export interface GatewayControl {
  /** Reads the configuration file again and applies it; rejects with a ConfigError. */
  reload(): Promise<ConfigDifference>
  /** Closes the gateway and starts it again in the same process; rejects with a ConfigError, and then changes nothing. */
  restart(): Promise<void>
  stop(): void
  /** Uses a file from now on; absent if the gateway was started without one on purpose. */
  useFile?(file: string): Promise<ConfigDifference>
}

export interface GatewayEndpointsOptions {
  readonly status: () => GatewayStatus
  /** What a configuration file would change; undefined: the gateway's own file. */
  readonly plan: (file: string | undefined) => Promise<ConfigDifference>
  readonly control?: GatewayControl | undefined // absent: another program embeds the gateway
  readonly history?: LogHistory | undefined
}

const EMBEDDED = new ConfigError('the program that embeds this gateway controls it')
const FILE = { type: 'object', properties: { file: { type: 'string', description: 'a path; default: its own file' } } }

/** The endpoints for the gateway as a whole: its state, its log, its configuration and its process. */
export const createGatewayEndpoints = (options: GatewayEndpointsOptions): readonly AdminEndpoint[] => {
  const { status, plan, control, history } = options
  const owned = (): GatewayControl => {
    if (control) return control
    throw EMBEDDED
  }
  const planFile = async (call: AdminCall): Promise<ConfigDifference> =>
    plan((await call.json()).get('file')?.asString())

  return [
    {
      method: 'GET',
      path: '/admin/status',
      access: 'viewer',
      summary: 'The gateway, its servers, workspaces, sessions and calls',
      run: status,
    },
    {
      method: 'GET',
      path: '/admin/logs',
      access: 'owner',
      summary: 'The last lines of the log, one JSON object per line',
      parameters: {
        server: { type: 'string', description: 'only lines of this server' },
        follow: { type: 'string', description: 'given: later lines, too' },
      },
      media: 'application/x-ndjson',
      isAudited: true,
      run: ({ query, response }) => streamLog(query, response, history),
    },
    {
      method: 'POST',
      path: '/admin/plan',
      access: 'owner',
      summary: 'What a configuration file would change',
      body: FILE,
      run: planFile,
    },
    {
      method: 'POST',
      path: '/admin/reload',
      access: 'owner',
      summary: 'Reads the configuration file again and applies it',
      run: () => owned().reload(),
    },
    {
      method: 'POST',
      path: '/admin/restart',
      access: 'owner',
      summary: 'Closes the gateway and starts it again in the same process',
      run: async () => ({ done: await owned().restart() }),
    },
    {
      method: 'POST',
      path: '/admin/stop',
      access: 'owner',
      summary: 'Stops the process',
      run: () => ({ done: owned().stop() }),
    },
  ]
}
