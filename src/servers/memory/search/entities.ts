import type { Entity } from '../model.ts'
import { surroundingsOf } from './distance.ts'
import { fuse } from './fuse.ts'
import { type Search, searchPassages } from './passages.ts'

/** A search for entities. */
export interface EntitySearch extends Search {
  readonly limit: number
  /** Only entities with one of these labels. */
  readonly labels?: readonly string[] | undefined
  /** Entities near this one come first. */
  readonly center?: number | undefined
}

const CENTER_HOPS = 4
const MOST_EPISODES = 20 // whose entities are looked at

/** Entities of the best passages' episodes, those of the best first. */
const mentioned = async (search: EntitySearch): Promise<Entity[]> => {
  const docs = await searchPassages(search)
  const episodes = [...new Set(docs.map(({ episodeId }) => episodeId))].slice(0, MOST_EPISODES)
  const found = await search.store.entitiesOfEpisodes(episodes)
  const places = new Map(episodes.map((id, place) => [id, place]))
  const inOrder = found.toSorted((a, b) => (places.get(a.episodeId) ?? 0) - (places.get(b.episodeId) ?? 0))
  return [...new Map(inOrder.map(entity => [entity.id, entity])).values()]
}

const nearest = async ({ store, groups, embedding, weights }: EntitySearch): Promise<number[]> => {
  if (!embedding) return []
  const rows = await store.nearest({ kind: 'entity', ...embedding, groups, limit: weights.candidates })
  return rows.map(({ rowId }) => rowId)
}

const listsOf = async (search: EntitySearch) => {
  const { store, groups, question, weights } = search
  const { terms, names } = question
  const { candidates: limit, fusion } = weights
  const named = names.length === 0 ? [] : await store.entitiesNamed(names, groups)
  const longestFirst = named.toSorted((a, b) => b.norm.length - a.norm.length)
  const found =
    terms.length === 0 ? [] : await store.searchEntities({ terms, groups, limit, weights: weights.entities })
  return [
    { entities: [...new Map(longestFirst.map(entity => [entity.id, entity])).values()], weight: fusion.named },
    { entities: found, weight: fusion.given },
    { entities: await mentioned(search), weight: fusion.graph },
  ]
}

const hasLabel = (entity: Entity, labels: readonly string[] | undefined): boolean =>
  labels === undefined || labels.length === 0 || entity.labels.some(label => labels.includes(label))

/** The entities a query is about, best first. */
export const searchEntities = async (search: EntitySearch): Promise<Entity[]> => {
  const { store, weights, labels, limit, center } = search
  const lists = await listsOf(search)
  const entities = new Map(lists.flatMap(list => list.entities.map(entity => [entity.id, entity])))
  const near = await nearest(search)
  for (const entity of await store.entitiesById(near.filter(id => !entities.has(id)))) entities.set(entity.id, entity)
  const fused = fuse(
    [
      ...lists.map(list => ({ keys: list.entities.map(({ id }) => id), weight: list.weight })),
      { keys: near, weight: weights.fusion.vectors },
    ],
    weights.fusion.constant,
  )
  const best = [...fused.keys()].flatMap(id => entities.get(id) ?? []).filter(entity => hasLabel(entity, labels))
  if (center === undefined) return best.slice(0, limit)
  const { distances } = await surroundingsOf(store, [center], CENTER_HOPS)
  const hopsTo = ({ id }: Entity) => distances.get(id) ?? CENTER_HOPS + 1
  return best.toSorted((a, b) => hopsTo(a) - hopsTo(b)).slice(0, limit)
}
