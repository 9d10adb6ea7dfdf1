import { findDaemon } from '../../config/daemon-file.ts'
import { allowListChanges } from '../../config/edit/allow-list.ts'
import { parseEdited } from '../../config/edit/json-edit.ts'
import { loadConfig } from '../../config/load.ts'
import { suggest } from '../../config/problems.ts'
import type { Snapshot, WorkspaceConfig } from '../../config/snapshot.ts'
import type { Policy } from '../../protocol/policy.ts'
import { type SizedTool, tokenText } from '../../protocol/tool-size.ts'
import { SILENT } from '../../telemetry/log.ts'
import { isInteractive, processTerminal, safeLine } from '../client/terminal.ts'
import type { CommandContext } from '../command.ts'
import { requestDaemon } from '../daemon-client.ts'
import { applyChanges, EDIT_FLAGS, openForEdit } from '../edit-config.ts'
import {
  dataDirectoryOf,
  type Flags,
  type FlagValues,
  flagHelp,
  print,
  readLine,
  textOf,
  UsageError,
} from '../usage.ts'
import { chooseInTerminal } from './choose-in-terminal.ts'

const FLAGS: Flags = {
  pick: { help: 'choose tools, and write them into the configuration file' },
  workspace: { value: 'NAME', help: 'the workspace that shows them (default: default)' },
  ...EDIT_FLAGS,
}

const HELP = `Usage: dragoman tools --pick [flags]

Shows the tools of a workspace with their sizes, lets you choose some, and writes them as the list of allowed tools into the
configuration file. Comments in the file stay. A tool that its servers add later is not shown until you pick it.

${flagHelp(FLAGS)}
`

interface PickableTool extends SizedTool {
  readonly server: string
}

/** Lets the user choose the tools of a workspace. */
export const pickTools = async (args: readonly string[], context: CommandContext): Promise<number> => {
  const { terminal = processTerminal() } = context
  const { flags } = readLine(args, FLAGS, 0)
  if (flags.help) return print(HELP)
  if (!isInteractive(terminal)) throw new UsageError('--pick needs a terminal')
  const config = await openForEdit(flags)
  if (config.text === undefined) throw new UsageError(`there is no file ${config.file}; "dragoman add" makes one`)
  const snapshot = await loadConfig({ file: config.file, env: process.env })
  const workspace = workspaceOf(snapshot, textOf(flags, 'workspace') ?? 'default')
  const root = parseEdited(config.file, config.written ?? config.text)
  allowListChanges(root, snapshot, workspace.name, []) // says now why it cannot be changed
  const all = await listTools(workspace, snapshot, config.file, flags, context)
  const tools = all.filter(tool => isPickable(workspace.policy, tool))
  if (tools.length === 0) throw new UsageError(`no server of the workspace "${workspace.name}" listed a tool`)
  const choices = tools.map(({ server, name, tokens }) => ({
    label: safeLine(`${server}/${name}`),
    note: `${tokenText(tokens)} tokens`,
    weight: tokens,
  }))
  const before = new Set(tools.flatMap((tool, at) => (isAllowed(workspace.policy, tool) ? at : [])))
  const chosen = await chooseInTerminal(terminal, { choices, chosen: before }, picked => {
    const tokens = picked.reduce((sum, { weight }) => sum + weight, 0)
    return `${workspace.name}: ${picked.length} of ${tools.length} tools, ${tokenText(tokens)} tokens`
  })
  if (!chosen) return print('Nothing was changed.\n', 1)
  const picked = tools.flatMap(({ server, name }, at) => (chosen.has(at) ? { server, tool: name } : []))
  const changes = allowListChanges(root, snapshot, workspace.name, picked)
  return applyChanges(config, changes, flags, `Workspace "${workspace.name}" shows ${picked.length} tools in`)
}

const workspaceOf = ({ workspaces }: Snapshot, name: string): WorkspaceConfig => {
  const found = workspaces.get(name)
  if (found) return found
  throw new UsageError(
    `there is no workspace ${JSON.stringify(name)}; ${suggest(name, workspaces.keys(), 'there is none')}`,
  )
}

/** The tools of each server, whatever policies say: of the daemon if it serves this file, else of the servers themselves. */
const listTools = async (
  { servers }: WorkspaceConfig,
  snapshot: Snapshot,
  file: string,
  flags: FlagValues,
  { inspect, version }: CommandContext,
): Promise<readonly PickableTool[]> => {
  const data = dataDirectoryOf(flags)
  const daemon = await findDaemon(data)
  if (daemon?.config === file) {
    const lists = servers.map(async server => {
      const path = `/admin/servers/${encodeURIComponent(server)}/tool-sizes`
      const { tools } = (await (await requestDaemon(daemon, path)).json()) as { tools: readonly SizedTool[] }
      return tools.map(tool => ({ ...tool, server }))
    })
    return (await Promise.all(lists)).flatMap(byName)
  }
  const wanted = new Map([...snapshot.servers].filter(([name]) => servers.includes(name)))
  const report = await inspect({ ...snapshot, servers: wanted, workspaces: new Map() }, { log: SILENT, version, data })
  const toolsOf = (server: string) => report.servers.find(({ name }) => name === server)?.toolSizes ?? []
  return servers.flatMap(server => byName(toolsOf(server).map(tool => ({ ...tool, server }))))
}

const byName = (tools: readonly PickableTool[]): readonly PickableTool[] =>
  [...tools].sort((a, b) => (a.name < b.name ? -1 : 1))

const matches = (patterns: readonly string[], text: string): boolean =>
  patterns.some(pattern => new RegExp(`^${pattern.split('*').map(escapeRegExp).join('.*')}$`, 's').test(text))

const escapeRegExp = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')

/** False for a tool that the list of allowed tools cannot bring back. */
const isPickable = ({ allow, deny, also }: Policy, tool: PickableTool): boolean => {
  const path = `${tool.server}/${tool.name}`
  const isServer = !allow.servers || matches(allow.servers, tool.server)
  const isDenied = matches(deny.tools ?? [], path) || matches(deny.servers ?? [], tool.server)
  return isServer && !isDenied && (!also || (isPickable(also, tool) && isAllowed(also, tool)))
}

const isAllowed = ({ allow }: Policy, { server, name }: PickableTool): boolean =>
  !allow.tools || matches(allow.tools, `${server}/${name}`)
