import type { ConfigObject } from '../../../admin/api/config.ts'
import type { ServerStatus } from '../../../protocol/status.ts'
import { valueAt } from '../../form/form-value.ts'
import { isObject } from '../../mcp/messages.ts'
import { isEqual, objectAt } from './edits.ts'
import { shownText } from './hidden.ts'

// The servers, workspaces and policies of a configuration as rows of tables: pure functions.

/** How an entry differs from the file. */
export type EntryMark = 'new' | 'changed' | undefined

export interface EntryRow {
  readonly name: string
  readonly path: readonly string[]
  readonly entry: ConfigObject
  readonly mark: EntryMark
}

export interface ServerRow extends EntryRow {
  readonly kind: 'remote' | 'process' | 'builtin' | 'unknown'
  readonly target: string // the address or the command line
  readonly isDisabled: boolean
  readonly status?: ServerStatus | undefined
}

const rowsAt = (root: ConfigObject, value: ConfigObject, section: string): readonly EntryRow[] =>
  Object.entries(objectAt(value, [section])).map(([name, entry]) => {
    const path = [section, name]
    const before = valueAt(root, path)
    const mark = before === undefined ? 'new' : isEqual(before, entry) ? undefined : 'changed'
    return { name, path, entry: isObject(entry) ? entry : {}, mark }
  })

/** The servers under both keys that files use, in the order of the file. */
export const serverRows = (
  root: ConfigObject,
  value: ConfigObject,
  status: readonly ServerStatus[],
): readonly ServerRow[] =>
  ['mcpServers', 'servers']
    .flatMap(section => rowsAt(root, value, section))
    .map(row => ({
      ...row,
      kind: serverKind(row.entry),
      target: targetOf(row.entry),
      isDisabled: row.entry.disabled === true || row.entry.enabled === false,
      status: status.find(({ name }) => name === row.name),
    }))

export const workspaceRows = (root: ConfigObject, value: ConfigObject): readonly EntryRow[] =>
  rowsAt(root, value, 'workspaces')
export const policyRows = (root: ConfigObject, value: ConfigObject): readonly EntryRow[] =>
  rowsAt(root, value, 'policies')

/** Where a new server belongs: a file with `servers` alone is one of VS Code. */
export const pathOfNewServer = (value: ConfigObject, name: string): readonly string[] => [
  value.mcpServers === undefined && value.servers !== undefined ? 'servers' : 'mcpServers',
  name,
]

const serverKind = (entry: ConfigObject): ServerRow['kind'] => {
  if (entry.command !== undefined) return 'process'
  if (entry.builtin !== undefined) return 'builtin'
  return addressKey(entry) === undefined ? 'unknown' : 'remote'
}

const addressKey = (entry: ConfigObject): string | undefined =>
  ['httpUrl', 'url', 'serverUrl'].find(key => entry[key] !== undefined)

/** One line that says what an entry reaches; secrets are dots. */
export const targetOf = (entry: ConfigObject): string => {
  if (typeof entry.command === 'string') {
    const args = Array.isArray(entry.args) ? entry.args.map(String) : []
    return shownText([entry.command, ...args].map(word => (/\s/.test(word) ? `"${word}"` : word)).join(' '))
  }
  if (entry.builtin !== undefined) return `built-in ${String(entry.builtin)}`
  const key = addressKey(entry)
  return key === undefined ? '' : shownText(String(entry[key]))
}

/** The keys of a server that matter for its kind: first those that say what it is, then the options. */
export const serverKeys = (kind: ServerRow['kind'], known: readonly string[], entry: ConfigObject) => {
  const main = MAIN_KEYS[kind].filter(key => key !== 'httpUrl' || entry.httpUrl !== undefined)
  const shown = main.filter(key => key !== 'url' || entry.httpUrl === undefined)
  const unfit = new Set(
    [...UNFIT_KEYS[kind], ...HANDLED, 'httpUrl'].filter(key => entry[key] === undefined || HANDLED.includes(key)),
  )
  const rest = known.filter(key => !shown.includes(key) && !unfit.has(key))
  const common = COMMON.filter(key => rest.includes(key))
  return { main: shown, options: [...common, ...rest.filter(key => !common.includes(key))] }
}

const HANDLED = ['disabled']
const COMMON = ['timeout', 'concurrency', 'enabledTools', 'disabledTools', 'oauth', 'era', 'share', 'on']
const OF_PROCESS = ['command', 'args', 'env', 'envFile', 'cwd', 'share', 'limits']
const OF_REMOTE = ['url', 'headers', 'oauth', 'allowCrossOriginEndpoint', 'allowCrossOriginRedirect', 'type']
const OF_BUILTIN = ['builtin', 'root', 'showHidden', 'memory']

const MAIN_KEYS: Readonly<Record<ServerRow['kind'], readonly string[]>> = {
  remote: ['httpUrl', 'url', 'type', 'headers'],
  process: ['command', 'args', 'env', 'cwd'],
  builtin: ['builtin', 'root', 'showHidden', 'memory'],
  unknown: ['url', 'command', 'args', 'builtin'],
}
const UNFIT_KEYS: Readonly<Record<ServerRow['kind'], readonly string[]>> = {
  remote: [...OF_PROCESS, ...OF_BUILTIN],
  process: [...OF_REMOTE, ...OF_BUILTIN],
  builtin: [...OF_PROCESS, ...OF_REMOTE, 'credentials', 'pool', 'era'],
  unknown: [],
}

/** The names in a workspace: all servers that are not disabled, or a list. */
export const membersOf = (entry: ConfigObject): '*' | readonly string[] =>
  Array.isArray(entry.servers) ? entry.servers.map(String) : '*'
