import { flagText } from '../protocol/pins.ts'
import type { GatewayStatus, ReplicaStatus, ServerStatus, StateStatus, WorkspaceStatus } from '../protocol/status.ts'
import { isLargeList, largeListText, tokenText, trimmedText } from '../protocol/tool-size.ts'
import { safeLine } from './client/terminal.ts'
import type { Run } from './command.ts'
import { daemonOf, requestDaemon } from './daemon-client.ts'
import { DATA_FLAG, type Flags, flagHelp, JSON_FLAG, print, printJson, readFlags, table } from './usage.ts'

const FLAGS: Flags = {
  watch: { help: 'show it again every second, until interrupted' },
  ...DATA_FLAG,
  ...JSON_FLAG,
}

const HELP = `Usage: dragoman status [flags]

Shows the running daemon: its servers with their state and the number of their processes, its workspaces, sessions, calls, and
calls that wait for an answer of their client (parked), and tasks that it runs. Exit code 0: a daemon runs; 1: none does.

${flagHelp(FLAGS)}
`

const WATCH_MS = 1000
const CLEAR_SCREEN = '\u001b[H\u001b[2J'

/** Shows the state of the daemon, once or again and again. */
export const run: Run = async args => {
  const flags = readFlags(args, FLAGS)
  if (flags.help) return print(HELP)
  for (;;) {
    const daemon = await daemonOf(flags)
    const status = (await (await requestDaemon(daemon, '/admin/status')).json()) as GatewayStatus
    if (flags.watch && process.stdout.isTTY && !flags.json) print(CLEAR_SCREEN)
    if (flags.json) printJson(status)
    else print(describeStatus(status, Date.now()))
    if (!flags.watch || process.stdout.destroyed) return 0
    await new Promise(resolve => setTimeout(resolve, WATCH_MS))
  }
}

/** The state of a gateway as text. */
export const describeStatus = (status: GatewayStatus, now: number): string => {
  const { version, pid, origin, config, startedAt, memoryBytes, servers, workspaces } = status
  const { sessions, channels, streams, calls, parkedCalls, tasks = 0, state } = status
  return [
    `dragoman ${version} at ${origin}, process ${pid}, up ${durationText(now - startedAt)}, ${megabytes(memoryBytes)}\n`,
    `configuration: ${config ?? 'none'}\n`,
    `sessions: ${sessions}  SSE channels: ${channels}  streams: ${streams}  calls: ${calls}  parked: ${parkedCalls}  tasks: ${tasks}\n`,
    ...(state ? [storeText(state)] : []),
    '\n',
    table([
      ['SERVER', 'STATE', 'SINCE', 'REVISION', 'TOOLS', 'TOKENS', 'PROCESSES', 'REASON'],
      ...servers.map(server => serverRow(server, now)),
    ]),
    '\n',
    table([['WORKSPACE', 'SERVERS', 'TOOLS', 'LISTED', 'TOKENS', 'URL'], ...workspaces.map(workspaceRow)]),
    largeLists(workspaces),
    quarantines(servers),
    flagged(servers),
    ...(state && state.replicas.length > 1 ? ['\n', replicaTable(state.replicas)] : []),
  ].join('')
}

const storeText = ({ engine, state, reason, claims, journalBytes, forwards }: StateStatus): string =>
  `store: ${engine}, ${state}${reason === undefined ? '' : ` (${reason})`}  claims: ${claims}  journal: ${megabytes(journalBytes)}  forwards: ${forwards}\n`

const replicaTable = (replicas: readonly ReplicaStatus[]): string =>
  table([
    ['REPLICA', 'ADDRESS', 'LABELS'],
    ...replicas.map(({ name, address, labels, isSelf }) => [
      isSelf ? `${name} (this one)` : name,
      address || '-',
      labels.join(', ') || '-',
    ]),
  ])

const workspaceRow = ({ name, url, servers, toolList }: WorkspaceStatus): string[] => [
  name,
  String(servers.length),
  String(toolList?.tools ?? '-'),
  String(toolList?.listedTools ?? '-'),
  toolList ? tokenText(toolList.listed.tokens) : '-',
  url,
]

/** What trimming saves, and advice on workspaces whose lists are too large for models. */
const largeLists = (workspaces: readonly WorkspaceStatus[]): string =>
  workspaces
    .flatMap(({ name, toolList, servers }) => {
      if (!toolList) return []
      const saved = trimmedText(name, toolList)
      return [
        ...(saved === undefined ? [] : [`\n${saved}\n`]),
        ...(isLargeList(toolList) ? [`\n${largeListText(name, toolList)}\n${largestText(servers)}`] : []),
      ]
    })
    .join('')

const MOST_LARGEST = 5

const largestText = (servers: readonly ServerStatus[]): string => {
  const tools = servers
    .flatMap(server => server.largestTools?.map(tool => ({ ...tool, name: `${server.name}/${tool.name}` })) ?? [])
    .sort((a, b) => b.tokens - a.tokens)
  const shown = tools.slice(0, MOST_LARGEST).map(({ name, tokens }) => `${safeLine(name)} ${tokenText(tokens)}`)
  return shown.length === 0 ? '' : `its largest tools: ${shown.join(', ')}\n`
}

/** Servers with tools that wait for an approval. */
const quarantines = (servers: readonly ServerStatus[]): string =>
  servers
    .flatMap(({ name, pins }) =>
      pins && pins.quarantined > 0
        ? `\n${name}: ${countText(pins.quarantined)} in quarantine; see "dragoman approve ${name}"\n`
        : [],
    )
    .join('')

const MOST_FLAGS = 10

/** Tools whose definitions break a rule of docs/tool-safety.md. */
const flagged = (servers: readonly ServerStatus[]): string => {
  const flags = servers.flatMap(server => server.flags ?? [])
  const lines = flags.slice(0, MOST_FLAGS).map(flag => `warning: ${safeLine(flagText(flag))}\n`)
  const rest = flags.length > MOST_FLAGS ? `and ${flags.length - MOST_FLAGS} more warnings; --json lists all\n` : ''
  return flags.length === 0 ? '' : `\n${lines.join('')}${rest}`
}

const countText = (tools: number): string => (tools === 1 ? '1 tool is' : `${tools} tools are`)

const serverRow = (status: ServerStatus, now: number): string[] => {
  const { name, state, since, revision, tools, toolSize, processes, reason, retryAt } = status
  return [
    name,
    state,
    since === undefined ? '-' : durationText(now - since),
    revision ?? '-',
    String(tools ?? '-'),
    toolSize ? tokenText(toolSize.tokens) : '-',
    String(processes ?? '-'),
    [reason ?? '', retryAt === undefined ? '' : `(next try in ${durationText(retryAt - now)})`].join(' ').trim(),
  ]
}

const megabytes = (bytes: number): string => `${Math.round(bytes / 1024 / 1024)} MB`

const UNITS = [
  ['d', 86_400],
  ['h', 3600],
  ['m', 60],
] as const

/** A duration with at most two units: `2d 3h`, `5m 10s`, `8s`. */
export const durationText = (ms: number): string => {
  const seconds = Math.max(0, Math.round(ms / 1000))
  const parts: string[] = []
  let rest = seconds
  for (const [unit, size] of UNITS) {
    if (rest >= size) parts.push(`${Math.floor(rest / size)}${unit}`)
    rest %= size
  }
  return [...parts, ...(rest > 0 || seconds === 0 ? [`${rest}s`] : [])].slice(0, 2).join(' ')
}
