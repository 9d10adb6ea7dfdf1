import { NEVER } from '../protocol/cancellation.ts'
import { type DefinitionChange, type QuarantinedTool, TOOL_RULES, type ToolFlag } from '../protocol/pins.ts'
import { TerminalDialog } from './client/ask-form.ts'
import { isInteractive, processTerminal, type Style, safeText, styleOf, type Terminal } from './client/terminal.ts'
import type { Run } from './command.ts'
import { daemonOf, requestDaemon } from './daemon-client.ts'
import { durationText } from './status.ts'
import { DATA_FLAG, type Flags, type FlagValues, flagHelp, JSON_FLAG, readLine, UsageError } from './usage.ts'

const FLAGS: Flags = {
  yes: { help: 'approve without a question' },
  ...DATA_FLAG,
  ...JSON_FLAG,
}

const HELP = `Usage: dragoman approve [SERVER[/TOOL]] [flags]

Shows the tools of servers with "pin": true that are in quarantine, because they are new or their definition has changed, and
what has changed. Approves them if you say so: from then on they are listed and can be called. Exit code 0: nothing is left in
quarantine of what was named; 1: something is. With --json and without --yes it only prints what is in quarantine.

${flagHelp(FLAGS)}
`

/** The answer of `GET /admin/quarantine`. */
interface QuarantineList {
  readonly servers: readonly { readonly name: string; readonly pinned: number; readonly fault?: string }[]
  readonly tools: readonly QuarantinedTool[]
}

/** Shows and approves tools in quarantine. */
export const run: Run = async (args, { terminal = processTerminal() }) => {
  const { flags, words } = readLine(args, FLAGS, 1)
  if (flags.help) {
    terminal.output.write(HELP)
    return 0
  }
  const daemon = await daemonOf(flags)
  const found = (await (await requestDaemon(daemon, '/admin/quarantine')).json()) as QuarantineList
  const tools = chooseTools(found, words[0])
  if (flags.json && !flags.yes) {
    terminal.output.write(`${JSON.stringify(tools, undefined, 2)}\n`)
    return tools.length > 0 ? 1 : 0
  }
  if (tools.length === 0) return writeNothing(found, flags, terminal)
  if (!flags.json) terminal.output.write(tools.map(tool => describeTool(tool, terminal)).join('\n'))
  const approved = flags.yes ? tools : await ask(tools, terminal)
  if (approved.length > 0) {
    const named = approved.map(({ server, name, hash }) => ({ server, name, hash }))
    await requestDaemon(daemon, '/admin/quarantine/approve', { tools: named })
  }
  if (flags.json) terminal.output.write(`${JSON.stringify({ approved }, undefined, 2)}\n`)
  else terminal.output.write(`\nApproved ${approved.length} of ${tools.length}.\n`)
  return approved.length === tools.length ? 0 : 1
}

/** The tools that a word names; a name of a tool may contain slashes, too. */
const chooseTools = ({ servers, tools }: QuarantineList, word: string | undefined): readonly QuarantinedTool[] => {
  if (word === undefined) return tools
  const server = servers.find(({ name }) => word === name || word.startsWith(`${name}/`))
  if (!server) {
    const names = servers.map(({ name }) => name).join(', ')
    throw new UsageError(
      `${JSON.stringify(word)} names no server with "pin": true; ${names === '' ? 'the configuration has none' : `there are ${names}`}`,
    )
  }
  const tool = word.slice(server.name.length + 1)
  return tools.filter(each => each.server === server.name && (tool === '' || each.name === tool))
}

const writeNothing = ({ servers }: QuarantineList, flags: FlagValues, { output, error }: Terminal): number => {
  if (flags.json) output.write(`${JSON.stringify({ approved: [] }, undefined, 2)}\n`)
  else if (servers.length === 0)
    output.write('No server is pinned. Write "pin": true in its entry of the configuration.\n')
  else output.write('No tool is in quarantine.\n')
  const faulty = servers.filter(({ fault }) => fault !== undefined)
  for (const { name, fault } of faulty) error.write(`${name}: the pins cannot be read: ${fault}\n`)
  return faulty.length > 0 ? 1 : 0
}

/** Asks for each tool; `a` approves the rest, too. */
const ask = async (tools: readonly QuarantinedTool[], terminal: Terminal): Promise<readonly QuarantinedTool[]> => {
  if (!isInteractive(terminal))
    throw new UsageError('standard input is not a terminal; give --yes to approve without a question')
  const approved: QuarantinedTool[] = []
  let isInterrupted = false
  const dialog = new TerminalDialog(terminal, () => {
    isInterrupted = true
  })
  try {
    for (const [at, tool] of tools.entries()) {
      const label = safeText(`${tool.server}/${tool.name}`)
      const answer = await dialog.ask(`Approve ${label}? [y/N/a = all/q = quit] `, NEVER)
      if (answer === undefined || isInterrupted || /^q/i.test(answer)) break
      if (/^a/i.test(answer)) return [...approved, ...tools.slice(at)]
      if (/^y/i.test(answer)) approved.push(tool)
    }
    return approved
  } finally {
    dialog.close()
  }
}

const LONGEST = 600 // characters of a value on the terminal

const describeTool = (tool: QuarantinedTool, { output, env }: Terminal): string => {
  const style = styleOf(output, env)
  const { server, name, isNew, since, principals, changes, definition, flags } = tool
  const age = durationText(Date.now() - since)
  const whose = principals.length > 0 ? ` (for ${principals.map(each => each || 'anonymous').join(', ')})` : ''
  return [
    `${style.bold(safeText(`${server}/${name}`))} ${isNew ? 'is new' : 'has changed'}, seen ${age} ago${safeText(whose)}\n`,
    ...flags.map(flag => flagLine(flag, style)),
    ...changes.flatMap(change => changeLines(change, style)),
    ...(isNew ? definitionLines(definition, style) : []),
    ...(definition === undefined ? ['  its definition is too large to be shown\n'] : []),
    ...(!isNew && definition !== undefined && changes.length === 0
      ? [
          '  the approved definition is not stored any more; this is the new one\n',
          ...definitionLines(definition, style),
        ]
      : []),
  ].join('')
}

const flagLine = ({ rule, at, detail }: ToolFlag, { red }: Style): string =>
  `  ${red('!')} ${rule}: ${TOOL_RULES[rule] ?? ''}, in ${safeText(at)}: ${safeText(detail)}\n`

const changeLines = ({ at, before, after }: DefinitionChange, { dim, red }: Style): string[] => [
  `  ${dim(safeText(at))}\n`,
  ...(before === undefined ? [] : prefixed(red('-'), before)),
  ...(after === undefined ? [] : prefixed('+', after)),
]

const definitionLines = (definition: string | undefined, { dim }: Style): string[] => {
  if (definition === undefined) return []
  const members = Object.entries(JSON.parse(definition) as Record<string, unknown>).filter(([name]) => name !== 'name')
  return members.flatMap(([name, value]) => [
    `  ${dim(name)}\n`,
    ...prefixed('+', typeof value === 'string' ? value : JSON.stringify(value)),
  ])
}

const prefixed = (sign: string, text: string): string[] => {
  const cut = text.length > LONGEST ? `${text.slice(0, LONGEST)}… (--json shows all)` : text
  return safeText(cut)
    .split('\n')
    .map(line => `  ${sign} ${line}\n`)
}
