import {
  type Cell,
  type CellResult,
  type CheckOutcome,
  CLIENT_CHECKS,
  type ClientCheck,
  completeOutcomes,
  HIDDEN_CHECKS,
} from './cell.ts'
import { type ClientTransport, type ClientWorkspace, type Gateway, startClientGateway } from './gateway.ts'
import { install } from './install.ts'
import { runCommand, tailOf } from './process.ts'
import { goProgram, javaProgram, type Program, pythonProgram, rustProgram } from './recipes.ts'
import { lazyStation } from './station.ts'

/** A client program with one version of its SDK. */
interface ClientPeer {
  readonly peer: string
  readonly version: string
  readonly program: Program
  /** Checks that its SDK has no means for. */
  readonly lacks: readonly ClientCheck[]
  /** The eras it can be told to speak; the first is the one it speaks unasked. */
  readonly modes: readonly ClientMode[]
  readonly transports: readonly ClientTransport[]
  /** It also finds and calls tools that a budget hides. */
  readonly findsHidden?: true
  readonly isQuick: boolean
  readonly note?: string
}

/** What is passed as `--mode`, and whether the client then speaks 2026-07-28. */
interface ClientMode {
  readonly name: string
  readonly isModern: boolean
}

const LEGACY: ClientMode = { name: 'legacy', isModern: false }
const AUTO: ClientMode = { name: 'auto', isModern: true }
const ONLY_LEGACY = [LEGACY]
const HTTP: readonly ClientTransport[] = ['streamable', 'sse']
const ANY: readonly ClientTransport[] = ['streamable', 'sse', 'stdio']
const JAVA_LACKS: readonly ClientCheck[] = ['cancellation', 'no-warnings']

const java = (version: string, isQuick: boolean): ClientPeer => ({
  peer: 'Java SDK',
  version,
  program: javaProgram(version),
  lacks: JAVA_LACKS,
  modes: ONLY_LEGACY,
  transports: HTTP,
  isQuick,
})

/** Every client that is tried. */
const PEERS: readonly ClientPeer[] = [
  java('1.1.5', true),
  java('2.0.1', true),
  java('2.1.0', false),
  {
    peer: 'Python mcp',
    version: '1.8.1',
    program: pythonProgram('mcp-1.8', 'client_v1'),
    lacks: ['structured', 'progress', 'elicitation-accept', 'elicitation-decline'],
    modes: ONLY_LEGACY,
    transports: HTTP,
    isQuick: true,
    note: 'reads only the first page of a list',
  },
  {
    peer: 'Python mcp',
    version: '1.30.0',
    program: pythonProgram('mcp-1.30', 'client_v1'),
    lacks: [],
    modes: ONLY_LEGACY,
    transports: ANY,
    findsHidden: true,
    isQuick: true,
  },
  {
    peer: 'Python mcp',
    version: '2.3.0',
    program: pythonProgram('mcp-2.3', 'client_v2'),
    lacks: [],
    modes: [AUTO, LEGACY],
    transports: ANY,
    findsHidden: true,
    isQuick: true,
  },
  {
    peer: 'FastMCP',
    version: '2.14.7',
    program: pythonProgram('fastmcp-2.14', 'client_fastmcp'),
    lacks: ['cancellation'],
    modes: ONLY_LEGACY,
    transports: HTTP,
    isQuick: false,
    note: 'reads only the first page of a list',
  },
  {
    peer: 'Go SDK',
    version: '1.8.0',
    program: goProgram(),
    lacks: ['no-warnings'],
    modes: [AUTO, { name: '2025-11-25', isModern: false }],
    transports: ANY,
    findsHidden: true,
    isQuick: true,
  },
  {
    peer: 'rmcp',
    version: '3.8.0',
    program: rustProgram(),
    lacks: ['no-warnings'],
    modes: [AUTO, LEGACY],
    transports: ['streamable', 'stdio'],
    isQuick: false,
  },
]

const RUN_MS = 240_000

/** HTTP+SSE belongs to the older revisions: a client of 2026-07-28 does not use it. */
const isPossible = (transport: ClientTransport, { isModern }: ClientMode): boolean => transport !== 'sse' || !isModern

/** The tests leave out what differs least: a workspace of modern servers by the rarer transports. */
const isQuickRoute = (transport: ClientTransport, workspace: ClientWorkspace): boolean =>
  transport === 'streamable' || workspace === 'legacy'

/** Tools are hidden from every transport in the same way. */
const workspacesFor = ({ findsHidden }: ClientPeer, transport: ClientTransport): readonly ClientWorkspace[] =>
  findsHidden && transport === 'streamable' ? ['legacy', 'modern', 'budgeted'] : ['legacy', 'modern']

/** One cell for every client, mode, transport and workspace, of all peers or of one; all share one gateway. */
export const clientCells = (only?: string): { readonly cells: Cell[]; stop(): Promise<void> } => {
  const station = lazyStation(async () => {
    const gateway = await startClientGateway()
    return { value: gateway, stop: gateway.stop }
  })
  const cells = PEERS.filter(({ peer }) => only === undefined || peer === only).flatMap(peer =>
    peer.modes.flatMap(mode =>
      peer.transports
        .filter(transport => isPossible(transport, mode))
        .flatMap(transport =>
          workspacesFor(peer, transport).map(workspace => clientCell(station.get, peer, mode, transport, workspace)),
        ),
    ),
  )
  return { cells, stop: station.stop }
}

const clientCell = (
  gateway: () => Promise<Gateway>,
  client: ClientPeer,
  mode: ClientMode,
  transport: ClientTransport,
  workspace: ClientWorkspace,
): Cell => {
  const { peer, version, program, lacks, isQuick, note } = client
  const era = mode.isModern ? 'modern' : 'legacy'
  const isHidden = workspace === 'budgeted'
  const all: readonly ClientCheck[] = isHidden ? HIDDEN_CHECKS : CLIENT_CHECKS
  const checks = all.filter(check => !lacks.includes(check) && !(mode.isModern && check === 'ping'))
  return {
    side: 'client',
    peer,
    version,
    route: `${ROUTES[transport]}, ${era} client, ${isHidden ? 'hidden tools' : `${workspace} servers`}`,
    checks,
    isQuick: isQuick && isQuickRoute(transport, workspace),
    ...(note !== undefined && { note }),
    run: async (): Promise<CellResult> => {
      const installed = await install(program.recipe)
      if (installed.kind === 'skipped') return installed
      const target = (await gateway()).target(workspace, transport)
      const args = ['--transport', transport, '--target', target, '--mode', mode.name]
      if (isHidden) args.push('--checks', 'hidden')
      const result = await runCommand(program.start(installed.folder, args), RUN_MS)
      const outcomes = completeOutcomes(checks, result.stdout.split('\n').flatMap(readOutcome), tailOf(result))
      return { kind: 'ran', revision: revisionOf(outcomes), outcomes }
    },
  }
}

const ROUTES: Record<ClientTransport, string> = { streamable: 'Streamable HTTP', sse: 'HTTP+SSE', stdio: 'stdio' }

const readOutcome = (line: string): CheckOutcome[] => {
  try {
    const { check, ok, detail } = JSON.parse(line) as CheckOutcome
    return [{ check, ok, detail }]
  } catch {
    return [] // SDKs print other lines too
  }
}

/** `connect` reports the revision. */
const revisionOf = (outcomes: readonly CheckOutcome[]): string => {
  const connect = outcomes.find(({ check }) => check === 'connect')
  return connect?.ok ? connect.detail : 'none'
}
