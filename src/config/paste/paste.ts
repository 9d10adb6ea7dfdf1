import { convertEntry } from '../clients/convert-entry.ts'
import { parseToml } from '../edit/toml-edit.ts'
import { JsonTextError, parseJsonText } from '../json-text.ts'
import { isGateway } from '../own-entries.ts'
import { ConfigError } from '../problems.ts'
import { isRawObject, type RawObject } from '../server-entries.ts'
import { freeName, nameOfCommand, nameOfUrl } from '../server-names.ts'
import { linkedConfig } from './install-link.ts'
import { readPastedCommand } from './paste-command.ts'

/** A server that a pasted text describes, before its entry is converted; `json` is an entry that is still text. */
export interface FoundServer {
  readonly name?: string | undefined
  readonly entry?: RawObject
  readonly json?: string
  readonly notes: readonly string[]
}

/** One server as the configuration has it. */
interface ReadServer {
  readonly name: string
  readonly entry: RawObject
  readonly notes: readonly string[]
}

/** What a pasted text is, and the servers in it. */
export interface PasteReading {
  readonly kind: 'url' | 'command' | 'json' | 'toml' | 'link' | 'nothing'
  readonly servers: readonly ReadServer[]
  readonly reason?: string | undefined // why there are none
}

interface PasteContext {
  readonly taken: (name: string) => boolean // the names of servers
  readonly port: number // of the gateway
}

/** Keys under which clients keep servers, and the client whose special keys the entries may have. */
const GROUPS: Readonly<Record<string, string>> = {
  mcpServers: '',
  servers: '',
  mcp_servers: 'codex',
  context_servers: 'zed',
  mcp: 'opencode',
}
const ADDRESS_KEYS = ['command', 'url', 'httpUrl', 'serverUrl', 'openapi', 'builtin']
const PLACEHOLDER = /^<[^>]*>$|\byour[-_ ]|\b(x{4,}|\.{3}|placeholder|changeme|replace[-_ ]me)\b/i

const nothing = (reason: string): PasteReading => ({ kind: 'nothing', servers: [], reason })
const NOT_UNDERSTOOD =
  'This is neither a URL, a command, nor the configuration of a client. Paste for example https://example.com/mcp, npx -y some-server, or {"mcpServers": {…}}.'

/** Reads what people copy from the page of a server: a URL, a command line, or the configuration of a client. */
export const readPaste = (pasted: string, context: PasteContext): PasteReading => {
  const text = unfenced(pasted.trim())
  if (text === '') return nothing('')
  try {
    const linked = linkedConfig(text)
    if (linked) return withServers('link', fromJson(linked.json, linked.name), context)
    if (/^https?:\/\/\S+$/.test(text)) return readUrl(text, context)
    if (/^\s*\[[^\]\n]*mcp_servers[^\]\n]*\]/m.test(text)) return withServers('toml', fromToml(text), context)
    if (/^[{[]|^"[^"]+"\s*:/.test(text)) return withServers('json', fromJson(text), context)
    const found = readPastedCommand(text)
    if (typeof found === 'string') return nothing(found)
    if (found?.json !== undefined) return withServers('command', fromJson(found.json, found.name), context)
    if (found?.entry && isLikelyCommand(text)) return withServers('command', [found], context)
    return nothing(NOT_UNDERSTOOD)
  } catch (error) {
    if (error instanceof JsonTextError)
      return nothing(`This is not JSON: line ${error.line}, column ${error.column}: ${error.message}`)
    if (error instanceof ConfigError) return nothing(error.message)
    throw error
  }
}

/** Without the fence of Markdown. */
const unfenced = (text: string): string => /^```\w*\n([\s\S]*?)\n?```$/.exec(text)?.[1]?.trim() ?? text

/** Prose is no command: its first word does not look like a program, or it ends like a sentence. */
const isLikelyCommand = (text: string): boolean => {
  const [first = ''] = text.split(/\s/)
  return !/^[A-Z][a-z]+$/.test(first) && !/[a-z]\.$/.test(text) && !/^\w+:\s*$/m.test(text)
}

const readUrl = (text: string, context: PasteContext): PasteReading => {
  const url = URL.parse(text)
  if (!url)
    return nothing(`${JSON.stringify(text)} is not a valid URL; expected something like https://example.com/mcp.`)
  const entry = { url: text, ...(/\/sse\/?$/.test(url.pathname) && { type: 'sse' }) }
  return withServers('url', [{ name: nameOfUrl(url), entry, notes: [] }], context)
}

