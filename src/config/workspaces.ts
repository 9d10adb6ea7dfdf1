import type { z } from 'zod'
import { EVERYTHING, type Patterns, type Policy } from '../protocol/policy.ts'
import type { ConfigPath } from './json-text.ts'
import { type ConfigReport, nearest, quoteAll, suggest } from './problems.ts'
import { readWith } from './read-with.ts'
import { defaultRules, type Overlay, type ServerConfig, type WorkspaceConfig } from './snapshot.ts'
import { DEFAULT_TRIM, type ToolBudget } from './tool-list.ts'
import { type overlaySchema, policySchema, WORKSPACE_NAME, workspaceSchema } from './workspace-schema.ts'

const MAX_NAME = 64

/** The workspace of URLs that name none. */
const DEFAULT_WORKSPACE = 'default'

/** The names that a workspace may refer to. */
export interface KnownNames {
  readonly servers: readonly string[] // including entries with problems
  readonly enabled: readonly string[]
  readonly policies: ReadonlyMap<string, Policy>
}

/** Reads one entry of `workspaces`; undefined if it has problems. */
export const readWorkspace = (
  name: string,
  raw: unknown,
  known: KnownNames,
  report: ConfigReport,
): WorkspaceConfig | undefined => {
  const path = ['workspaces', name]
  if (!WORKSPACE_NAME.test(name)) {
    const message =
      'a workspace name is part of a URL: letters, digits, ".", "_" and "-", starting with a letter or digit, at most 64'
    report.problems.push({ path, message })
  }
  const entry = readWith(workspaceSchema, raw, path, report)
  if (!entry) return undefined
  const servers = readServerNames(entry.servers, path, known, report)
  const policy =
    entry.policy === undefined ? undefined : readPolicy(entry.policy, [...path, 'policy'], known.policies, report)
  if (!servers) return undefined
  const defaults = defaultRules(servers.length)
  return {
    ...defaults,
    name,
    servers,
    names: entry.names ?? defaults.names,
    ...(entry.nameLength === undefined ? {} : { nameLength: entry.nameLength }),
    ...(entry.instructions === undefined ? {} : { instructions: entry.instructions }),
    strict: entry.strict,
    policy: policy ?? defaults.policy,
    overlays: readOverlays(entry.tools ?? {}, servers, [...path, 'tools'], report),
    ...(entry.budget && { budget: budgetOf(entry.budget) }),
    ...(entry.trim && { trim: entry.trim === true ? DEFAULT_TRIM : entry.trim }),
  }
}

type BudgetEntry = NonNullable<z.output<typeof workspaceSchema>['budget']>

const budgetOf = ({ tokens, favourites, embeddings }: BudgetEntry): ToolBudget => ({
  tokens,
  ...(favourites && { favourites }),
  ...(embeddings !== undefined && { embeddings }),
})

const readServerNames = (
  given: '*' | readonly string[],
  path: ConfigPath,
  { servers, enabled }: KnownNames,
  report: ConfigReport,
): readonly string[] | undefined => {
  if (given === '*' || (given.length === 1 && given[0] === '*' && !servers.includes('*')))
    return enabled.length > 0 ? enabled : servers
  const unknown = given.findIndex(server => !servers.includes(server))
  if (unknown < 0) return [...new Set(given)]
  const server = given[unknown] ?? ''
  report.problems.push({
    path: [...path, 'servers', unknown],
    message: `no server ${JSON.stringify(server)}; ${suggest(server, servers)}`,
  })
  return undefined
}

/**
 * The workspaces of a file that defines none: `default` with every enabled server, and one for each server under its
 * own name. A server called `default` has that name for itself.
 */
export const deriveWorkspaces = (
  servers: readonly ServerConfig[],
  isEnabled: (server: ServerConfig) => boolean,
): WorkspaceConfig[] => {
  const names = servers.map(({ name }) => name)
  const enabled = servers.filter(isEnabled).map(({ name }) => name)
  const all = names.includes(DEFAULT_WORKSPACE) ? [DEFAULT_WORKSPACE] : enabled.length > 0 ? enabled : names.slice(0, 1)
  const taken = new Set([DEFAULT_WORKSPACE, ...names])
  const single = names
    .filter(name => name !== DEFAULT_WORKSPACE)
    .map(name => workspaceOf(WORKSPACE_NAME.test(name) ? name : urlName(name, taken), [name]))
  return all.length > 0 ? [workspaceOf(DEFAULT_WORKSPACE, all), ...single] : []
}

const workspaceOf = (name: string, servers: readonly string[]): WorkspaceConfig => ({
  name,
  servers,
  ...defaultRules(servers.length),
})

/** A name that can be part of a URL and is not taken. */
const urlName = (name: string, taken: Set<string>): string => {
  const plain = name.replace(/[^A-Za-z0-9._-]+/g, '-').replace(/^[^A-Za-z0-9]+|-+$/g, '') || 'server'
  for (let count = 1; ; count++) {
    const tail = count === 1 ? '' : `-${count}`
    const candidate = plain.slice(0, MAX_NAME - tail.length) + tail
    if (taken.has(candidate)) continue
    taken.add(candidate)
    return candidate
  }
}

