import { stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { checkConfig, DEFAULT_SERVERS } from '../check.ts'
import { type ConfigSearch, userConfigFiles } from '../find-config.ts'
import { parseJsonText } from '../json-text.ts'
import { ConfigError, formatProblems, placeProblems } from '../problems.ts'
import { BUILT_IN } from '../schema.ts'
import { isRawObject, type RawObject, SERVER_KEYS } from '../server-entries.ts'
import { homeOf, withEditorVariables, workspaceFolderOf } from '../variables.ts'
import { editJson, parseEdited } from './json-edit.ts'
import type { JsonChange } from './json-members.ts'
import { readForEdit, writeEdited } from './safe-write.ts'

/** The file that `add`, `remove` and `import` change: the named one, the `dragoman.json` here, or that of the user. */
export const fileToEdit = async (named: string | undefined, search: ConfigSearch): Promise<string> => {
  if (named !== undefined) return resolve(named)
  const ofUser = userConfigFiles(search)
  const candidates = [join(search.folder ?? process.cwd(), 'dragoman.json'), ...ofUser]
  for (const file of candidates) if (await exists(file)) return file
  return ofUser[0] ?? 'dragoman.json'
}

const exists = (file: string): Promise<boolean> =>
  stat(file).then(
    () => true,
    () => false,
  )

/** The servers of a configuration file, before it is edited. */
export interface EditableConfig {
  readonly file: string
  readonly text: string | undefined // undefined: there is no file yet
  readonly written?: string // the text that changes start from, if it is another
  readonly servers: RawObject // by name
  /** The path of an entry, for a change. */
  pathOf(name: string): readonly string[]
}

/** Reads a configuration file for a change; throws a ConfigError if it is not JSON. */
export const openConfig = async (file: string): Promise<EditableConfig> => {
  const text = await readForEdit(file)
  const root = (text === undefined || text.trim() === '' ? {} : parseEdited(file, text)) as RawObject
  if (root.mcpServers === BUILT_IN) return openBuiltIn(file, text ?? '')
  const groups = SERVER_KEYS.map(key => ({ key, servers: isRawObject(root[key]) ? root[key] : {} }))
  // A file with `servers` alone is one of VS Code.
  const home = root.mcpServers === undefined && root.servers !== undefined ? 'servers' : 'mcpServers'
  return {
    file,
    text,
    servers: Object.assign({}, ...groups.map(({ servers }) => servers)),
    pathOf: name => [groups.find(({ servers }) => Object.hasOwn(servers, name))?.key ?? home, name],
  }
}

/** A file that asks for the built-in servers by one word: another one can only be added if they are written out. */
const openBuiltIn = (file: string, text: string): EditableConfig => ({
  file,
  text,
  written: writeOutServers(file, text),
  servers: DEFAULT_SERVERS.mcpServers,
  pathOf: name => ['mcpServers', name],
})

/** The text with the entries of the built-in servers in place of the word. */
export const writeOutServers = (file: string, text: string): string =>
  editJson(file, text, [{ path: ['mcpServers'], value: DEFAULT_SERVERS.mcpServers }])

/** The text of the file after changes, and the warnings of a check; a ConfigError says why it would be invalid. */
export const previewChange = (
  { file, text, written = text }: EditableConfig,
  changes: readonly JsonChange[],
): { readonly text: string; readonly warnings: readonly string[] } => {
  const edited = editJson(file, written, changes)
  const parsed = parseJsonText(edited)
  const env = withEditorVariables(process.env, workspaceFolderOf(file), homeOf(process.env))
  const { snapshot, problems } = checkConfig(parsed, { env })
  if (problems.length === 0) return { text: edited, warnings: snapshot.warnings }
  const placed = placeProblems(problems, parsed.placeOf)
  throw new ConfigError(`${formatProblems(`after this change ${file}`, placed)}\nIt was not changed.`, placed)
}

/** Writes the changed text; returns the path of the backup. */
export const saveConfig = ({ file, text }: EditableConfig, edited: string): Promise<string | undefined> =>
  writeEdited(file, text, edited, 'last')
