import { readBuiltin } from './builtin.ts'
import type { ConfigPath } from './json-text.ts'
import { formatPath, nearest, quoteSome, schemaProblems } from './problems.ts'
import { readProcess } from './process.ts'
import { addressOf, type Findings, readRemote } from './remote.ts'
import { type ServerEntry, serverSchema } from './schema.ts'
import type { BuiltinServer, ProcessServer, RemoteServer, ServerConfig, UnavailableServer } from './snapshot.ts'
import type { Environment } from './variables.ts'

const KNOWN = Object.keys(serverSchema.shape)

/** How other programs name what we call otherwise. */
const ALIASES: Readonly<Record<string, string>> = { serverUrl: 'url', transport: 'type', transportType: 'type' }

/** What says how to reach or start a server, or in whose name; one that lives here needs none of it. */
const NOT_FOR_BUILTIN = ['headers', 'args', 'env', 'credentials', 'cwd', 'limits', 'pool', 'share'] as const

const SHORT_TIMEOUT_MS = 1000

const strangersIn = (entry: ServerEntry): string[] => Object.keys(entry).filter(key => !KNOWN.includes(key))

const meantBy = (key: string): string | undefined => (Object.hasOwn(ALIASES, key) ? ALIASES[key] : nearest(key, KNOWN))

const warningsOf = (entry: ServerEntry, path: ConfigPath): string[] => {
  const where = formatPath(path)
  const warnings: string[] = []
  const foreign: string[] = []
  for (const key of strangersIn(entry)) {
    const meant = meantBy(key)
    if (meant) warnings.push(`${where}: unknown key "${key}" is ignored; did you mean "${meant}"?`)
    else foreign.push(key)
  }
  if (foreign.length > 0) warnings.push(`${where}: ignored keys that are not ours: ${quoteSome(foreign)}`)
  if (entry.url !== undefined && entry.httpUrl !== undefined && entry.url !== entry.httpUrl) {
    warnings.push(`${where}: has "url" and "httpUrl"; "httpUrl" is used`)
  }
  for (const key of ['root', 'showHidden'] as const) {
    if (entry[key] !== undefined && entry.builtin !== 'files')
      warnings.push(`${where}: "${key}" is ignored; it goes with "builtin": "files"`)
  }
  if (entry.memory !== undefined && entry.builtin !== 'memory') {
    warnings.push(`${where}: "memory" is ignored; it goes with "builtin": "memory"`)
  }
  if (entry.share !== undefined && addressOf(entry)) {
    warnings.push(`${where}: "share" is ignored; it goes with "command"`)
  }
  const idle = entry.builtin === undefined ? [] : NOT_FOR_BUILTIN.filter(key => entry[key] !== undefined)
  if (idle.length > 0) {
    warnings.push(`${where}: ignored keys that go with "url" or "command": ${quoteSome(idle)}`)
  }
  if (entry.timeout < SHORT_TIMEOUT_MS) {
    warnings.push(`${where}.timeout: ${entry.timeout} milliseconds are very short; were seconds meant?`)
  }
  return warnings
}

/** An entry must say in exactly one way what it is, and its type must agree. */
const shapeFault = (entry: ServerEntry): string | undefined => {
  const ways = [addressOf(entry)?.key, entry.command && 'command', entry.builtin && 'builtin'].filter(way => !!way)
  const [way] = ways
  if (ways.length > 1) return `has ${ways.map(way => JSON.stringify(way)).join(' and ')}; keep only one of them`
  if (way === undefined) {
    const meant = strangersIn(entry).find(key => ['url', 'httpUrl', 'command', 'builtin'].includes(meantBy(key) ?? ''))
    const hint = meant ? ` (it has "${meant}": did you mean "${meantBy(meant)}"?)` : ''
    return `needs "url" for a remote server, "command" for a local one, or "builtin"${hint}`
  }
  if (entry.type !== undefined && (entry.type === 'stdio') !== (way === 'command')) {
    return `has type "${entry.type}" but "${way}"; a "command" goes with type "stdio", a "url" with the others`
  }
  return undefined
}

const readKind = (
  entry: ServerEntry,
  path: ConfigPath,
  env: Environment,
  found: Findings,
): RemoteServer | ProcessServer | BuiltinServer | UnavailableServer => {
  if (entry.builtin !== undefined) return readBuiltin(entry.builtin, entry, env)
  return entry.command === undefined ? readRemote(entry, path, env, found) : readProcess(entry, path, env, found)
}

/** Reads one entry of `mcpServers`; undefined where it has problems. */
export const readServer = (name: string, raw: unknown, env: Environment, found: Findings): ServerConfig | undefined => {
  const path = ['mcpServers', name]
  const parsed = serverSchema.safeParse(raw)
  if (!parsed.success) {
    found.problems.push(...schemaProblems(parsed.error, path, serverSchema))
    return undefined
  }
  const entry = parsed.data
  const fault = shapeFault(entry)
  if (fault) {
    found.problems.push({ path, message: fault })
    return undefined
  }
  found.warnings.push(...warningsOf(entry, path))
  const { disabled, concurrency } = entry
  const bound = concurrency === undefined ? {} : { concurrency }
  return { name, disabled, ...bound, ...readKind(entry, path, env, found) }
}
