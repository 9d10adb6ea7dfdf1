import type { WorkspaceConfig } from '../../config/snapshot.ts'
import { sizeOfTool } from '../../protocol/measure-tool.ts'
import type { NameCollision, ShadowedTool, WorkspaceReport } from '../../protocol/status.ts'
import { sumOfSizes, type ToolListSize, type ToolSize } from '../../protocol/tool-size.ts'
import type { Json } from '../../wire/json/json.ts'
import { chooseTools } from '../budget/choose-tools.ts'
import { DESCRIBE_TOOL_SIZE, GATEWAY_TOOLS, GATEWAY_TOOLS_SIZE } from '../budget/gateway-tools.ts'
import { trimTool } from '../budget/trim-tool.ts'
import { showOverlay } from '../policy/overlays.ts'
import { createPolicy, type PolicyRules } from '../policy/policy.ts'
import { LIST_KINDS, type ListKind } from './list-kinds.ts'
import { sizeOfNamed } from './list-size.ts'
import { exposedNames } from './names.ts'

/** All lists of one server. */
export type ServerLists = Readonly<Record<ListKind, readonly Json[]>>

interface PreviewItem {
  readonly server: string
  readonly original: string
  readonly name: string // with the overlay, without the prefix
  readonly as: string // the exposed name
  readonly shown: Json // with the overlay, and trimmed
  readonly whole: Json // the same before trimming
}

/** What a workspace would show of the servers that answered. */
export const previewWorkspace = (
  config: WorkspaceConfig,
  lists: ReadonlyMap<string, ServerLists>,
  mostUsed: readonly string[] = [], // `<server>/<tool>`, the most used first
): WorkspaceReport => {
  const rules = createPolicy(config.policy)
  const hidden = { policy: 0, overlays: 0 }
  const itemsOf = (kind: ListKind): PreviewItem[] => {
    const offers = config.servers.map(server => {
      const items = (lists.get(server)?.[kind] ?? []).map(item => show(config, rules, kind, server, item))
      for (const item of items) if (item.kind === 'hidden') hidden[item.by]++
      return { server, shown: items.filter(item => item.kind === 'shown') }
    })
    const names = offers.map(({ server, shown }) => ({ server, names: shown.map(({ name }) => name) }))
    const exposed = exposedNames(config.names, names, config.servers, config.nameLength)
    return offers.flatMap(({ server, shown }, o) =>
      shown.map(({ kind: _, ...item }, i) => ({ ...item, server, as: exposed[o]?.[i] ?? '' })),
    )
  }
  const [tools, prompts] = [itemsOf('tools'), itemsOf('prompts')]
  return {
    name: config.name,
    servers: config.servers,
    names: config.names,
    tools: [...new Set(tools.map(({ as }) => as))],
    toolList: sizeOfList(config, lists, tools, mostUsed),
    prompts: prompts.map(({ as }) => as),
    resources: itemsOf('resources').length + itemsOf('templates').length,
    hidden,
    collisions: config.names === 'plain' ? [...collisionsIn(tools), ...collisionsIn(prompts)] : [],
    unknown: unknownTools(config, lists),
    shadowed: shadowedIn(tools),
  }
}

type Visibility =
  | {
      readonly kind: 'shown'
      readonly original: string
      readonly name: string
      readonly shown: Json
      readonly whole: Json
    }
  | { readonly kind: 'hidden'; readonly by: 'policy' | 'overlays' }

const show = (config: WorkspaceConfig, rules: PolicyRules, kind: ListKind, server: string, item: Json): Visibility => {
  const original = item.get(LIST_KINDS[kind].key)?.asString() ?? ''
  const overlay = kind === 'tools' ? config.overlays.get(server)?.get(original) : undefined
  if (overlay?.hidden) return { kind: 'hidden', by: 'overlays' }
  const trimmed = kind === 'tools' && config.trim ? trimTool(item, config.trim) : item
  const [shown, whole] = [trimmed, item].map(each => (overlay ? showOverlay(each, overlay) : each)) as [Json, Json]
  if (!rules.allows(kind, server, original, shown)) return { kind: 'hidden', by: 'policy' }
  return { kind: 'shown', original, name: overlay?.name ?? original, shown, whole }
}

const sizeOfList = (
  { servers, budget, trim }: WorkspaceConfig,
  lists: ReadonlyMap<string, ServerLists>,
  tools: readonly PreviewItem[],
  mostUsed: readonly string[],
): ToolListSize => {
  const sized = tools.map(({ as: exposed, ...tool }) => {
    const named = { ...tool, exposed }
    return { ...named, size: sizeOfNamed(named) }
  })
  const all = sumOfSizes(sized.map(({ size }) => size))
  const unknown = servers.filter(server => !lists.has(server))
  const sizes = {
    tools: tools.length,
    all,
    unknown,
    ...(budget && { budget: budget.tokens }),
    ...(trim && { trimmed: savedBy(tools) }),
  }
  const chosen = budget && chooseTools(sized, budget, mostUsed)
  if (!chosen && trim && tools.length > 0)
    return { ...sizes, listed: sumOfSizes([DESCRIBE_TOOL_SIZE, all]), listedTools: 1 + tools.length }
  if (!chosen) return { ...sizes, listed: all, listedTools: tools.length }
  const listed = sumOfSizes([GATEWAY_TOOLS_SIZE, ...chosen.map(({ size }) => size)])
  return { ...sizes, listed, listedTools: GATEWAY_TOOLS.length + chosen.length }
}

/** What trimming has saved. */
const savedBy = (tools: readonly PreviewItem[]): ToolSize => {
  const [whole, shown] = (['whole', 'shown'] as const).map(form =>
    sumOfSizes(tools.map(tool => sizeOfTool(tool[form]))),
  )
  return {
    bytes: (whole?.bytes ?? 0) - (shown?.bytes ?? 0),
    tokens: (whole?.tokens ?? 0) - (shown?.tokens ?? 0),
  }
}

/** Groups of items with an equal name, of more than one item. */
const duplicates = (items: readonly PreviewItem[], key: 'name' | 'as'): readonly (readonly PreviewItem[])[] => {
  const groups = new Map<string, PreviewItem[]>()
  for (const item of items) groups.set(item[key], [...(groups.get(item[key]) ?? []), item])
  return [...groups.values()].filter(({ length }) => length > 1)
}

const collisionsIn = (items: readonly PreviewItem[]): NameCollision[] =>
  duplicates(items, 'name')
    .filter(group => new Set(group.map(({ server }) => server)).size > 1)
    .map(group => ({ name: group[0]?.name ?? '', shown: group.map(({ server, as }) => ({ server, as })) }))

/** Of tools with one exposed name only the first can be called. */
const shadowedIn = (tools: readonly PreviewItem[]): ShadowedTool[] =>
  duplicates(tools, 'as').flatMap(([first, ...others]) =>
    others.map(({ server, original, as }) => ({
      tool: `${server}/${original}`,
      by: `${first?.server}/${first?.original}`,
      as,
    })),
  )

/** Overlays of tools that a server does not have; only of servers that answered. */
const unknownTools = ({ overlays }: WorkspaceConfig, lists: ReadonlyMap<string, ServerLists>): string[] =>
  [...overlays].flatMap(([server, tools]) => {
    const listed = lists.get(server)?.tools
    if (!listed) return []
    const names = new Set(listed.map(item => item.get('name')?.asString()))
    return [...tools.keys()].filter(tool => !names.has(tool)).map(tool => `${server}/${tool}`)
  })
