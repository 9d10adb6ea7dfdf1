import type { PlainObject } from '../../../wire/json/json.ts'
import type { Entity, Episode, Fact, Instant, Job } from '../model.ts'

/** A moment as every client can read it; null where there is none. */
export const shownDate = (at: Instant | undefined): string | null =>
  at === undefined ? null : new Date(at).toISOString()

/** An entity in the words of the contract. */
export const shownNode = (entity: Entity): PlainObject => ({
  uuid: entity.uuid,
  name: entity.name,
  labels: entity.labels.includes('Entity') ? entity.labels : ['Entity', ...entity.labels],
  created_at: shownDate(entity.createdAt),
  summary: entity.summary || null,
  group_id: entity.group,
  attributes: entity.attributes as PlainObject,
})

/** A fact in short, as triplets and episodes show it. */
export const shownEdge = (fact: Fact): PlainObject => ({
  uuid: fact.uuid,
  name: fact.name,
  fact: fact.fact,
  source_node_uuid: fact.source,
  target_node_uuid: fact.target,
  group_id: fact.group,
  created_at: shownDate(fact.createdAt),
  valid_at: shownDate(fact.validAt),
  invalid_at: shownDate(fact.invalidAt),
})

/** A fact whole: what the contract has, and whose word it is. */
export const shownFact = (fact: Fact): PlainObject => ({
  uuid: fact.uuid,
  group_id: fact.group,
  source_node_uuid: fact.source,
  target_node_uuid: fact.target,
  created_at: shownDate(fact.createdAt),
  name: fact.name,
  fact: fact.fact,
  episodes: fact.episodes,
  expired_at: shownDate(fact.expiredAt),
  valid_at: shownDate(fact.validAt),
  invalid_at: shownDate(fact.invalidAt),
  reference_time: shownDate(fact.referenceTime),
  attributes: {
    ...(fact.attributes as PlainObject),
    origin: fact.origin,
    confidence: fact.confidence,
    ...(fact.granularity && { valid_at_granularity: fact.granularity }),
    ...(fact.supersededBy && { superseded_by: fact.supersededBy }),
  },
})

/** An episode as it was told. */
export const shownEpisode = (episode: Episode): PlainObject => ({
  uuid: episode.uuid,
  name: episode.name,
  content: episode.content,
  created_at: shownDate(episode.createdAt),
  valid_at: shownDate(episode.validAt),
  source: episode.source,
  source_description: episode.sourceDescription,
  group_id: episode.group,
})

/** A piece of background work. */
export const shownJob = (job: Job): PlainObject => ({
  id: job.id,
  kind: job.kind,
  state: job.state,
  group_id: job.group,
  episode_uuid: job.episode ?? null,
  attempts: job.attempts,
  next_at: shownDate(job.nextAt),
  error: job.error ?? null,
  created_at: shownDate(job.createdAt),
})
