import { parseEnv } from 'node:util'
import { readBuiltin } from './builtin.ts'
import {
  type CallerTemplate,
  placeholderError,
  readCallerValues,
  readTemplate,
  splitByCaller,
} from './caller-values.ts'
import { adaptEntry, commandHint } from './foreign-keys.ts'
import type { ConfigPath } from './json-text.ts'
import { type OpenapiServer, readOpenapi } from './openapi.ts'
import { type ConfigReport, formatPath, nearest, quoteSome, unknownKeyWarnings } from './problems.ts'
import { readWith } from './read-with.ts'
import { addressOf, readRemote } from './remote.ts'
import { type ServerEntry, serverSchema } from './schema.ts'
import type { RawEntry } from './server-entries.ts'
import type { BuiltinServer, ProcessServer, RemoteServer, ServerConfig, UnavailableServer } from './snapshot.ts'
import { type Environment, fillInPath, textOfFile } from './variables.ts'

const KNOWN_KEYS = Object.keys(serverSchema.shape)

/** Keys about the transport and the credentials of a server, which a built-in server does not have. */
const NOT_FOR_BUILTIN = [
  'headers',
  'args',
  'env',
  'envFile',
  'credentials',
  'oauth',
  'cwd',
  'limits',
  'pool',
  'share',
] as const

/** Keys of other kinds of servers, which an entry with "openapi" does not have. */
const NOT_FOR_OPENAPI = [
  'args',
  'env',
  'envFile',
  'cwd',
  'limits',
  'pool',
  'share',
  'allowCrossOriginEndpoint',
] as const

const SHORT_TIMEOUT_MS = 1000

/** What entries are read with. */
interface EntryContext {
  readonly env: Environment
  readonly passed: Readonly<Record<string, string>> // variables that every process gets
}

/** Reads one entry of `mcpServers`; undefined if it has problems. */
export const readServer = (
  { name, raw, path }: RawEntry,
  context: EntryContext,
  report: ConfigReport,
): ServerConfig | undefined => {
  const { entry: adapted, warnings } = adaptEntry(raw)
  const entry = readWith(serverSchema, adapted, path, report)
  if (!entry) return undefined
  const error = kindError(entry)
  if (error) {
    report.problems.push({ path, message: error })
    return undefined
  }
  const about = [...warnings.map(warning => `: ${warning}`), ...warningsOf(entry)]
  report.warnings.push(...about.map(warning => `${formatPath(path)}${warning}`))
  const { disabled, on, concurrency, enabledTools, disabledTools, pin } = entry
  return {
    name,
    disabled,
    ...(on !== undefined && { on }),
    ...(concurrency !== undefined && { concurrency }),
    ...(enabledTools && { enabledTools }),
    ...(disabledTools && { disabledTools }),
    ...(pin && { pin }),
    ...readKind(entry, path, context, report),
  }
}

const readKind = (
  entry: ServerEntry,
  path: ConfigPath,
  context: EntryContext,
  report: ConfigReport,
): RemoteServer | OpenapiServer | ProcessServer | BuiltinServer | UnavailableServer => {
  if (entry.builtin !== undefined) return readBuiltin(entry.builtin, entry, context.env)
  if (entry.openapi !== undefined) return readOpenapi(entry, path, context.env, report)
  if (entry.command === undefined) return readRemote(entry, path, context.env, report)
  return readProcess(entry, path, context, report)
}

const unknownKeys = (entry: ServerEntry): string[] => Object.keys(entry).filter(key => !KNOWN_KEYS.includes(key))

const intendedKey = (key: string): string | undefined => nearest(key, KNOWN_KEYS)

