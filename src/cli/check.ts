import { dataDirectory } from '../config/data-dir.ts'
import { loadConfig } from '../config/load.ts'
import { ConfigError } from '../config/problems.ts'
import type { Snapshot } from '../config/snapshot.ts'
import type { Inspection, ServerReport, WorkspaceReport } from '../protocol/inspection.ts'
import { SILENT } from '../telemetry/log.ts'
import type { Inspect, Run } from './command.ts'
import { table } from './table.ts'
import { type Flags, flagHelp, readLine, textOf, UsageError } from './usage.ts'

const FLAGS: Flags = {
  data: { value: 'DIR', help: 'where state rests (DRAGOMAN_DATA, or the place of the platform)' },
  offline: { help: 'look at the file only, connect to nothing' },
  json: { help: 'print JSON' },
}

const HELP = `Usage: dragoman check FILE [flags]

Checks a configuration, connects to every server in it once, and says what each workspace shows. No tool is called, and
no secret is printed. Exit code 0: all is well; 1: something is wrong.

${flagHelp(FLAGS)}
`

/** What was found, as --json prints it. */
interface Findings extends Partial<Inspection> {
  readonly ok: boolean
  readonly file: string
  readonly problem?: string
  readonly warnings: readonly string[]
}

/** Looks at a configuration and at everything it names. */
export const run: Run = async (args, { inspect, version }) => {
  const { flags, words } = readLine(args, FLAGS)
  if (flags.help) return print(HELP, 0)
  const [file, extra] = words
  if (file === undefined) throw new UsageError('expected the configuration file to check')
  if (extra !== undefined) throw new UsageError(`Unexpected argument '${extra}'`)
  const data = dataDirectory({ flag: textOf(flags, 'data'), env: process.env })
  const loaded = await load(file)
  const found =
    typeof loaded === 'string'
      ? { ok: false, file, problem: loaded, warnings: [] }
      : await look(file, loaded, flags.offline ? undefined : inspect, { version, data })
  return print(flags.json ? `${JSON.stringify(found, undefined, 2)}\n` : written(found), found.ok ? 0 : 1)
}

const load = async (file: string): Promise<Snapshot | string> => {
  try {
    return await loadConfig({ file, env: process.env })
  } catch (error) {
    if (error instanceof ConfigError) return error.message
    throw error
  }
}

const look = async (
  file: string,
  snapshot: Snapshot,
  inspect: Inspect | undefined,
  around: { version: string; data: string },
): Promise<Findings> => {
  const { warnings, servers } = snapshot
  if (!inspect) {
    const lacking = [...servers.values()].flatMap(({ name, ...server }) =>
      server.kind === 'unavailable' && !server.disabled ? `${name} cannot be served: ${server.reason}` : [],
    )
    return { ok: lacking.length === 0, file, warnings: [...warnings, ...lacking] }
  }
  const progress = showProgress(servers.size)
  const found = await inspect(snapshot, { ...around, log: SILENT, met: progress.met })
  progress.end()
  const isWell =
    found.servers.every(isFine) &&
    found.workspaces.every(({ unknown, shadowed }) => unknown.length + shadowed.length === 0)
  return { ok: isWell, file, warnings, ...found }
}

const isFine = ({ state }: ServerReport): boolean => ['ready', 'untried', 'disabled'].includes(state)

/** A line that is written over and over, where somebody watches. */
const showProgress = (all: number) => {
  let met = 0
  const draw = (): void => {
    if (process.stderr.isTTY) process.stderr.write(`\r\u001b[Kconnecting: ${met} of ${all} servers have answered`)
  }
  draw()
  return {
    met: (): void => {
      met++
      draw()
    },
    end: (): void => void (process.stderr.isTTY && process.stderr.write('\r\u001b[K')),
  }
}

const written = ({ ok, file, problem, warnings, servers, workspaces }: Findings): string => {
  if (problem !== undefined) return `${problem}\n`
  const parts = [
    ...(warnings.length > 0 ? [`${warnings.map(warning => `warning: ${warning}`).join('\n')}\n`] : []),
    ...(servers ? [table([SERVER_COLUMNS, ...servers.map(serverRow)]), flaws(servers)] : []),
    ...(workspaces ? [table([WORKSPACE_COLUMNS, ...workspaces.map(workspaceRow)]), remarks(workspaces)] : []),
    ok ? `${file} is fine.\n` : `${file} has something wrong${whereText(servers)}.\n`,
  ]
  return parts.filter(part => part !== '').join('\n')
}

/** Which servers are the matter; the rest is said above. */
const whereText = (servers: readonly ServerReport[] = []): string => {
  const wrong = servers.filter(server => !isFine(server))
  return wrong.length > 0 ? `: ${wrong.map(({ name, state }) => `${name} is ${state}`).join(', ')}` : ''
}

const SERVER_COLUMNS = ['SERVER', 'STATE', 'REVISION', 'TRANSPORT', 'TOOLS', 'MS', 'REASON']

const serverRow = ({ name, state, revision, transport, tools, ms, reason }: ServerReport): string[] => [
  name,
  state,
  revision ?? '-',
  transport,
  String(tools ?? '-'),
  String(ms ?? '-'),
  reason ?? '',
]

const WORKSPACE_COLUMNS = ['WORKSPACE', 'NAMES', 'SERVERS', 'TOOLS', 'PROMPTS', 'RESOURCES', 'HIDDEN']

const workspaceRow = ({ name, names, servers, tools, prompts, resources, hidden }: WorkspaceReport): string[] => [
  name,
  names,
  String(servers.length),
  String(tools.length),
  String(prompts.length),
  String(resources),
  hiddenText(hidden),
]

const hiddenText = ({ policy, overlays }: WorkspaceReport['hidden']): string =>
  [...(policy ? [`${policy} by policy`] : []), ...(overlays ? [`${overlays} by overlays`] : [])].join(', ') || '-'

const flaws = (servers: readonly ServerReport[]): string =>
  servers.flatMap(({ name, flaws = [] }) => flaws.map(flaw => `${name}: ${flaw}\n`)).join('')

/** What a person should know of names. */
const remarks = (workspaces: readonly WorkspaceReport[]): string =>
  workspaces
    .flatMap(({ name: workspace, collisions, unknown, shadowed }) => [
      ...collisions.map(
        ({ name, shown }) =>
          `${workspace}: several servers have ${name}: ${shown.map(({ server, as }) => `${as} is ${server}'s`).join(', ')}\n`,
      ),
      ...unknown.map(tool => `${workspace}: the configuration changes ${tool}, but its server has no such tool\n`),
      ...shadowed.map(
        ({ tool, by, as }) => `${workspace}: ${tool} cannot be called: ${by} is shown as ${as} already\n`,
      ),
    ])
    .join('')

const print = (text: string, code: number): number => {
  process.stdout.write(text)
  return code
}
