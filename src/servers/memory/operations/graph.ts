import type { MemoryScope } from '../../../protocol/memory-operations.ts'
import type { MemoryGraph } from '../../../protocol/memory-views.ts'
import { communitiesOf } from '../extract/communities.ts'
import type { WeightedLink } from '../store/entity-page.ts'
import type { CountedEntity, MemoryStore } from '../store.ts'
import { scopeFilter, scopeGroups } from './browse.ts'
import { nameOf } from './views.ts'

const MOST_LINKS = 20_000 // read to choose the nodes
const LINKS_PER_NODE = 4 // shown, the strongest first: more are a grey area
const MOST_NAMES = 2 // of members, in the name of a community

/** The most connected entities and the facts between them, with their communities. */
export const readGraph = async (store: MemoryStore, scope: MemoryScope, limit: number): Promise<MemoryGraph> => {
  const groups = scopeGroups(scope)
  const links = await store.weightedLinks(groups, scopeFilter(scope), MOST_LINKS)
  const wanted = strongest(links, limit)
  const linked = wanted.length === 0 ? [] : await store.entities(groups, limit, wanted)
  // At another time, entities without a link were perhaps not known yet.
  const others = scope.asOf === undefined && linked.length < limit ? await store.entities(groups, limit) : []
  const isLinked = new Set(linked.map(({ id }) => id))
  const entities = [...linked, ...others.filter(({ id }) => !isLinked.has(id))].slice(0, limit)
  const places = new Map(entities.map(({ id }, at) => [id, at]))
  const between = links.filter(({ from, to }) => places.has(from) && places.has(to))
  const communities = communitiesOf(between).toSorted((a, b) => b.length - a.length)
  const communityOf = new Map(communities.flatMap((members, at) => members.map(id => [id, at] as const)))
  return {
    nodes: entities.map(entity => ({
      ...nameOf(entity),
      group: entity.group,
      facts: entity.facts,
      community: communityOf.get(entity.id),
    })),
    links: between.slice(0, limit * LINKS_PER_NODE).map(({ from, to, facts }) => ({
      source: places.get(from) ?? 0,
      target: places.get(to) ?? 0,
      facts,
    })),
    communities: communities.map(members => communityName(members, entities, places)),
    total: await store.entityCount(groups),
  }
}

/** The entities with the most facts in these links. */
const strongest = (links: readonly WeightedLink[], limit: number): readonly number[] => {
  const weights = new Map<number, number>()
  for (const { from, to, facts } of links) for (const id of [from, to]) weights.set(id, (weights.get(id) ?? 0) + facts)
  return [...weights]
    .toSorted(([a, one], [b, other]) => other - one || a - b)
    .slice(0, limit)
    .map(([id]) => id)
}

/** Its most connected members. */
const communityName = (
  members: readonly number[],
  entities: readonly CountedEntity[],
  places: ReadonlyMap<number, number>,
): string =>
  members
    .map(id => places.get(id) ?? 0)
    .toSorted((a, b) => a - b)
    .slice(0, MOST_NAMES)
    .map(place => entities[place]?.name ?? '')
    .join(', ')
