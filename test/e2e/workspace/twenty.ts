import { randomUUID } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type Gateway, startGateway } from '../../../src/app/gateway.ts'
import { DEFAULT_LIMITS, DEFAULT_LISTEN, defaultRules, type ServerConfig } from '../../../src/config/snapshot.ts'
import { SILENT } from '../../../src/telemetry/log.ts'
import { serverOf } from '../../matrix/cells.ts'
import { pipeServer } from '../../matrix/pipe-server.ts'
import { type MatrixServer, remoteConfig } from '../../matrix/server.ts'
import { sessionServer } from '../../matrix/session-server.ts'
import { modern, send } from '../../support/raw.ts'
import { startRelay } from '../../support/relay.ts'
import { start as startSdkV1 } from '../../support/servers/sdk-v1-server.ts'
import { start as startSdkV1Sse } from '../../support/servers/sdk-v1-sse.ts'
import { start as startSdkV2 } from '../../support/servers/sdk-v2-server.ts'

/** A server that can be killed while it works. */
export interface Victim {
  readonly config: ServerConfig
  readonly tool: string // answers at once
  readonly given?: object // the arguments it needs
  readonly slowTool: string // answers nobody for a while
  /** Settles when it is gone. */
  kill(): Promise<void>
  /** Starts it again at the same address; undefined where the gateway starts it. */
  readonly revive: (() => Promise<void>) | undefined
  close(): Promise<void>
}

const TEXT = { content: [{ type: 'text', text: 'here' }] }
const never = new Promise<Record<string, unknown>>(() => {})

const furnish = ({ tools }: MatrixServer): void => {
  tools.set('quick', () => TEXT)
  tools.set('slow', () => never)
}

/** A server made by hand, at the far end of a wire that can be cut. */
const remote = async (name: string, start: () => Promise<MatrixServer>, forget = () => {}): Promise<Victim> => {
  const server = await start()
  furnish(server)
  const relay = await startRelay((server.config as { url: string }).url)
  return {
    config: remoteConfig(relay.url, name),
    tool: 'quick',
    slowTool: 'slow',
    kill: async () => {
      await relay.stop()
      forget()
    },
    revive: relay.start,
    close: async () => {
      await relay.stop().catch(() => {})
      await server.close()
    },
  }
}

/** One with sessions, which it does not remember when it comes back. */
const session = async (name: string, revision: '2024-11-05' | '2025-03-26' | '2025-06-18' | '2025-11-25') => {
  const server = await sessionServer(revision)
  return remote(
    name,
    async () => server,
    () => (server.sessions as Set<string>).clear(),
  )
}

const pipe = async (name: string, revision: '2025-06-18' | '2026-07-28'): Promise<Victim> => {
  const server = await pipeServer(revision)
  furnish(server)
  return {
    config: { ...server.config, name },
    tool: 'quick',
    slowTool: 'slow',
    kill: async () => {
      for (const process of server.processes) process.destroy()
    },
    revive: undefined,
    close: server.close,
  }
}

/** A program on one of the SDKs, killed and started again in earnest. */
const sdk = async (name: string, start: (port?: number) => Promise<{ url: string; close(): Promise<void> }>) => {
  let server = await start()
  const { port } = new URL(server.url)
  return {
    config: remoteConfig(server.url, name),
    tool: 'test_simple_text',
    slowTool: 'wait',
    kill: () => server.close(),
    revive: async () => {
      server = await start(Number(port))
    },
    close: () => server.close(),
  }
}

const program = (name: string, args: readonly string[], tool: string, slowTool: string): Victim => {
  const run = randomUUID()
  return {
    config: {
      name,
      disabled: false,
      kind: 'process',
      command: process.execPath,
      args,
      env: { TEST_RUN: run },
      cwd: undefined,
      era: 'auto',
      timeoutMs: 20_000,
    },
    tool,
    slowTool,
    kill: async () => {
      for (const pid of processesWith(run)) process.kill(pid, 'SIGKILL')
    },
    revive: undefined,
    close: async () => {},
  }
}

const processesWith = (text: string): number[] =>
  readdirSync('/proc')
    .filter(isNumber)
    .filter(pid => environmentOf(pid).includes(text))
    .map(Number)

const isNumber = (name: string): boolean => /^\d+$/.test(name)

const environmentOf = (pid: string): string => {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1')
  } catch {
    return ''
  }
}

const fixture = (path: string): string => fileURLToPath(new URL(`../../support/servers/${path}`, import.meta.url))
const sdkProgram = (name: string, file: string): Victim =>
  program(name, ['--import', import.meta.resolve('tsx'), fixture(`${file}.ts`)], 'test_simple_text', 'wait')

const builtin = (config: ServerConfig, tool: string, given = {}): Victim => ({
  config,
  tool,
  given,
  slowTool: tool,
  kill: async () => {},
  revive: undefined,
  close: async () => {},
})

/** Twenty servers of every transport and era. */
export const startTwenty = (): Promise<readonly Victim[]> =>
  Promise.all([
    ...['modern-1', 'modern-2', 'modern-3'].map(name => remote(name, serverOf('2026-07-28').start)),
    session('streamable-1', '2024-11-05'),
    session('streamable-2', '2025-03-26'),
    session('streamable-3', '2025-06-18'),
    session('streamable-4', '2025-11-25'),
    session('streamable-5', '2025-11-25'),
    remote('sse-1', serverOf('2024-11-05', 'http-sse').start),
    remote('sse-2', serverOf('2025-11-25', 'http-sse').start),
    pipe('pipe-legacy', '2025-06-18'),
    pipe('pipe-modern', '2026-07-28'),
    sdk('sdk-v1', startSdkV1),
    sdk('sdk-v1-sse', startSdkV1Sse),
    sdk('sdk-v2', startSdkV2),
    sdkProgram('sdk-v1-pipe', 'sdk-v1-stdio'),
    sdkProgram('sdk-v2-pipe', 'sdk-v2-stdio'),
    program('small', [fixture('stdio/server.mjs'), '{}'], 'pid', 'wait'),
    builtin({ name: 'demo', disabled: false, kind: 'builtin', builtin: 'demo' }, 'example-ping'),
    builtin({ name: 'files', disabled: false, kind: 'builtin', builtin: 'files', root: fixture('stdio') }, 'list_dir', {
      relative_path: '.',
    }),
  ])

/** A gateway with these servers, and workspaces of them. */
export const startWith = (
  configs: readonly ServerConfig[],
  workspaces: Readonly<Record<string, readonly string[]>>,
): Promise<Gateway> =>
  startGateway(
    {
      listen: { ...DEFAULT_LISTEN, port: 0 },
      limits: { ...DEFAULT_LIMITS, shutdownMs: 200 },
      servers: new Map(configs.map(config => [config.name, config])),
      workspaces: new Map(
        Object.entries(workspaces).map(([name, servers]) => [name, { name, servers, ...defaultRules(servers.length) }]),
      ),
      policies: new Map(),
      warnings: [],
    },
    { log: SILENT },
  )

interface Listed {
  readonly tools: { readonly name: string }[]
  readonly _meta?: Record<string, unknown>
}

/** The tools of a workspace, as a modern client lists them. */
export const list = async (gateway: Gateway, workspace: string): Promise<Listed> => {
  const { json } = await send(gateway.url(workspace), modern(1, 'tools/list'))
  return json.result as unknown as Listed
}

/** The servers that have a tool in the list. */
export const shownIn = ({ tools }: Listed): Set<string> =>
  new Set(tools.map(({ name }) => name.slice(0, name.indexOf('__'))))
