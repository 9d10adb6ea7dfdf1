import type { EntityName, EntityView, EpisodeView, FactView } from '../../../protocol/memory-views.ts'
import type { Entity, Episode, Fact } from '../model.ts'
import type { CountedEntity, MemoryStore } from '../store.ts'

const MOST_EPISODES = 5 // named beside a fact

export const nameOf = ({ uuid, name }: Entity): EntityName => ({ id: uuid, name })

export const entityView = (entity: CountedEntity): EntityView => {
  const { group, labels, summary, facts } = entity
  return { ...nameOf(entity), group, labels, summary, facts }
}

export const episodeView = (episode: Episode, characters = episode.content.length): EpisodeView => ({
  id: episode.uuid,
  group: episode.group,
  name: episode.name,
  source: episode.source,
  description: episode.sourceDescription,
  at: episode.validAt,
  storedAt: episode.createdAt,
  saga: episode.saga,
  state: episode.state,
  error: episode.error,
  text: episode.content,
  characters,
})

/** Facts with the names of their entities and of the episodes that state them. */
export const factViews = async (store: MemoryStore, facts: readonly Fact[]): Promise<FactView[]> => {
  const entities = await store.entitiesById([...new Set(facts.flatMap(fact => [fact.sourceId, fact.targetId]))])
  const byId = new Map(entities.map(entity => [entity.id, nameOf(entity)]))
  const stated = facts.flatMap(({ episodes }) => episodes.slice(0, MOST_EPISODES))
  const names = stated.length === 0 ? new Map<string, string>() : await store.episodeNames([...new Set(stated)])
  return facts.map(fact => ({
    id: fact.uuid,
    group: fact.group,
    text: fact.fact,
    relation: fact.name,
    source: byId.get(fact.sourceId) ?? { id: fact.source, name: '' },
    target: byId.get(fact.targetId) ?? { id: fact.target, name: '' },
    validFrom: fact.validAt,
    validUntil: fact.invalidAt,
    learntAt: fact.createdAt,
    retiredAt: fact.expiredAt,
    origin: fact.origin,
    confidence: fact.confidence,
    supersededBy: fact.supersededBy,
    episodes: fact.episodes.slice(0, MOST_EPISODES).flatMap(id => {
      const name = names.get(id)
      return name === undefined ? [] : [{ id, name }]
    }),
  }))
}
