import type { z } from 'zod'
import type { Upstream } from '../protocol/exchange.ts'
import type { Policy } from '../protocol/policy.ts'
import { readAudit } from './audit.ts'
import { readAuth } from './auth.ts'
import { readCluster } from './cluster.ts'
import { fillInSection } from './fill-in-section.ts'
import type { JsonText } from './json-text.ts'
import { isGateway } from './own-entries.ts'
import { passedVariables } from './passed-variables.ts'
import { type ConfigProblem, type ConfigReport, formatPath, nearest, unknownKeyWarnings } from './problems.ts'
import { readWith } from './read-with.ts'
import { readRecorder } from './recorder.ts'
import {
  BUILT_IN,
  fileSchema,
  limitsSchema,
  listenSchema,
  passEnvSchema,
  sseSchema,
  tasksSchema,
  workersSchema,
} from './schema.ts'
import { entriesOf, isRawObject, type RawEntry, type RawObject, SERVER_KEYS } from './server-entries.ts'
import { checkIdps } from './server-oauth.ts'
import { readServer } from './servers.ts'
import type { ServerConfig, Snapshot, StoreConfig, WorkspaceConfig } from './snapshot.ts'
import { readStore } from './store.ts'
import { readTelemetry } from './telemetry.ts'
import { checkToolEmbeddings } from './tool-list.ts'
import type { Environment } from './variables.ts'
import { deriveWorkspaces, readPolicies, readWorkspace, withToolFilters } from './workspaces.ts'

const KNOWN_KEYS = Object.keys(fileSchema.shape)

/** Names that other programs use for our keys: Codex, Zed and OpenCode. */
const ALIASES: Readonly<Record<string, string>> = {
  mcp_servers: 'mcpServers',
  context_servers: 'mcpServers',
  mcp: 'mcpServers',
}

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

/** What a file is checked with, besides its text. */
interface CheckOptions {
  readonly env: Environment
  readonly fallback?: FallbackServers
  readonly embedded?: EmbeddedServers | undefined
  readonly isFile?: boolean // a file must name a server
  readonly host?: string | undefined // instead of `listen.host`
  readonly port?: number | undefined // instead of `listen.port`
}

/** The snapshot of a file, valid only if there are no problems. */
export const checkConfig = (
  text: JsonText,
  { env, fallback = DEFAULT_SERVERS, embedded = {}, isFile = false, host, port }: CheckOptions,
): { snapshot: Snapshot; problems: readonly ConfigProblem[] } => {
  const report: ConfigReport = { problems: [], warnings: [] }
  const given = objectAt(text.value, [], report)
  warnOfKeys(given, text, report)
  const hasOwnServers = Object.keys(embedded).length > 0
  const root = hasOwnServers ? given : withFallback(given, { fallback, isFile }, report)
  const listen = readSection(listenSchema, fillInSection(root.listen, env, ['listen'], report), 'listen', report)
  const workers = readWith(workersSchema, root.workers, ['workers'], report)
  const sse = readSection(sseSchema, root.sse, 'sse', report)
  const tasks = readSection(tasksSchema, root.tasks, 'tasks', report)
  const limits = readSection(limitsSchema, root.limits, 'limits', report)
  const store = readStore(root.store, env, report)
  const cluster = readCluster(root.cluster, env, report)
  const audit = readAudit(root.audit, env, report)
  const recorder = readRecorder(root.recorder, report)
  const telemetry = readTelemetry(root.telemetry, env, report)
  const passed = passedVariables(readWith(passEnvSchema, root.passEnv, ['passEnv'], report), env)
  const configured = readEntries(root, port ?? listen.port, report)
  for (const { path } of configured.filter(({ name }) => Object.hasOwn(embedded, name)))
    report.problems.push({ path, message: 'the embedding program defines a server of the same name' })
  const servers = [
    ...configured.flatMap(entry => readServer(entry, { env, passed }, report) ?? []).map(withStore(store)),
    ...Object.entries(embedded).map(
      ([name, upstream]) => ({ name, disabled: false, kind: 'embedded', upstream }) as const,
    ),
  ]
  const entries = { ...Object.fromEntries(configured.map(({ name, raw }) => [name, raw])), ...embedded }
  const givenPolicies = objectAt(root.policies, ['policies'], report)
  const policies = readPolicies(givenPolicies, report)
  const workspaces = readWorkspaces(root.workspaces, entries, servers, policies, report)
  checkToolEmbeddings(workspaces, servers, report)
  const auth = readAuth(
    root.auth,
    {
      env,
      listen: { ...listen, host: host ?? listen.host },
      workspaces: isRawObject(root.workspaces) ? Object.keys(root.workspaces) : workspaces.map(({ name }) => name),
      policies: Object.keys(givenPolicies),
    },
    report,
  )
  checkIdps(idpsOf(servers, configured), auth.issuers ?? new Map(), report)
  const snapshot = {
    listen,
    workers,
    auth,
    sse,
    tasks,
    limits,
    store,
    cluster,
    audit,
    recorder,
    telemetry,
    servers: byName(servers),
    workspaces: byName(workspaces.map(workspace => withToolFilters(workspace, servers))),
    policies,
    warnings: report.warnings,
  }
  return { snapshot, problems: report.problems }
}

