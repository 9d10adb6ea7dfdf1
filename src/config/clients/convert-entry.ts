import { adaptEntry } from '../foreign-keys.ts'
import { serverSchema } from '../schema.ts'
import { isRawObject, type RawObject } from '../server-entries.ts'

/** Where an entry comes from. */
interface EntrySource {
  readonly client: string
  readonly folder?: string | undefined // of the project whose file holds it
}

/** An entry in the format of this gateway, and what was lost of it. */
export interface ConvertedEntry {
  readonly entry: RawObject
  readonly lost: readonly string[]
}

const KNOWN_KEYS: ReadonlySet<string> = new Set(Object.keys(serverSchema.shape))
const SECOND = 1000

/** Converts an entry of another client; undefined if it is none. */
export const convertEntry = (raw: unknown, { client, folder }: EntrySource): ConvertedEntry | undefined => {
  if (!isRawObject(raw)) return undefined
  const special = Object.hasOwn(SPECIAL, client) ? SPECIAL[client] : undefined
  const { entry, warnings } = adaptEntry(mapTexts(special ? special(raw) : raw, text => withFolder(text, folder)))
  const members = Object.entries(isRawObject(entry) ? entry : {})
  const unknown = members.filter(([key]) => !KNOWN_KEYS.has(key)).map(([key]) => key)
  return {
    entry: Object.fromEntries(members.filter(([key, value]) => KNOWN_KEYS.has(key) && !isDefault(key, value))),
    lost: [...warnings, ...(unknown.length > 0 ? [`not taken over: ${unknown.join(', ')}`] : [])],
  }
}

/** Values that say nothing. */
const isDefault = (key: string, value: unknown): boolean =>
  (key === 'disabled' && value === false) ||
  (typeof value === 'object' && value !== null && Object.keys(value).length === 0)

/** A project's file means the project's folder, which the file of the user cannot know. */
const withFolder = (text: string, folder: string | undefined): string =>
  folder === undefined ? text : text.replaceAll('${workspaceFolder}', folder)

const mapTexts = (value: unknown, change: (text: string) => string): unknown => {
  if (typeof value === 'string') return change(value)
  if (Array.isArray(value)) return value.map(each => mapTexts(each, change))
  if (!isRawObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, mapTexts(each, change)]))
}

type Convert = (raw: RawObject) => RawObject

const textsIn = (value: unknown): Record<string, string> =>
  isRawObject(value) ? Object.fromEntries(Object.entries(value).map(([key, text]) => [key, String(text)])) : {}

/** Codex names variables instead of referring to them, and counts seconds. */
const fromCodex: Convert = raw => {
  const { env_vars, http_headers, env_http_headers, bearer_token_env_var, tool_timeout_sec, ...rest } = raw
  const { startup_timeout_sec: _, startup_timeout_ms: __, required: ___, ...kept } = rest
  const names = (Array.isArray(env_vars) ? env_vars : []).map(each =>
    isRawObject(each) ? String(each.name) : String(each),
  )
  const passed = Object.fromEntries(names.map(name => [name, `\${${name}}`]))
  const fromVariables = Object.entries(textsIn(env_http_headers)).map(([header, name]) => [header, `\${${name}}`])
  const headers = {
    ...textsIn(http_headers),
    ...Object.fromEntries(fromVariables),
    ...(typeof bearer_token_env_var === 'string' && { Authorization: `Bearer \${${bearer_token_env_var}}` }),
  }
  const env = { ...passed, ...textsIn(raw.env) }
  return {
    ...kept,
    ...(Object.keys(env).length > 0 && { env }),
    ...(Object.keys(headers).length > 0 && { headers }),
    ...(typeof tool_timeout_sec === 'number' && { timeout: Math.round(tool_timeout_sec * SECOND) }),
  }
}

/** Gemini CLI also fills in `$NAME`, and its `url` without a type is the SSE transport, which is detected here. */
const fromGemini: Convert = raw => mapTexts(raw, text => text.replace(/\$([A-Za-z_]\w*)/g, '${$1}')) as RawObject

/** Cline counts the timeout in seconds. */
const fromCline: Convert = raw => (typeof raw.timeout === 'number' ? { ...raw, timeout: raw.timeout * SECOND } : raw)

/** Zed kept the command in an object, and says where an entry comes from. */
const fromZed: Convert = ({ source: _, settings: __, ...raw }) => {
  if (!isRawObject(raw.command)) return raw
  const { path, args, env } = raw.command
  return { ...raw, command: path, args, env }
}

const SPECIAL: Readonly<Record<string, Convert>> = {
  codex: fromCodex,
  gemini: fromGemini,
  cline: fromCline,
  zed: fromZed,
}
