import { type Asked, textOf } from '../support/client.ts'
import { type Cell, type CellResult, completeOutcomes } from './cell.ts'
import { startGateway } from './gateway.ts'
import { install } from './install.ts'
import { type Program, pythonProgram } from './recipes.ts'
import { type CheckBody, runChecks } from './run-checks.ts'
import { connectSdk, revisionOf, SDK_CLIENTS, type SdkClient } from './sdk-clients.ts'
import { startServerProcess } from './server-process.ts'
import { type LazyStation, lazyStation, type Station } from './station.ts'

type ServerTransport = 'stdio' | 'http'

/** A server of both eras that elicits, logs and lists roots, as far as its SDK can in each era. */
interface ServerPeer {
  readonly peer: string
  readonly version: string
  readonly program: Program
}

const PEERS: readonly ServerPeer[] = [
  { peer: 'FastMCP', version: '4.1.2', program: pythonProgram('fastmcp-4.1', 'server_fastmcp') },
  { peer: 'Python mcp', version: '2.3.0', program: pythonProgram('mcp-2.3', 'server_mcp') },
]

const ROUTES: Record<ServerTransport, string> = { stdio: 'stdio', http: 'Streamable HTTP' }
const LINES = ['first', 'second', 'third']
const ROOT = 'file:///home/ada'
const NOTE = 'to a client of 2026-07-28 these SDKs put questions only as `input_required` results'

/** `ctx.elicit` and `list_roots` need a back-channel, which these SDKs have only before 2026-07-28. */
const ONLY_LEGACY: ReadonlySet<string> = new Set(['elicit-live', 'decline-live', 'roots'])
const CHECKS = ['connect', 'list-tools', 'call', 'elicit', 'decline', 'elicit-live', 'decline-live', 'log', 'roots']

/** One cell for every server, transport and client; the cells of one server and transport share a gateway. */
export const pythonServerCells = (): { readonly cells: Cell[]; stop(): Promise<void> } => {
  const stations: LazyStation<string>[] = []
  const cells = PEERS.flatMap(({ peer, version, program }) =>
    (['stdio', 'http'] as const).flatMap(transport => {
      const station = lazyStation(folder => startBehindGateway(program, transport, folder))
      stations.push(station)
      return SDK_CLIENTS.map(client => {
        const isModern = client === 'SDK v2 modern'
        const checks = CHECKS.filter(check => !isModern || !ONLY_LEGACY.has(check))
        return {
          side: 'server',
          peer,
          version,
          route: `${ROUTES[transport]}, TypeScript ${client} client`,
          checks,
          isQuick: true,
          ...(isModern && { note: NOTE }),
          run: async () => {
            const installed = await install(program.recipe)
            if (installed.kind === 'skipped') return installed
            return runClient(client, await station.get(installed.folder), checks)
          },
        } satisfies Cell
      })
    }),
  )
  return {
    cells,
    stop: async () => {
      for (const station of stations) await station.stop()
    },
  }
}

/** Starts the server and the gateway before it. */
const startBehindGateway = async (
  program: Program,
  transport: ServerTransport,
  folder: string,
): Promise<Station<string>> => {
  const server =
    transport === 'http' ? await startServerProcess(port => program.start(folder, ['http', String(port)])) : undefined
  const entry = server ? { url: `http://127.0.0.1:${server.port}/mcp` } : program.start(folder, ['stdio'])
  const gateway = await startGateway(() => ({
    mcpServers: { server: entry },
    workspaces: { default: { servers: ['server'] } },
  }))
  return {
    value: gateway.url('default'),
    stop: async () => {
      await gateway.stop()
      await server?.stop()
    },
  }
}

const runClient = async (kind: SdkClient, url: string, checks: readonly string[]): Promise<CellResult> => {
  let action = 'accept'
  const answer = ({ method }: Asked): Record<string, unknown> => {
    if (method === 'roots/list') return { roots: [{ uri: ROOT, name: 'Home' }] }
    return action === 'accept' ? { action, content: { name: 'Ada' } } : { action }
  }
  const client = await connectSdk(kind, { url, answer })
  const call = async (name: string, given = {}): Promise<string> => {
    const meta = client.era === 'modern' ? { 'io.modelcontextprotocol/logLevel': 'debug' } : undefined
    return textOf(await client.call(name, given, meta && { meta }))
  }
  const ask = (tool: string, answered: string, wanted: string) => async (): Promise<void> => {
    action = answered
    expectText(await call(tool), wanted)
  }
  const bodies: Record<string, CheckBody> = {
    connect: async () => undefined,
    'list-tools': async () =>
      expectText((await client.toolNames()).sort().join(), 'add,greet,introduce,log_lines,show_roots'),
    call: async () => expectText(await call('add', { a: 20, b: 22 }), '42'),
    elicit: ask('introduce', 'accept', 'Hello, Ada!'),
    decline: ask('introduce', 'decline', 'No name: decline'),
    'elicit-live': ask('greet', 'accept', 'Hello, Ada!'),
    'decline-live': ask('greet', 'decline', 'No name: decline'),
    log: async () => {
      await call('log_lines')
      for (const line of LINES) {
        const { data } = (await client.notices.next('notifications/message')).params
        expectText(typeof data === 'object' && data ? String(Reflect.get(data, 'msg')) : String(data), line)
      }
    },
    roots: async () => expectText(await call('show_roots'), ROOT),
  }
  try {
    const outcomes = await runChecks(Object.fromEntries(checks.map(check => [check, bodies[check] ?? missing])))
    return { kind: 'ran', revision: revisionOf(client), outcomes: completeOutcomes(checks, outcomes, '') }
  } finally {
    await client.close()
  }
}

const missing: CheckBody = () => Promise.reject(new Error('this check has no body'))

const expectText = (text: string, wanted: string): void => {
  if (text !== wanted) throw new Error(`expected "${wanted}", got "${text.slice(0, 300)}"`)
}
