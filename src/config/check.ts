import type { z } from 'zod'
import type { Upstream } from '../protocol/exchange.ts'
import type { Policy } from '../protocol/policy.ts'
import type { JsonText } from './json-text.ts'
import { readPolicies } from './policies.ts'
import { formatPath, nearest, type Problem, quoteSome, schemaProblems } from './problems.ts'
import type { Findings } from './remote.ts'
import { authSchema, fileSchema, limitsSchema, listenSchema, sseSchema } from './schema.ts'
import { readServer } from './servers.ts'
import type { ServerConfig, Snapshot, WorkspaceConfig } from './snapshot.ts'
import type { Environment } from './variables.ts'
import { deriveWorkspaces, readWorkspace } from './workspaces.ts'

type Raw = Readonly<Record<string, unknown>>

const TOP_LEVEL = Object.keys(fileSchema.shape)

/** How other programs name what we call otherwise. */
const ALIASES: Readonly<Record<string, string>> = { servers: 'mcpServers', mcp_servers: 'mcpServers' }

/** What a file would say that serves the same as one that names no server. */
interface Standard {
  readonly mcpServers: Raw
  readonly workspaces: Raw
}

/** A memory, and the files of the current directory; their tools go by their own names, as clients know them. */
export const AT_HOME: Standard = {
  mcpServers: { memory: { builtin: 'memory' }, files: { builtin: 'files' } },
  workspaces: { default: { servers: ['memory', 'files'], names: 'plain' } },
}

/** One specimen of every protocol feature. */
export const DEMO: Standard = {
  mcpServers: { demo: { builtin: 'demo' } },
  workspaces: { default: { servers: ['demo'] } },
}

/** Servers that the program embedding the gateway defines, by name. */
export type EmbeddedServers = Readonly<Record<string, Upstream>>

/** The whole file as a snapshot, good only where there are no problems; `standard` is served when it names no server. */
export const checkConfig = (
  text: JsonText,
  env: Environment,
  standard = AT_HOME,
  embedded: EmbeddedServers = {},
): { snapshot: Snapshot; problems: readonly Problem[] } => {
  const found: Findings = { problems: [], warnings: [] }
  const given = objectAt(text.value, [], found)
  warnOfKeys(given, text, found)
  const isNone = Object.keys(embedded).length === 0
  const root = isNone ? withStandard(given, standard, found) : given
  const listen = section(listenSchema, root.listen, 'listen', found)
  const auth = section(authSchema, root.auth, 'auth', found)
  const sse = section(sseSchema, root.sse, 'sse', found)
  const limits = section(limitsSchema, root.limits, 'limits', found)
  const configured = objectAt(root.mcpServers, ['mcpServers'], found)
  for (const name of Object.keys(configured).filter(name => Object.hasOwn(embedded, name)))
    found.problems.push({
      path: ['mcpServers', name],
      message: 'the embedding program defines a server of the same name',
    })
  const entries = { ...configured, ...embedded }
  const servers = [
    ...Object.entries(configured).flatMap(([name, raw]) => readServer(name, raw, env, found) ?? []),
    ...Object.entries(embedded).map(
      ([name, upstream]) => ({ name, disabled: false, kind: 'embedded', upstream }) as const,
    ),
  ]
  const policies = readPolicies(objectAt(root.policies, ['policies'], found), found)
  const workspaces = readWorkspaces(root.workspaces, entries, servers, policies, found)
  const snapshot = {
    listen,
    auth,
    sse,
    limits,
    servers: byName(servers),
    workspaces: byName(workspaces),
    policies,
    warnings: found.warnings,
  }
  return { snapshot, problems: found.problems }
}

const byName = <T extends { readonly name: string }>(things: readonly T[]): ReadonlyMap<string, T> =>
  new Map(things.map(thing => [thing.name, thing]))

const isObject = (value: unknown): value is Raw => typeof value === 'object' && value !== null && !Array.isArray(value)

const objectAt = (value: unknown, path: readonly string[], found: Findings): Raw => {
  if (value === undefined) return {}
  if (isObject(value)) return value
  found.problems.push({ path, message: 'expected an object' })
  return {}
}

const section = <S extends z.ZodObject>(schema: S, raw: unknown, name: string, found: Findings): z.output<S> => {
  const parsed = schema.safeParse(raw === undefined ? {} : raw)
  if (parsed.success) return parsed.data
  found.problems.push(...schemaProblems(parsed.error, [name], schema))
  return schema.parse({})
}

/** Other programs keep their settings in the same file; only what looks like a slip is worth a line of its own. */
const warnOfKeys = (root: Raw, text: JsonText, found: Findings): void => {
  const foreign: string[] = []
  for (const key of Object.keys(root).filter(key => !TOP_LEVEL.includes(key))) {
    const meant = Object.hasOwn(ALIASES, key) ? ALIASES[key] : nearest(key, TOP_LEVEL)
    if (meant) found.warnings.push(`unknown key "${key}" is ignored; did you mean "${meant}"?`)
    else foreign.push(key)
  }
  if (foreign.length > 0) found.warnings.push(`ignored keys that are not ours: ${quoteSome(foreign)}`)
  for (const path of text.repeated) found.warnings.push(`${formatPath(path)} is written twice; the last one counts`)
}

const withStandard = (given: Raw, standard: Standard, found: Findings): Raw => {
  const { mcpServers = {} } = given
  if (!isObject(mcpServers)) return given
  if (Object.keys(mcpServers).length > 0) {
    if (standard === DEMO) found.warnings.push('the demo is not served: the configuration names servers')
    return given
  }
  if (given.mcpServers !== undefined) {
    const names = Object.keys(standard.mcpServers).join(' and ')
    found.warnings.push(`mcpServers names no server; the built-in ${names} is served`)
  }
  return { ...standard, ...given, mcpServers: standard.mcpServers }
}

const readWorkspaces = (
  raw: unknown,
  entries: Raw,
  servers: readonly ServerConfig[],
  policies: ReadonlyMap<string, Policy>,
  found: Findings,
): WorkspaceConfig[] => {
  if (raw === undefined) return deriveWorkspaces(servers, server => isOffered(entries[server.name]))
  // Entries with problems of their own are known too: one mistake is reported once.
  const names = Object.keys(entries)
  const given = Object.entries(objectAt(raw, ['workspaces'], found))
  if (isObject(raw) && given.length === 0) {
    found.problems.push({
      path: ['workspaces'],
      message: 'names no workspace; leave it out to have all servers in one, and one for each',
    })
  }
  const offered = names.filter(name => isOffered(entries[name]))
  const around = { servers: names, offered, policies }
  const workspaces = given.flatMap(([name, entry]) => readWorkspace(name, entry, around, found) ?? [])
  const used = new Set(workspaces.flatMap(workspace => workspace.servers))
  for (const name of names.filter(name => !used.has(name))) {
    found.warnings.push(`${formatPath(['mcpServers', name])} is in no workspace and cannot be reached`)
  }
  return workspaces
}

/** By the file alone, so that a variable that is not set changes no workspace. */
const isOffered = (entry: unknown): boolean => isObject(entry) && entry.disabled !== true