const fromToml = (text: string): readonly FoundServer[] => groupsIn(parseToml('the pasted text', text))

const fromJson = (text: string, name?: string): readonly FoundServer[] => {
  const root = parseLoose(text)
  if (!isRawObject(root)) throw new ConfigError('Expected an object like {"mcpServers": {"name": {"command": "…"}}}.')
  const groups = groupsIn(root)
  if (groups.length > 0) return groups
  if (isEntry(root))
    return [{ name: name ?? (typeof root.name === 'string' ? root.name : undefined), entry: root, notes: [] }]
  return entriesIn(root, '')
}

/** JSON, or members of an object without its braces. */
const parseLoose = (text: string): unknown => {
  const isMembers = text.startsWith('"')
  return parseJsonText(isMembers ? `{${text}}` : text.replace(/[,;]\s*$/, '')).value
}

const isEntry = (value: unknown): value is RawObject =>
  isRawObject(value) && ADDRESS_KEYS.some(key => typeof value[key] === 'string' || (key === 'command' && !!value[key]))

const entriesIn = (group: RawObject, client: string): readonly FoundServer[] =>
  Object.entries(group).flatMap(([name, raw]) => {
    const entry = client === 'opencode' ? fromOpenCode(raw) : raw
    if (!isEntry(entry)) return []
    const special = isRawObject(entry.command) ? 'zed' : client
    const { entry: converted, lost } = convertEntry(entry, { client: special }) ?? { entry: {}, lost: [] }
    return { name, entry: converted, notes: lost }
  })

const groupsIn = (root: RawObject): readonly FoundServer[] =>
  Object.entries(root).flatMap(([key, group]) => {
    const client = Object.hasOwn(GROUPS, key) ? GROUPS[key] : undefined
    if (client === undefined || !isRawObject(group)) return []
    const inner = key === 'mcp' && isRawObject(group.servers) ? group.servers : group // settings.json of VS Code
    return entriesIn(inner, inner === group ? client : '')
  })

/** OpenCode writes the program and its arguments as one list. */
const fromOpenCode = (raw: unknown): unknown => {
  if (!isRawObject(raw)) return raw
  const { type, command, environment, ...rest } = raw
  if (!Array.isArray(command)) return type === 'remote' ? { ...rest } : raw
  const [program, ...args] = command.map(String)
  return { command: program, args, ...(isRawObject(environment) && { env: environment }), ...rest }
}

const withServers = (
  kind: PasteReading['kind'],
  found: readonly FoundServer[],
  { taken, port }: PasteContext,
): PasteReading => {
  const names = new Set<string>()
  const servers = found.flatMap(({ name, entry = {}, notes }): ReadServer[] => {
    if (isGateway(entry, port)) return []
    const { entry: converted, lost } = convertEntry(entry, { client: '' }) ?? { entry, lost: [] }
    const free = freeName(name?.trim() || suggestedName(converted), each => taken(each) || names.has(each))
    names.add(free)
    return [{ name: free, entry: converted, notes: [...notes, ...lost, ...placeholderNotes(converted)] }]
  })
  if (servers.length > 0) return { kind, servers }
  const isOwn = found.length > 0
  return nothing(
    isOwn
      ? 'This entry leads back to this gateway; add the servers behind it instead.'
      : 'No server is described here: an entry needs "url" or "command".',
  )
}

const suggestedName = ({ url, httpUrl, command, args, builtin }: RawObject): string => {
  const address = URL.parse(String(httpUrl ?? url))
  if (address) return nameOfUrl(address)
  if (typeof command === 'string') return nameOfCommand([command, ...(Array.isArray(args) ? args.map(String) : [])])
  return typeof builtin === 'string' ? builtin : 'server'
}

/** Documentation has placeholders where each user has a value of their own. */
const placeholderNotes = (entry: RawObject): string[] =>
  ['env', 'headers'].flatMap(key => {
    const values = entry[key]
    return Object.entries(isRawObject(values) ? values : {}).flatMap(([name, value]) =>
      PLACEHOLDER.test(String(value).replace(/^Bearer /, ''))
        ? [
            `${key}.${name} holds a placeholder; write \${${name.replace(/\W+/g, '_').toUpperCase()}} and set that variable, or write the value`,
          ]
        : [],
    )
  })