const warningsOf = (entry: ServerEntry): string[] => {
  const warnings = unknownKeyWarnings(unknownKeys(entry), intendedKey)
  if (entry.url !== undefined && entry.httpUrl !== undefined && entry.url !== entry.httpUrl)
    warnings.push('has "url" and "httpUrl"; "httpUrl" is used')
  for (const key of ['root', 'showHidden'] as const)
    if (entry[key] !== undefined && entry.builtin !== 'files')
      warnings.push(`"${key}" is ignored; it goes with "builtin": "files"`)
  if (entry.memory !== undefined && entry.builtin !== 'memory')
    warnings.push('"memory" is ignored; it goes with "builtin": "memory"')
  if (entry.api !== undefined && entry.openapi === undefined) warnings.push('"api" is ignored; it goes with "openapi"')
  if (entry.oauth && entry.command !== undefined) warnings.push('"oauth" is ignored; it goes with "url"')
  for (const key of ['share', 'envFile'] as const)
    if (entry[key] !== undefined && addressOf(entry)) warnings.push(`"${key}" is ignored; it goes with "command"`)
  const unused = entry.builtin === undefined ? [] : NOT_FOR_BUILTIN.filter(key => entry[key] !== undefined)
  if (unused.length > 0) warnings.push(`ignored keys that go with "url" or "command": ${quoteSome(unused)}`)
  const unread = entry.openapi === undefined ? [] : NOT_FOR_OPENAPI.filter(key => entry[key] !== undefined)
  if (unread.length > 0) warnings.push(`ignored keys that do not go with "openapi": ${quoteSome(unread)}`)
  const about = warnings.map(warning => `: ${warning}`)
  const hint = entry.command === undefined ? undefined : commandHint(entry.command, entry.args ?? [])
  if (hint !== undefined) about.push(`.command: ${JSON.stringify(entry.command)} ${hint}`)
  return entry.timeout < SHORT_TIMEOUT_MS
    ? [...about, `.timeout: ${entry.timeout} milliseconds are very short; were seconds meant?`]
    : about
}

/** An entry must have exactly one of "url", "command", "openapi" and "builtin", and a type that fits. */
const kindError = (entry: ServerEntry): string | undefined => {
  const given = [entry.command && 'command', entry.openapi !== undefined && 'openapi', entry.builtin && 'builtin']
  const kinds = [addressOf(entry)?.key, ...given].filter(kind => !!kind)
  const [kind] = kinds
  if (kinds.length > 1) return `has ${kinds.map(each => JSON.stringify(each)).join(' and ')}; keep only one of them`
  if (kind === undefined) {
    const meant = unknownKeys(entry).find(key =>
      ['url', 'httpUrl', 'command', 'openapi', 'builtin'].includes(intendedKey(key) ?? ''),
    )
    const hint = meant ? ` (it has "${meant}": did you mean "${intendedKey(meant)}"?)` : ''
    return `needs "url" for a remote server, "command" for a local one, "openapi" for a REST API, or "builtin"${hint}`
  }
  if (entry.type !== undefined && (entry.type === 'stdio') !== (kind === 'command'))
    return `has type "${entry.type}" but "${kind}"; a "command" goes with type "stdio", a "url" with the others`
  return undefined
}

/** Reads a server that the gateway starts; a missing variable makes it unavailable. */
const readProcess = (
  entry: ServerEntry,
  path: ConfigPath,
  { env, passed }: EntryContext,
  report: ConfigReport,
): ProcessServer | UnavailableServer => {
  const missing: string[] = []

  const readText = (text: string, at: ConfigPath, missingHere = missing): string => {
    const filled = fillInPath(text, env)
    if (filled.kind === 'text') return filled.text
    missingHere.push(`${formatPath(at)}: ${filled.reason}`)
    return ''
  }

  const readEnvFile = (path: string): Record<string, string> => {
    const read = textOfFile(path, env)
    if (read.kind === 'text') return parseEnv(read.text) as Record<string, string>
    missing.push(`envFile: ${read.reason}`)
    return {}
  }

  const readVariables = (
    given: Readonly<Record<string, unknown>>,
    at: ConfigPath,
    missingHere: string[],
  ): Record<string, CallerTemplate> => {
    const variables: Record<string, CallerTemplate> = {}
    for (const [name, value] of Object.entries(given)) {
      const here = [...at, name]
      const isName = name !== '' && !/[=\0]/.test(name)
      const error = isName ? placeholderError(String(value)) : 'not a valid name of a variable'
      if (error) report.problems.push({ path: here, message: error })
      else variables[name] = readTemplate(String(value), piece => readText(piece, here.slice(path.length), missingHere))
    }
    return variables
  }

  const { shared, values } = splitByCaller(readVariables(entry.env ?? {}, [...path, 'env'], missing))
  const server: ProcessServer = {
    kind: 'process',
    command: readText(entry.command ?? '', ['command']),
    args: (entry.args ?? []).map((arg, i) => readText(arg, ['args', i])),
    env: { ...passed, ...(entry.envFile === undefined ? {} : readEnvFile(entry.envFile)), ...shared },
    ...readCallerValues(values, entry, path, { member: 'env', report, read: readVariables }),
    cwd: entry.cwd === undefined ? undefined : readText(entry.cwd, ['cwd']),
    era: entry.era,
    pool: entry.pool,
    share: entry.share,
    timeoutMs: entry.timeout,
    limits: entry.limits,
  }
  return missing.length > 0 ? { kind: 'unavailable', reason: missing.join('; ') } : server
}
