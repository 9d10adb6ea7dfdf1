import { loadConfig } from '../config/load.ts'
import { ConfigError } from '../config/problems.ts'
import type { Snapshot } from '../config/snapshot.ts'
import { type FlaggedTool, flagText } from '../protocol/pins.ts'
import type { CheckReport, ServerReport, WorkspaceReport } from '../protocol/status.ts'
import { isLargeList, largeListText, tokenText, trimmedText } from '../protocol/tool-size.ts'
import { SILENT } from '../telemetry/log.ts'
import { safeLine } from './client/terminal.ts'
import type { Inspect, Run } from './command.ts'
import {
  CONFIG_FLAG,
  configFileOf,
  DATA_FLAG,
  dataDirectoryOf,
  type Flags,
  type FlagValues,
  flagHelp,
  JSON_FLAG,
  namedFile,
  print,
  printJson,
  readLine,
  table,
  textOf,
  UsageError,
} from './usage.ts'

const FLAGS: Flags = {
  ...CONFIG_FLAG,
  ...DATA_FLAG,
  timeout: { value: 'SECONDS', help: 'time for each server to answer (default: 30)' },
  offline: { help: 'check the file only, connect to no server' },
  ...JSON_FLAG,
}

const HELP = `Usage: dragoman check [FILE] [flags]

Checks a configuration (default: the file that "dragoman serve" would find), connects to every server once, and shows
what each workspace contains. Calls no tool and prints no secrets. Exit code 0: no problem found; 1: at least one problem.

${flagHelp(FLAGS)}
`

/** The result as --json prints it. */
interface CheckResult extends Partial<CheckReport> {
  readonly ok: boolean
  readonly file: string
  readonly problem?: string
  readonly warnings: readonly string[]
}

/** Checks a configuration and connects to every server it names. */
export const run: Run = async (args, { inspect, version }) => {
  const { flags, words } = readLine(args, FLAGS, 1)
  if (flags.help) return print(HELP)
  const file = namedFile(flags, words[0]) ?? (await configFileOf(flags))
  if (file === undefined) throw new UsageError('found no configuration file; name the one to check')
  const data = dataDirectoryOf(flags)
  const timeoutMs = timeoutOf(flags)
  const loaded = await load(file)
  const result =
    typeof loaded === 'string'
      ? { ok: false, file, problem: loaded, warnings: [] }
      : await checkLoaded(file, loaded, flags.offline ? undefined : inspect, { version, data, timeoutMs })
  const code = result.ok ? 0 : 1
  return flags.json ? printJson(result, code) : print(describe(result), code)
}

const LONGEST_TIMEOUT_S = 3600

const timeoutOf = (flags: FlagValues): number | undefined => {
  const text = textOf(flags, 'timeout')
  if (text === undefined) return undefined
  const seconds = /^\d+(\.\d+)?$/.test(text) ? Number(text) : 0
  if (seconds > 0 && seconds <= LONGEST_TIMEOUT_S) return seconds * 1000
  throw new UsageError(`--timeout: expected seconds, more than 0 and at most ${LONGEST_TIMEOUT_S}`)
}

const load = async (file: string): Promise<Snapshot | string> => {
  try {
    return await loadConfig({ file, env: process.env })
  } catch (error) {
    if (error instanceof ConfigError) return error.message
    throw error
  }
}

const checkLoaded = async (
  file: string,
  snapshot: Snapshot,
  inspect: Inspect | undefined,
  options: { version: string; data: string; timeoutMs: number | undefined },
): Promise<CheckResult> => {
  const { warnings, servers } = snapshot
  if (!inspect) {
    const unavailable = [...servers.values()].flatMap(({ name, ...server }) =>
      server.kind === 'unavailable' && !server.disabled ? `${name} cannot be served: ${server.reason}` : [],
    )
    return { ok: unavailable.length === 0, file, warnings: [...warnings, ...unavailable] }
  }
  const progress = showProgress(servers.size)
  const found = await inspect(snapshot, { ...options, log: SILENT, met: progress.met })
  progress.end()
  const isOk =
    found.servers.every(isHealthy) &&
    found.workspaces.every(({ unknown, shadowed }) => unknown.length + shadowed.length === 0)
  return { ok: isOk, file, warnings, ...found }
}

const isHealthy = ({ state }: ServerReport): boolean => ['ready', 'untried', 'disabled'].includes(state)

