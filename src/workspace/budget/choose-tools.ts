import type { ToolBudget } from '../../config/tool-list.ts'
import type { ToolSize } from '../../protocol/tool-size.ts'
import { compileGlob } from '../policy/globs.ts'
import { GATEWAY_TOOLS_SIZE } from './gateway-tools.ts'

/** What the choice depends on. */
interface ChoosableTool {
  readonly server: string
  readonly original: string // its name at the server
  readonly exposed: string
  readonly size: ToolSize
}

/**
 * The favourites that are listed because the tools exceed the budget, ordered by name, so that the list stays the same byte
 * for byte whatever order servers list their tools in. Undefined: all tools fit.
 */
export const chooseTools = <T extends ChoosableTool>(
  tools: readonly T[],
  { tokens, favourites }: ToolBudget,
  mostUsed: readonly string[], // `<server>/<tool>`, the most used first
): readonly T[] | undefined => {
  if (fits(tools, tokens)) return undefined
  let left = tokens - GATEWAY_TOOLS_SIZE.tokens
  const chosen: T[] = []
  for (const tool of favourites ? pinnedTools(tools, favourites) : usedTools(tools, mostUsed)) {
    if (tool.size.tokens > left) continue // a smaller one may still fit
    left -= tool.size.tokens
    chosen.push(tool)
  }
  return chosen.sort((a, b) => (a.exposed < b.exposed ? -1 : 1))
}

/** Stops measuring as soon as the budget is exceeded: a list may have thousands of tools. */
const fits = (tools: readonly ChoosableTool[], tokens: number): boolean => {
  let sum = 0
  for (const { size } of tools) {
    sum += size.tokens
    if (sum > tokens) return false
  }
  return true
}

const keyOf = ({ server, original }: ChoosableTool): string => `${server}/${original}`

/** In the order of the patterns: the first ones matter most if not all fit. */
const pinnedTools = <T extends ChoosableTool>(tools: readonly T[], favourites: readonly string[]): Iterable<T> => {
  const pinned = new Set<T>()
  for (const pattern of favourites) {
    const matches = compileGlob(pattern)
    for (const tool of tools) if (matches(keyOf(tool))) pinned.add(tool)
  }
  return pinned
}

const usedTools = <T extends ChoosableTool>(tools: readonly T[], mostUsed: readonly string[]): readonly T[] => {
  if (mostUsed.length === 0) return []
  const byKey = new Map(tools.map(tool => [keyOf(tool), tool]))
  return mostUsed.flatMap(key => byKey.get(key) ?? [])
}
