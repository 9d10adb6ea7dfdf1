import type { z } from 'zod'
import type { Upstream } from '../protocol/exchange.ts'
import type { Policy } from '../protocol/policy.ts'
import type { JsonText } from './json-text.ts'
import { type ConfigProblem, type ConfigReport, formatPath, nearest, readWith, unknownKeyWarnings } from './problems.ts'
import { authSchema, fileSchema, limitsSchema, listenSchema, sseSchema } from './schema.ts'
import { readServer } from './servers.ts'
import type { ServerConfig, Snapshot, WorkspaceConfig } from './snapshot.ts'
import type { Environment } from './variables.ts'
import { deriveWorkspaces, readPolicies, readWorkspace } from './workspaces.ts'

type RawObject = Readonly<Record<string, unknown>>

const KNOWN_KEYS = Object.keys(fileSchema.shape)

/** Names that other programs use for our keys. */
const ALIASES: Readonly<Record<string, string>> = { servers: 'mcpServers', mcp_servers: 'mcpServers' }

/** What is served if a file names no server. */
interface FallbackServers {
  readonly mcpServers: RawObject
  readonly workspaces: RawObject
}

/** A memory and the files of the current directory, with their own tool names, which clients know. */
export const DEFAULT_SERVERS: FallbackServers = {
  mcpServers: { memory: { builtin: 'memory' }, files: { builtin: 'files' } },
  workspaces: { default: { servers: ['memory', 'files'], names: 'plain' } },
}

/** The demo has an example of every protocol feature. */
export const DEMO_SERVERS: FallbackServers = {
  mcpServers: { demo: { builtin: 'demo' } },
  workspaces: { default: { servers: ['demo'] } },
}

/** Servers that the program embedding the gateway defines, by name. */
export type EmbeddedServers = Readonly<Record<string, Upstream>>

/** The snapshot of a file, valid only if there are no problems. */
export const checkConfig = (
  text: JsonText,
  env: Environment,
  fallback = DEFAULT_SERVERS,
  embedded: EmbeddedServers = {},
): { snapshot: Snapshot; problems: readonly ConfigProblem[] } => {
  const report: ConfigReport = { problems: [], warnings: [] }
  const given = objectAt(text.value, [], report)
  warnOfKeys(given, text, report)
  const root = Object.keys(embedded).length === 0 ? withFallback(given, fallback, report) : given
  const listen = readSection(listenSchema, root.listen, 'listen', report)
  const auth = readSection(authSchema, root.auth, 'auth', report)
  const sse = readSection(sseSchema, root.sse, 'sse', report)
  const limits = readSection(limitsSchema, root.limits, 'limits', report)
  const configured = objectAt(root.mcpServers, ['mcpServers'], report)
  for (const name of Object.keys(configured).filter(name => Object.hasOwn(embedded, name)))
    report.problems.push({
      path: ['mcpServers', name],
      message: 'the embedding program defines a server of the same name',
    })
  const servers = [
    ...Object.entries(configured).flatMap(([name, raw]) => readServer(name, raw, env, report) ?? []),
    ...Object.entries(embedded).map(
      ([name, upstream]) => ({ name, disabled: false, kind: 'embedded', upstream }) as const,
    ),
  ]
  const entries = { ...configured, ...embedded }
  const policies = readPolicies(objectAt(root.policies, ['policies'], report), report)
  const workspaces = readWorkspaces(root.workspaces, entries, servers, policies, report)
  const snapshot = {
    listen,
    auth,
    sse,
    limits,
    servers: byName(servers),
    workspaces: byName(workspaces),
    policies,
    warnings: report.warnings,
  }
  return { snapshot, problems: report.problems }
}

const byName = <T extends { readonly name: string }>(things: readonly T[]): ReadonlyMap<string, T> =>
  new Map(things.map(thing => [thing.name, thing]))

const isObject = (value: unknown): value is RawObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const objectAt = (value: unknown, path: readonly string[], report: ConfigReport): RawObject => {
  if (value === undefined) return {}
  if (isObject(value)) return value
  report.problems.push({ path, message: 'expected an object' })
  return {}
}

const readSection = <S extends z.ZodObject>(schema: S, raw: unknown, name: string, report: ConfigReport): z.output<S> =>
  readWith(schema, raw === undefined ? {} : raw, [name], report) ?? schema.parse({})

const warnOfKeys = (root: RawObject, text: JsonText, report: ConfigReport): void => {
  const unknown = Object.keys(root).filter(key => !KNOWN_KEYS.includes(key))
  const intendedKey = (key: string) => (Object.hasOwn(ALIASES, key) ? ALIASES[key] : nearest(key, KNOWN_KEYS))
  report.warnings.push(...unknownKeyWarnings(unknown, intendedKey))
  for (const path of text.repeated) report.warnings.push(`${formatPath(path)} is written twice; the last one is used`)
}

const withFallback = (given: RawObject, fallback: FallbackServers, report: ConfigReport): RawObject => {
  const { mcpServers = {} } = given
  if (!isObject(mcpServers)) return given
  if (Object.keys(mcpServers).length > 0) {
    if (fallback === DEMO_SERVERS) report.warnings.push('the demo is not served: the configuration names servers')
    return given
  }
  if (given.mcpServers !== undefined) {
    const names = Object.keys(fallback.mcpServers).join(' and ')
    report.warnings.push(`mcpServers names no server; the built-in ${names} is served`)
  }
  return { ...fallback, ...given, mcpServers: fallback.mcpServers }
}

const readWorkspaces = (
  raw: unknown,
  entries: RawObject,
  servers: readonly ServerConfig[],
  policies: ReadonlyMap<string, Policy>,
  report: ConfigReport,
): WorkspaceConfig[] => {
  if (raw === undefined) return deriveWorkspaces(servers, server => isEnabled(entries[server.name]))
  const names = Object.keys(entries) // including entries with problems, so that one mistake is reported once
  const given = Object.entries(objectAt(raw, ['workspaces'], report))
  if (isObject(raw) && given.length === 0) {
    report.problems.push({
      path: ['workspaces'],
      message: 'names no workspace; leave it out to have all servers in one, and one for each',
    })
  }
  const known = { servers: names, enabled: names.filter(name => isEnabled(entries[name])), policies }
  const workspaces = given.flatMap(([name, entry]) => readWorkspace(name, entry, known, report) ?? [])
  const used = new Set(workspaces.flatMap(workspace => workspace.servers))
  for (const name of names.filter(name => !used.has(name))) {
    report.warnings.push(`${formatPath(['mcpServers', name])} is in no workspace and cannot be reached`)
  }
  return workspaces
}

/** Decided by the file alone, so that an unset variable changes no workspace. */
const isEnabled = (entry: unknown): boolean => isObject(entry) && entry.disabled !== true
