import { fuse } from '../../../text/rank.ts'
import type { Entity } from '../model.ts'
import { nearestRows, rankPassages, type Search } from './passages.ts'
import { distinct, sortByDistance } from './ranking.ts'

export interface EntitySearch extends Search {
  readonly limit: number
  /** Only entities with one of these labels. */
  readonly labels?: readonly string[] | undefined
  /** Entities near this one come first. */
  readonly center?: number | undefined
}

const MOST_EPISODES = 20 // whose entities are read

/** The entities of the best passages' episodes, in the order of the passages. */
const mentioned = async (search: EntitySearch): Promise<Entity[]> => {
  const docs = await rankPassages(search)
  const episodes = [...new Set(docs.map(({ episodeId }) => episodeId))].slice(0, MOST_EPISODES)
  const found = await search.store.entitiesOfEpisodes(episodes)
  const places = new Map(episodes.map((id, place) => [id, place]))
  return distinct(found.toSorted((a, b) => (places.get(a.episodeId) ?? 0) - (places.get(b.episodeId) ?? 0)))
}

const listsOf = async (search: EntitySearch) => {
  const { store, groups, question, weights } = search
  const { terms, names } = question
  const { candidates: limit, fusion } = weights
  const named = names.length === 0 ? [] : await store.entitiesNamed(names, groups)
  const found =
    terms.length === 0 ? [] : await store.searchEntities({ terms, groups, limit, weights: weights.entities })
  return [
    { entities: distinct(named.toSorted((a, b) => b.norm.length - a.norm.length)), weight: fusion.named },
    { entities: found, weight: fusion.given },
    { entities: await mentioned(search), weight: fusion.graph },
  ]
}

const hasLabel = (entity: Entity, labels: readonly string[] | undefined): boolean =>
  labels === undefined || labels.length === 0 || entity.labels.some(label => labels.includes(label))

/** The entities a query is about, best first. */
export const searchEntities = async (search: EntitySearch): Promise<readonly Entity[]> => {
  const { store, weights, labels, limit, center } = search
  const lists = await listsOf(search)
  const entities = new Map(lists.flatMap(list => list.entities.map(entity => [entity.id, entity])))
  const near = await nearestRows(search, 'entity')
  for (const entity of await store.entitiesById(near.filter(id => !entities.has(id)))) entities.set(entity.id, entity)
  const fused = fuse(
    [
      ...lists.map(list => ({ keys: list.entities.map(({ id }) => id), weight: list.weight })),
      { keys: near, weight: weights.fusion.vectors },
    ],
    weights.fusion.constant,
  )
  const best = [...fused.keys()].flatMap(id => entities.get(id) ?? []).filter(entity => hasLabel(entity, labels))
  return (await sortByDistance(store, best, center, ({ id }) => [id])).slice(0, limit)
}
