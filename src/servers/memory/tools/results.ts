import type { PlainObject } from '../../../wire/json/json.ts'
import type { Entity, Episode, Fact, Instant, Job } from '../model.ts'

const nullable = (type: string): PlainObject => ({ anyOf: [{ type }, { type: 'null' }] })
const string: PlainObject = { type: 'string' }
const free: PlainObject = { additionalProperties: true, type: 'object' }

const object = (properties: Readonly<Record<string, PlainObject>>, more = false): PlainObject => ({
  ...(more && { additionalProperties: true }),
  properties,
  required: Object.keys(properties),
  type: 'object',
})

const list = (items: PlainObject): PlainObject => ({ items, type: 'array' })
const named = (name: string): PlainObject => ({ $ref: `#/$defs/${name}` })

const GRAPH = object({ message: string, nodes: list(named('NodeResult')), edges: list(named('EdgeResult')) })

/** The schemas of results, by the names that the contract gives them. */
export const RESULTS = {
  ErrorResponse: object({ error: string }),
  SuccessResponse: object({ message: string }),
  StatusResponse: object({ status: string, message: string }),
  NodeResult: object({
    uuid: string,
    name: string,
    labels: list(string),
    created_at: nullable('string'),
    summary: nullable('string'),
    group_id: string,
    attributes: free,
  }),
  EdgeResult: object({
    uuid: string,
    name: string,
    fact: string,
    source_node_uuid: string,
    target_node_uuid: string,
    group_id: string,
    created_at: nullable('string'),
    valid_at: nullable('string'),
    invalid_at: nullable('string'),
  }),
  CommunityResult: object({ uuid: string, name: string, group_id: string, summary: nullable('string') }),
  NodeSearchResponse: object({ message: string, nodes: list(named('NodeResult')) }),
  FactSearchResponse: object({ message: string, facts: list(free) }),
  EpisodeSearchResponse: object({ message: string, episodes: list(free) }),
  TripletResponse: GRAPH,
  EpisodeEntitiesResponse: GRAPH,
  SagaSummaryResponse: object({ message: string, uuid: string, name: string, summary: string }),
  BuildCommunitiesResponse: object({
    message: string,
    community_count: { type: 'integer' },
    edge_count: { type: 'integer' },
    communities: list(named('CommunityResult')),
  }),
  WriteResponse: object({ message: string, uuid: string, group_id: string }),
  JobsResponse: object({ message: string, jobs: list(free) }),
  ExportResponse: object({ message: string, lines: { type: 'integer' }, jsonl: string, next: nullable('integer') }),
  ImportResponse: object({ message: string, imported: free }),
  ForgetResponse: object({ message: string, proof: free }),
} as const satisfies Readonly<Record<string, PlainObject>>

export type ResultName = keyof typeof RESULTS

/** An output schema whose `result` is the named success or an error; its `$defs` has only the schemas it refers to. */
export const outputSchema = (success: ResultName | PlainObject): PlainObject => {
  const isNamed = typeof success === 'string'
  const names = [...(isNamed ? [success, ...partsOf(success)] : []), 'ErrorResponse' as const]
  return {
    $defs: Object.fromEntries(names.map(name => [name, RESULTS[name]])),
    properties: { result: { anyOf: [isNamed ? named(success) : success, named('ErrorResponse')] } },
    required: ['result'],
    type: 'object',
  }
}

/** The contract does not specify the members of an edge. */
export const ANY_OBJECT: PlainObject = free

const partsOf = (name: ResultName): ResultName[] => {
  const refs = JSON.stringify(RESULTS[name]).matchAll(/#\/\$defs\/(\w+)/g)
  return [...new Set([...refs].map(match => match[1] as ResultName))]
}

export const isoDate = (at: Instant | undefined): string | null =>
  at === undefined ? null : new Date(at).toISOString()

export const presentNode = (entity: Entity): PlainObject => ({
  uuid: entity.uuid,
  name: entity.name,
  labels: entity.labels.includes('Entity') ? entity.labels : ['Entity', ...entity.labels],
  created_at: isoDate(entity.createdAt),
  summary: entity.summary || null,
  group_id: entity.group,
  attributes: entity.attributes as PlainObject,
})

/** All of a fact: the members of the contract, and its origin. */
export const presentFact = (fact: Fact): PlainObject => ({
  uuid: fact.uuid,
  group_id: fact.group,
  source_node_uuid: fact.source,
  target_node_uuid: fact.target,
  created_at: isoDate(fact.createdAt),
  name: fact.name,
  fact: fact.fact,
  episodes: fact.episodes,
  expired_at: isoDate(fact.expiredAt),
  valid_at: isoDate(fact.validAt),
  invalid_at: isoDate(fact.invalidAt),
  reference_time: isoDate(fact.referenceTime),
  attributes: {
    ...(fact.attributes as PlainObject),
    origin: fact.origin,
    confidence: fact.confidence,
    ...(fact.granularity && { valid_at_granularity: fact.granularity }),
    ...(fact.supersededBy && { superseded_by: fact.supersededBy }),
  },
})

const EDGE_MEMBERS = Object.keys(RESULTS.EdgeResult.properties as object)

/** The short form of a fact, for triplets and episodes. */
export const presentEdge = (fact: Fact): PlainObject => {
  const whole = presentFact(fact)
  return Object.fromEntries(EDGE_MEMBERS.map(key => [key, whole[key] ?? null]))
}

export const presentEpisode = (episode: Episode): PlainObject => ({
  uuid: episode.uuid,
  name: episode.name,
  content: episode.content,
  created_at: isoDate(episode.createdAt),
  valid_at: isoDate(episode.validAt),
  source: episode.source,
  source_description: episode.sourceDescription,
  group_id: episode.group,
})

export const presentJob = (job: Job): PlainObject => ({
  id: job.id,
  kind: job.kind,
  state: job.state,
  group_id: job.group,
  episode_uuid: job.episode ?? null,
  attempts: job.attempts,
  next_at: isoDate(job.nextAt),
  error: job.error ?? null,
  created_at: isoDate(job.createdAt),
})

/** The largest list in one result: a model cannot read more, and its host pays for all of it. */
export const MOST_BYTES = 1024 * 1024

/** The first items that fit into one result, at least one, and how many are left. */
export const withinBytes = (
  items: readonly PlainObject[],
  most = MOST_BYTES,
): { readonly items: readonly PlainObject[]; readonly left: number } => {
  let bytes = 0
  const end = items.findIndex((item, at) => {
    bytes += Buffer.byteLength(JSON.stringify(item))
    return at > 0 && bytes > most
  })
  return end < 0 ? { items, left: 0 } : { items: items.slice(0, end), left: items.length - end }
}
