import type { WorkspaceConfig } from '../../config/snapshot.ts'
import type { Collision, Shadowed, WorkspaceReport } from '../../protocol/inspection.ts'
import type { Json } from '../../wire/json/json.ts'
import { showOverlay } from '../policy/overlays.ts'
import { createPolicy, type PolicyRules } from '../policy/policy.ts'
import { LIST_KINDS } from './kinds.ts'
import { exposedNames } from './names.ts'
import type { ListKind } from './view.ts'

/** Everything a server lists, each thing once. */
export type ServerLists = Readonly<Record<ListKind, readonly Json[]>>

/** One thing that would be shown. */
interface Shown {
  readonly server: string
  readonly original: string
  readonly name: string // what it would be called if names were plain
  readonly as: string
}

/** What a workspace would show, worked out from what its servers list: a server that is not there shows nothing. */
export const previewWorkspace = (
  config: WorkspaceConfig,
  offerings: ReadonlyMap<string, ServerLists>,
): WorkspaceReport => {
  const rules = createPolicy(config.policy)
  const hidden = { policy: 0, overlays: 0 }
  const pick = (kind: ListKind): Shown[] => {
    const picks = config.servers.map(server => {
      const seen = (offerings.get(server)?.[kind] ?? []).map(item => see(config, rules, kind, server, item))
      for (const sight of seen) if (sight.kind === 'hidden') hidden[sight.by]++
      return { server, shown: seen.filter(sight => sight.kind === 'shown') }
    })
    const offers = picks.map(({ server, shown }) => ({ server, names: shown.map(({ name }) => name) }))
    const names = exposedNames(config.names, offers, config.servers)
    return picks.flatMap(({ server, shown }, p) =>
      shown.map(({ original, name }, i) => ({ server, original, name, as: names[p]?.[i] ?? '' })),
    )
  }
  const [tools, prompts] = [pick('tools'), pick('prompts')]
  const shadowed = shadowedIn(tools)
  return {
    name: config.name,
    servers: config.servers,
    names: config.names,
    tools: [...new Set(tools.map(({ as }) => as))],
    prompts: prompts.map(({ as }) => as),
    resources: pick('resources').length + pick('templates').length,
    hidden,
    collisions: config.names === 'plain' ? [...collisions(tools), ...collisions(prompts)] : [],
    unknown: unknownTools(config, offerings),
    shadowed,
  }
}

type Sight =
  | { readonly kind: 'shown'; readonly original: string; readonly name: string }
  | { readonly kind: 'hidden'; readonly by: 'policy' | 'overlays' }

const see = (config: WorkspaceConfig, rules: PolicyRules, kind: ListKind, server: string, item: Json): Sight => {
  const original = item.get(LIST_KINDS[kind].key)?.asString() ?? ''
  const overlay = kind === 'tools' ? config.overlays.get(server)?.get(original) : undefined
  if (overlay?.hidden) return { kind: 'hidden', by: 'overlays' }
  if (!rules.allows(kind, server, original, overlay ? showOverlay(item, overlay) : item))
    return { kind: 'hidden', by: 'policy' }
  return { kind: 'shown', original, name: overlay?.name ?? original }
}

const grouped = (all: readonly Shown[], key: 'name' | 'as'): readonly (readonly Shown[])[] => {
  const groups = new Map<string, Shown[]>()
  for (const shown of all) groups.set(shown[key], [...(groups.get(shown[key]) ?? []), shown])
  return [...groups.values()].filter(({ length }) => length > 1)
}

const collisions = (all: readonly Shown[]): Collision[] =>
  grouped(all, 'name')
    .filter(group => new Set(group.map(({ server }) => server)).size > 1)
    .map(group => ({ name: group[0]?.name ?? '', shown: group.map(({ server, as }) => ({ server, as })) }))

/** Of those with one shown name the first counts. */
const shadowedIn = (tools: readonly Shown[]): Shadowed[] =>
  grouped(tools, 'as').flatMap(([first, ...others]) =>
    others.map(({ server, original, as }) => ({
      tool: `${server}/${original}`,
      by: `${first?.server}/${first?.original}`,
      as,
    })),
  )

/** Only of servers that have answered: of the others nobody knows. */
const unknownTools = ({ overlays }: WorkspaceConfig, offerings: ReadonlyMap<string, ServerLists>): string[] =>
  [...overlays].flatMap(([server, tools]) => {
    const offered = offerings.get(server)?.tools
    if (!offered) return []
    const names = new Set(offered.map(item => item.get('name')?.asString()))
    return [...tools.keys()].filter(tool => !names.has(tool)).map(tool => `${server}/${tool}`)
  })
