import { isDeepStrictEqual } from 'node:util'
import type { WorkspaceConfig } from '../config/snapshot.ts'
import { sizeOfTool } from '../protocol/measure-tool.ts'
import { type SizedTool, sumOfSizes, type ToolListSize, type ToolSize } from '../protocol/tool-size.ts'
import type { Json } from '../wire/json/json.ts'
import { previewWorkspace } from '../workspace/catalog/preview.ts'

/** The sizes of what servers list, for operators. */
export interface ToolSizes {
  /** Undefined: its tools are not known. */
  ofServer(server: string): ToolSize | undefined
  /** The largest first, at most ten. */
  largestOf(server: string): readonly SizedTool[]
  /** The largest first. */
  ofTools(server: string): readonly SizedTool[]
  ofWorkspace(config: WorkspaceConfig): ToolListSize
}

type ToolsOf = (server: string) => readonly Json[] | undefined

/** Each tool with its size, the largest first. */
export const sizedTools = (tools: readonly Json[]): readonly SizedTool[] =>
  tools
    .map(tool => ({ name: tool.get('name')?.asString() ?? '', ...sizeOfTool(tool) }))
    .sort((a, b) => b.tokens - a.tokens || (a.name < b.name ? -1 : 1))

const MOST_LARGEST = 10

interface KnownSize {
  readonly config: WorkspaceConfig
  readonly tools: readonly (readonly Json[] | undefined)[]
  readonly mostUsed: readonly string[]
  readonly size: ToolListSize
}

/** Computes sizes from the tools that servers have listed to the gateway; each is computed once for each list. */
export const createToolSizes = (
  toolsOf: ToolsOf,
  mostUsedIn: (config: WorkspaceConfig) => readonly string[],
): ToolSizes => {
  const servers = new WeakMap<readonly Json[], ToolSize>()
  const largest = new WeakMap<readonly Json[], readonly SizedTool[]>()
  const workspaces = new Map<string, KnownSize>()

  const measure = (config: WorkspaceConfig, tools: KnownSize['tools'], mostUsed: readonly string[]): ToolListSize => {
    const lists = config.servers.flatMap((server, at) => {
      const listed = tools[at]
      return listed ? [[server, { tools: listed, prompts: [], resources: [], templates: [] }] as const] : []
    })
    return previewWorkspace(config, new Map(lists), mostUsed).toolList
  }

  return {
    ofServer: server => {
      const tools = toolsOf(server)
      if (!tools) return undefined
      const size = servers.get(tools) ?? sumOfSizes(tools.map(sizeOfTool))
      servers.set(tools, size)
      return size
    },
    largestOf: server => {
      const tools = toolsOf(server)
      if (!tools) return []
      const found = largest.get(tools) ?? sizedTools(tools).slice(0, MOST_LARGEST)
      largest.set(tools, found)
      return found
    },
    ofTools: server => sizedTools(toolsOf(server) ?? []),
    ofWorkspace: config => {
      const tools = config.servers.map(toolsOf)
      const mostUsed = mostUsedIn(config)
      const before = workspaces.get(config.name)
      const isSame =
        before?.mostUsed.join('\n') === mostUsed.join('\n') &&
        before.tools.length === tools.length &&
        before.tools.every((list, at) => list === tools[at])
      if (isSame && (before.config === config || isDeepStrictEqual(before.config, config))) return before.size
      const size = measure(config, tools, mostUsed)
      workspaces.set(config.name, { config, tools, mostUsed, size })
      return size
    },
  }
}
