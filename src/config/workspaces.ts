import { nearest, quoteAll, schemaProblems } from './problems.ts'
import type { Findings } from './remote.ts'
import { WORKSPACE_NAME, workspaceSchema } from './schema.ts'
import type { ServerConfig, WorkspaceConfig } from './snapshot.ts'

const LONGEST_NAME = 64

/** The workspace a door without a name leads to. */
export const DEFAULT_WORKSPACE = 'default'

/** Reads one entry of `workspaces`; undefined where it has problems. */
export const readWorkspace = (
  name: string,
  raw: unknown,
  servers: readonly string[],
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
    found.problems.push(...schemaProblems(parsed.error, path, Object.keys(workspaceSchema.shape)))
    return undefined
  }
  const stranger = parsed.data.servers.findIndex(server => !servers.includes(server))
  if (stranger >= 0) {
    const server = parsed.data.servers[stranger] ?? ''
    const meant = nearest(server, servers)
    const hint = meant ? `did you mean ${JSON.stringify(meant)}?` : `expected one of ${quoteAll(servers)}`
    found.problems.push({
      path: [...path, 'servers', stranger],
      message: `no server ${JSON.stringify(server)}; ${hint}`,
    })
    return undefined
  }
  return { name, servers: parsed.data.servers }
}

/** A workspace for each server under its own name, and `default` for the first that this release can serve. */
export const deriveWorkspaces = (
  servers: readonly ServerConfig[],
  canServe: (server: ServerConfig) => boolean,
): WorkspaceConfig[] => {
  const first = servers.find(server => server.name === DEFAULT_WORKSPACE) ?? servers.find(canServe) ?? servers[0]
  const taken = new Set([DEFAULT_WORKSPACE, ...servers.map(server => server.name)])
  const own = servers
    .filter(server => server.name !== DEFAULT_WORKSPACE)
    .map(server => ({
      name: WORKSPACE_NAME.test(server.name) ? server.name : slug(server.name, taken),
      servers: [server.name],
    }))
  return first ? [{ name: DEFAULT_WORKSPACE, servers: [first.name] }, ...own] : []
}

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
