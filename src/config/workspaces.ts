import type { Policy } from '../protocol/policy.ts'
import { readOverlays } from './overlays.ts'
import { readPolicy } from './policies.ts'
import { nearest, quoteAll, schemaProblems } from './problems.ts'
import type { Findings } from './remote.ts'
import { plainRules, type ServerConfig, type WorkspaceConfig } from './snapshot.ts'
import { WORKSPACE_NAME, workspaceSchema } from './workspace-schema.ts'

const LONGEST_NAME = 64

/** The workspace a door without a name leads to. */
const DEFAULT_WORKSPACE = 'default'

/** What a workspace may refer to. */
export interface Surroundings {
  readonly servers: readonly string[] // every name, also of entries with problems of their own
  readonly offered: readonly string[] // those that are not disabled
  readonly policies: ReadonlyMap<string, Policy>
}

/** Reads one entry of `workspaces`; undefined where it has problems. */
export const readWorkspace = (
  name: string,
  raw: unknown,
  around: Surroundings,
  found: Findings,
): WorkspaceConfig | undefined => {
  const path = ['workspaces', name]
  if (!WORKSPACE_NAME.test(name)) {
    const message =
      'a workspace name is part of a URL: letters, digits, ".", "_" and "-", starting with a letter or digit, at most 64'
    found.problems.push({ path, message })
  }
  const parsed = workspaceSchema.safeParse(raw)
  if (!parsed.success) {
    found.problems.push(...schemaProblems(parsed.error, path, workspaceSchema))
    return undefined
  }
  const { names, instructions, strict, policy: given, tools } = parsed.data
  const servers = serversOf(parsed.data.servers, path, around, found)
  const policy = given === undefined ? undefined : readPolicy(given, [...path, 'policy'], around.policies, found)
  if (!servers) return undefined
  const plain = plainRules(servers.length)
  return {
    ...plain,
    name,
    servers,
    names: names ?? plain.names,
    ...(instructions === undefined ? {} : { instructions }),
    strict,
    policy: policy ?? plain.policy,
    overlays: readOverlays(tools ?? {}, servers, [...path, 'tools'], found),
  }
}

const serversOf = (
  given: '*' | readonly string[],
  path: readonly string[],
  { servers, offered }: Surroundings,
  found: Findings,
): readonly string[] | undefined => {
  if (given === '*' || (given.length === 1 && given[0] === '*' && !servers.includes('*')))
    return offered.length > 0 ? offered : servers
  const stranger = given.findIndex(server => !servers.includes(server))
  if (stranger < 0) return [...new Set(given)]
  const server = given[stranger] ?? ''
  const meant = nearest(server, servers)
  const hint = meant ? `did you mean ${JSON.stringify(meant)}?` : `expected one of ${quoteAll(servers)}`
  found.problems.push({
    path: [...path, 'servers', stranger],
    message: `no server ${JSON.stringify(server)}; ${hint}`,
  })
  return undefined
}

/**
 * What there is when nobody names workspaces: `default` with every server that is not disabled, and one for each
 * server under its own name. A server called `default` has that name for itself.
 */
export const deriveWorkspaces = (
  servers: readonly ServerConfig[],
  isOffered: (server: ServerConfig) => boolean,
): WorkspaceConfig[] => {
  const names = servers.map(({ name }) => name)
  const offered = servers.filter(isOffered).map(({ name }) => name)
  const all = names.includes(DEFAULT_WORKSPACE) ? [DEFAULT_WORKSPACE] : offered.length > 0 ? offered : names.slice(0, 1)
  const taken = new Set([DEFAULT_WORKSPACE, ...names])
  const own = names
    .filter(name => name !== DEFAULT_WORKSPACE)
    .map(name => workspaceOf(WORKSPACE_NAME.test(name) ? name : slug(name, taken), [name]))
  return all.length > 0 ? [workspaceOf(DEFAULT_WORKSPACE, all), ...own] : []
}

/** A workspace nobody wrote anything about. */
const workspaceOf = (name: string, servers: readonly string[]): WorkspaceConfig => ({
  name,
  servers,
  ...plainRules(servers.length),
})

/** A name that can stand in a URL, like no other that is taken. */
const slug = (name: string, taken: Set<string>): string => {
  const plain = name.replace(/[^A-Za-z0-9._-]+/g, '-').replace(/^[^A-Za-z0-9]+|-+$/g, '') || 'server'
  for (let count = 1; ; count++) {
    const tail = count === 1 ? '' : `-${count}`
    const candidate = plain.slice(0, LONGEST_NAME - tail.length) + tail
    if (taken.has(candidate)) continue
    taken.add(candidate)
    return candidate
  }
}
