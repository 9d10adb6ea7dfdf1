import type { WorkspaceConfig } from '../config/snapshot.ts'
import type { FlaggedTool } from '../protocol/pins.ts'
import { flagNames } from '../safety/flag-names.ts'
import { flagTool } from '../safety/flag-tool.ts'
import type { Json } from '../wire/json/json.ts'

/** The tools that break a rule of docs/tool-safety.md, for operators. */
export interface ToolFlags {
  ofServer(server: string): readonly FlaggedTool[]
  all(): readonly FlaggedTool[]
}

type ToolsOf = (server: string) => readonly Json[] | undefined

interface KnownFlags {
  readonly workspaces: readonly WorkspaceConfig[]
  readonly tools: readonly (readonly Json[] | undefined)[]
  readonly flags: readonly FlaggedTool[]
}

const MOST_EACH = 100 // of one server

/** Flags tools as servers have listed them to the gateway; each list is read once. */
export const createToolFlags = (toolsOf: ToolsOf, workspaces: () => Iterable<WorkspaceConfig>): ToolFlags => {
  const single = new WeakMap<readonly Json[], readonly FlaggedTool[]>()
  let latest: KnownFlags | undefined

  const ofTools = (server: string, tools: readonly Json[]): readonly FlaggedTool[] => {
    const known = single.get(tools)
    if (known) return known
    const flags = tools.flatMap(tool =>
      flagTool(tool).map(flag => ({ server, tool: tool.get('name')?.asString() ?? '', flag })),
    )
    single.set(tools, flags)
    return flags
  }

  /** The same pair of servers may share several workspaces. */
  const all = (): readonly FlaggedTool[] => {
    const configs = [...workspaces()]
    const servers = [...new Set(configs.flatMap(({ servers }) => servers))]
    const tools = servers.map(toolsOf)
    const isSame =
      latest?.tools.length === tools.length &&
      tools.every((list, at) => list === latest?.tools[at]) &&
      configs.every((config, at) => config === latest?.workspaces[at])
    if (latest && isSame) return latest.flags
    const found = new Map<string, FlaggedTool>()
    const add = (flagged: FlaggedTool): unknown => found.set(JSON.stringify(flagged), flagged)
    for (const [at, server] of servers.entries()) for (const flagged of ofTools(server, tools[at] ?? [])) add(flagged)
    for (const { servers: members, names } of configs) {
      const listed = members.map(server => ({ server, tools: toolsOf(server) ?? [] }))
      if (members.length > 1) for (const flagged of flagNames(listed, names === 'plain')) add(flagged)
    }
    latest = { workspaces: configs, tools, flags: [...found.values()] }
    return latest.flags
  }

  return {
    all,
    ofServer: server =>
      all()
        .filter(flagged => flagged.server === server)
        .slice(0, MOST_EACH),
  }
}