type PolicyEntry = z.output<typeof policySchema>

/** Reads the top-level `policies`; entries with problems are left out. */
export const readPolicies = (entries: Readonly<Record<string, unknown>>, report: ConfigReport): Map<string, Policy> => {
  const policies = new Map<string, Policy>()
  for (const [name, raw] of Object.entries(entries)) {
    const entry = readWith(policySchema, raw, ['policies', name], report)
    if (entry) policies.set(name, policyOf(entry))
  }
  return policies
}

/** The policy of a workspace: a name of `policies`, or a policy. */
const readPolicy = (
  given: string | PolicyEntry,
  path: ConfigPath,
  policies: ReadonlyMap<string, Policy>,
  report: ConfigReport,
): Policy => {
  if (typeof given !== 'string') return policyOf(given)
  const named = policies.get(given)
  if (named) return named
  const hint = suggest(given, policies.keys(), 'there are no policies')
  report.problems.push({ path, message: `no policy ${JSON.stringify(given)}; ${hint}` })
  return EVERYTHING
}

const policyOf = ({ allow, deny, readOnly }: PolicyEntry): Policy => ({
  allow: patternsOf(allow),
  deny: patternsOf(deny),
  readOnly,
})

const patternsOf = (given: PolicyEntry['allow']): Patterns =>
  Object.fromEntries(Object.entries(given ?? {}).filter(([, globs]) => globs !== undefined))

type OverlayEntry = z.output<typeof overlaySchema>

/** Reads the `tools` of a workspace: by server, then by the tool's own name. */
const readOverlays = (
  entries: Readonly<Record<string, OverlayEntry>>,
  servers: readonly string[],
  path: ConfigPath,
  report: ConfigReport,
): Map<string, Map<string, Overlay>> => {
  const overlays = new Map<string, Map<string, Overlay>>()
  for (const [key, entry] of Object.entries(entries)) {
    const server = serverOf(key, servers)
    if (server === undefined) {
      report.problems.push({ path: [...path, key], message: overlayKeyError(key, servers) })
      continue
    }
    const tools = overlays.get(server) ?? new Map<string, Overlay>()
    overlays.set(server, tools.set(key.slice(server.length + 1), overlayOf(entry)))
  }
  for (const [server, tools] of overlays) reportDuplicateNames(server, tools, path, report)
  return overlays
}

/** The server of `<server>/<tool>`. Names of servers may contain `/`: the longest one that fits is meant. */
const serverOf = (key: string, servers: readonly string[]): string | undefined => {
  const fitting = servers.filter(server => key.startsWith(`${server}/`) && key.length > server.length + 1)
  return fitting.sort((a, b) => b.length - a.length)[0]
}

const overlayKeyError = (key: string, servers: readonly string[]): string => {
  const [server = ''] = key.split('/')
  const meant = key.includes('/') ? nearest(server, servers) : undefined
  const hint = meant ? `; did you mean ${JSON.stringify(`${meant}${key.slice(server.length)}`)}?` : ''
  return `expected "<server>/<tool>" with a server of this workspace (${quoteAll(servers)})${hint}`
}

const overlayOf = ({ name, title, description, hidden, annotations, arguments: given }: OverlayEntry): Overlay => ({
  ...(name === undefined ? {} : { name }),
  ...(title === undefined ? {} : { title }),
  ...(description === undefined ? {} : { description }),
  ...(annotations === undefined ? {} : { annotations }),
  hidden,
  fixed: given?.fixed ?? {},
  defaults: given?.default ?? {},
})

/** Two tools of one server with the same name: only one of them could be called. */
const reportDuplicateNames = (
  server: string,
  tools: ReadonlyMap<string, Overlay>,
  path: ConfigPath,
  report: ConfigReport,
): void => {
  const seen = new Map<string, string>()
  for (const [tool, { name, hidden }] of tools) {
    if (name === undefined || hidden) continue
    const other = seen.get(name)
    if (other !== undefined) {
      const message = `${JSON.stringify(name)} is the name given to ${JSON.stringify(`${server}/${other}`)} already`
      report.problems.push({ path: [...path, `${server}/${tool}`, 'name'], message })
    }
    seen.set(name, tool)
  }
}

/** Adds the `enabledTools` and `disabledTools` of the servers to the policy of a workspace. */
export const withToolFilters = (workspace: WorkspaceConfig, servers: readonly ServerConfig[]): WorkspaceConfig => {
  const members = servers.filter(({ name }) => workspace.servers.includes(name))
  const toolsOf = (server: ServerConfig, tools: readonly string[] = ['*']) =>
    tools.map(tool => `${server.name}/${tool}`)
  const denied = members.flatMap(server => toolsOf(server, server.disabledTools ?? []))
  const isFiltered = members.some(({ enabledTools }) => enabledTools !== undefined)
  if (denied.length === 0 && !isFiltered) return workspace
  const allow = isFiltered ? { tools: members.flatMap(server => toolsOf(server, server.enabledTools)) } : {}
  const also: Policy = { allow, deny: denied.length > 0 ? { tools: denied } : {}, readOnly: false }
  return { ...workspace, policy: { ...workspace.policy, also } }
}