/** The servers that use the sign-in at an issuer, and where the file names it. */
const idpsOf = (servers: readonly ServerConfig[], entries: readonly RawEntry[]) =>
  servers.flatMap(server => {
    if (!('oauth' in server) || !server.oauth || server.oauth.grant !== 'id_jag') return []
    if (!server.oauth.idp) return [] // it is missing, which was reported
    const path = entries.find(({ name }) => name === server.name)?.path ?? []
    return { idp: server.oauth.idp, path: [...path, 'oauth', 'idp'] }
  })

/** The built-in memory uses the store of the gateway, unless it names a database of its own. */
const withStore =
  (store: StoreConfig | undefined) =>
  (server: ServerConfig): ServerConfig =>
    store && server.kind === 'builtin' && server.builtin === 'memory' && server.database === undefined
      ? { ...server, database: store.url }
      : server

/** The entries of servers, without those that lead back to this gateway; a name must not occur twice. */
const readEntries = (root: RawObject, port: number, report: ConfigReport): RawEntry[] => {
  for (const key of SERVER_KEYS) objectAt(root[key], [key], report)
  const entries = entriesOf(root)
  const isRepeated = ({ name }: RawEntry, at: number): boolean => entries.findIndex(it => it.name === name) < at
  for (const { name, path } of entries.filter(isRepeated))
    report.problems.push({ path, message: `${formatPath(['mcpServers', name])} has the same name; rename one of them` })
  return entries.filter(({ raw, path }) => {
    if (!isGateway(raw, port)) return true
    report.warnings.push(`${formatPath(path)}: ignored, it leads back to this gateway`)
    return false
  })
}

const byName = <T extends { readonly name: string }>(things: readonly T[]): ReadonlyMap<string, T> =>
  new Map(things.map(thing => [thing.name, thing]))

const objectAt = (value: unknown, path: readonly string[], report: ConfigReport): RawObject => {
  if (value === undefined) return {}
  if (isRawObject(value)) return value
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

interface FallbackChoice {
  readonly fallback: FallbackServers
  readonly isFile: boolean
}

const NO_SERVERS = `names no server: add one with "dragoman add", or write "mcpServers": "${BUILT_IN}" for the built-in memory and files`

/** What is served without a file. A file must name its servers, or say that it wants these. */
const withFallback = (given: RawObject, { fallback, isFile }: FallbackChoice, report: ConfigReport): RawObject => {
  const { mcpServers, servers, ...rest } = given
  const isBuiltIn = mcpServers === BUILT_IN
  const isNone = [mcpServers, servers].every(one => one === undefined || (isRawObject(one) && isEmpty(one)))
  if (!isBuiltIn && !isNone) {
    if (fallback === DEMO_SERVERS) report.warnings.push('the demo is not served: the configuration names servers')
    return given
  }
  if (isFile && isNone && fallback !== DEMO_SERVERS)
    report.problems.push({ path: mcpServers === undefined ? [] : ['mcpServers'], message: NO_SERVERS })
  return { ...fallback, ...rest, mcpServers: fallback.mcpServers }
}

const isEmpty = (value: object): boolean => Object.keys(value).length === 0

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
  if (isRawObject(raw) && given.length === 0) {
    report.problems.push({
      path: ['workspaces'],
      message: 'names no workspace; leave it out to have all servers in one, and one for each',
    })
  }
  const known = { servers: names, enabled: names.filter(name => isEnabled(entries[name])), policies }
  const workspaces = given.flatMap(([name, entry]) => readWorkspace(name, entry, known, report) ?? [])
  const used = new Set(workspaces.flatMap(({ servers: listed, budget }) => [...listed, budget?.embeddings]))
  for (const name of known.enabled.filter(name => !used.has(name))) {
    report.warnings.push(`${formatPath(['mcpServers', name])} is in no workspace and cannot be reached`)
  }
  return workspaces
}

/** Decided by the file alone, so that an unset variable changes no workspace. */
const isEnabled = (entry: unknown): boolean => isRawObject(entry) && entry.disabled !== true && entry.enabled !== false