/** On a terminal, one line that is overwritten. */
const showProgress = (total: number) => {
  let met = 0
  const draw = (): void => {
    if (process.stderr.isTTY) process.stderr.write(`\r\u001b[Kconnecting: ${met} of ${total} servers have answered`)
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

const describe = ({ ok, file, problem, warnings, servers, workspaces, flags = [] }: CheckResult): string => {
  if (problem !== undefined) return `${problem}\n`
  const parts = [
    ...(warnings.length > 0 ? [`${warnings.map(warning => `warning: ${warning}`).join('\n')}\n`] : []),
    ...(servers ? [table([SERVER_COLUMNS, ...servers.map(serverRow)]), flaws(servers), printedLines(servers)] : []),
    ...(workspaces ? [table([WORKSPACE_COLUMNS, ...workspaces.map(workspaceRow)]), nameProblems(workspaces)] : []),
    largeLists(servers, workspaces),
    flagLines(flags),
    ok ? `${file} is valid.\n` : `${file} has problems${unhealthyText(servers)}.\n`,
  ]
  return parts.filter(part => part !== '').join('\n')
}

const unhealthyText = (servers: readonly ServerReport[] = []): string => {
  const unhealthy = servers.filter(server => !isHealthy(server))
  return unhealthy.length > 0 ? `: ${unhealthy.map(({ name, state }) => `${name} is ${state}`).join(', ')}` : ''
}

const SERVER_COLUMNS = ['SERVER', 'STATE', 'REVISION', 'TRANSPORT', 'TOOLS', 'TOKENS', 'MS', 'REASON']

const serverRow = ({ name, state, revision, transport, tools, toolSize, ms, reason }: ServerReport): string[] => [
  name,
  state,
  revision ?? '-',
  transport,
  String(tools ?? '-'),
  toolSize ? tokenText(toolSize.tokens) : '-',
  String(ms ?? '-'),
  reason ?? '',
]

const WORKSPACE_COLUMNS = [
  'WORKSPACE',
  'NAMES',
  'SERVERS',
  'TOOLS',
  'LISTED',
  'TOKENS',
  'PROMPTS',
  'RESOURCES',
  'HIDDEN',
]

const workspaceRow = ({ toolList, ...report }: WorkspaceReport): string[] => [
  report.name,
  report.names,
  String(report.servers.length),
  String(report.tools.length),
  String(toolList.listedTools),
  tokenText(toolList.listed.tokens),
  String(report.prompts.length),
  String(report.resources),
  hiddenText(report.hidden),
]

const MOST_LARGE = 5

/** What trimming saves, and advice on lists that are too large for models, with the tools that cost most. */
const largeLists = (servers: readonly ServerReport[] = [], workspaces: readonly WorkspaceReport[] = []): string => {
  const saved = workspaces.flatMap(({ name, toolList }) => trimmedText(name, toolList) ?? [])
  const large = workspaces.filter(({ toolList }) => isLargeList(toolList))
  if (large.length === 0) return saved.map(line => `${line}\n`).join('')
  const tools = servers
    .flatMap(({ name, toolSizes = [] }) => toolSizes.map(tool => ({ ...tool, name: `${name}/${tool.name}` })))
    .sort((a, b) => b.tokens - a.tokens)
    .slice(0, MOST_LARGE)
  const largest = `largest tools: ${tools.map(({ name, tokens }) => `${name} (${tokenText(tokens)})`).join(', ')}`
  return [...saved, ...large.map(({ name, toolList }) => largeListText(name, toolList)), largest, ''].join('\n')
}

const MOST_FLAGS = 20

/** Tools whose definitions break a rule of docs/tool-safety.md; a warning, because rules find honest tools, too. */
const flagLines = (flags: readonly FlaggedTool[]): string =>
  [
    ...flags.slice(0, MOST_FLAGS).map(flag => `warning: ${safeLine(flagText(flag))}\n`),
    ...(flags.length > MOST_FLAGS ? [`and ${flags.length - MOST_FLAGS} more warnings; --json lists all\n`] : []),
  ].join('')

const hiddenText = ({ policy, overlays }: WorkspaceReport['hidden']): string =>
  [...(policy ? [`${policy} by policy`] : []), ...(overlays ? [`${overlays} by overlays`] : [])].join(', ') || '-'

const flaws = (servers: readonly ServerReport[]): string =>
  servers.flatMap(({ name, flaws = [] }) => flaws.map(flaw => `${name}: ${flaw}\n`)).join('')

/** What servers that are down printed on stderr, which often says why. */
const printedLines = (servers: readonly ServerReport[]): string =>
  servers
    .flatMap(({ name, stderr = [] }) =>
      stderr.length > 0 ? [`${name} printed on stderr:`, ...stderr.map(line => `  ${line}`), ''] : [],
    )
    .join('\n')

/** Names that collide, that no server has, or that cannot be called. */
const nameProblems = (workspaces: readonly WorkspaceReport[]): string =>
  workspaces
    .flatMap(({ name: workspace, collisions, unknown, shadowed }) => [
      ...collisions.map(
        ({ name, shown }) =>
          `${workspace}: several servers have ${name}; shown as ${shown.map(({ server, as }) => `${as} (${server})`).join(', ')}\n`,
      ),
      ...unknown.map(tool => `${workspace}: the configuration changes ${tool}, but its server has no such tool\n`),
      ...shadowed.map(
        ({ tool, by, as }) => `${workspace}: ${tool} cannot be called: ${by} is already shown as ${as}\n`,
      ),
    ])
    .join('')
