import type { PlainObject } from '../../../wire/json/json.ts'

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

/** Shapes of results by the names the contract gives them. */
export const SHAPES = {
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
  TripletResponse: object({ message: string, nodes: list(named('NodeResult')), edges: list(named('EdgeResult')) }),
  EpisodeEntitiesResponse: object({
    message: string,
    nodes: list(named('NodeResult')),
    edges: list(named('EdgeResult')),
  }),
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

export type ShapeName = keyof typeof SHAPES

/** An output schema: `result` is the success named, or a failure. Only the shapes it needs are written into it. */
export const resultOf = (success: ShapeName | PlainObject): PlainObject => {
  const isNamed = typeof success === 'string'
  const names = [...(isNamed ? [success, ...partsOf(success)] : []), 'ErrorResponse' as const]
  return {
    $defs: Object.fromEntries(names.map(name => [name, SHAPES[name]])),
    properties: { result: { anyOf: [isNamed ? named(success) : success, named('ErrorResponse')] } },
    required: ['result'],
    type: 'object',
  }
}

/** Any object: the contract does not say what an edge looks like. */
export const ANY_OBJECT: PlainObject = free

const partsOf = (name: ShapeName): ShapeName[] => {
  const refs = JSON.stringify(SHAPES[name]).matchAll(/#\/\$defs\/(\w+)/g)
  return [...new Set([...refs].map(match => match[1] as ShapeName))]
}
