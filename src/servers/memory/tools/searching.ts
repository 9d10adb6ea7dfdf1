import type { Tool } from '../../define/tools.ts'
import type { Desk } from '../desk.ts'
import { Refusal } from '../refusal.ts'
import { searchEntities } from '../search/entities.ts'
import { searchFacts } from '../search/facts.ts'
import type { Embedding, Search } from '../search/passages.ts'
import { readQuestion } from '../search/question.ts'
import { WEIGHTS } from '../search/weights.ts'
import type { FactFilter, MemoryStore } from '../store.ts'
import { groups, integer, maybe, optional, required, text, texts } from './arguments.ts'
import { withinBytes } from './bounds.ts'
import { notADate, readDate } from './dates.ts'
import { shownFact, shownNode } from './present.ts'
import { memoryTool } from './tool.ts'

/** A query as a vector, where an endpoint for that is configured; undefined also while it does not answer. */
export type Embed = (text: string) => Promise<Embedding | undefined>

const MOST_FOUND = 200

const GROUPS = optional(groups, undefined, 'A group or a list of groups; the default group when absent')
const CENTER = optional(maybe(text), undefined, 'The uuid of an entity: what is near it comes first')

const searchNodes = (desk: Desk, embed: Embed): Tool =>
  memoryTool({
    name: 'search_nodes',
    title: 'Search entities',
    description:
      'Find the entities (people, places, things, preferences, procedures) that a query is about. ' +
      'Use it before a task to find what is known about its subject; use search_memory_facts for what is known about them.',
    effect: 'reads',
    args: {
      query: required(text, 'Names, subjects and dates; a question in plain words is fine'),
      group_ids: GROUPS,
      max_nodes: optional(integer, 10, 'How many, at most'),
      entity_types: optional(maybe(texts), undefined, 'Only entities with one of these labels'),
      center_node_uuid: CENTER,
    },
    success: 'NodeSearchResponse',
    run: args =>
      desk.with(async store => {
        if (args.max_nodes <= 0) throw new Refusal('max_nodes must be a positive integer')
        const found = await searchEntities({
          ...(await searchFor(desk, store, args, embed)),
          limit: Math.min(args.max_nodes, MOST_FOUND),
          labels: args.entity_types,
          center: await centerOf(store, args.center_node_uuid),
        })
        if (found.length === 0) return { message: 'No relevant nodes found', nodes: [] }
        return { message: 'Nodes retrieved successfully', nodes: withinBytes(found.map(shownNode)).items }
      }),
  })

const searchMemoryFacts = (desk: Desk, embed: Embed): Tool =>
  memoryTool({
    name: 'search_memory_facts',
    title: 'Search facts',
    description:
      'Find facts, the best first: what was stated or said about the people and things in a query, with the time it holds. ' +
      'A fact with invalid_at or expired_at no longer holds. Ask with the words that matter; filter by time where you know it.',
    effect: 'reads',
    args: {
      query: required(text, 'Names, subjects and dates; a question in plain words is fine'),
      group_ids: GROUPS,
      max_facts: optional(integer, 10, 'How many, at most'),
      center_node_uuid: CENTER,
      edge_types: optional(maybe(texts), undefined, 'Only facts with one of these relations'),
      valid_at_after: optional(maybe(text), undefined, 'Only facts that became true then or later, ISO 8601'),
      valid_at_before: optional(maybe(text), undefined, 'Only facts that became true then or earlier'),
      invalid_at_after: optional(maybe(text), undefined, 'Only facts that stopped being true then or later'),
      invalid_at_before: optional(maybe(text), undefined, 'Only facts that stopped being true then or earlier'),
    },
    success: 'FactSearchResponse',
    run: args =>
      desk.with(async store => {
        if (args.max_facts <= 0) throw new Refusal('max_facts must be a positive integer')
        const found = await searchFacts({
          ...(await searchFor(desk, store, args, embed)),
          limit: Math.min(args.max_facts, MOST_FOUND),
          filter: filterOf(args),
          center: await centerOf(store, args.center_node_uuid),
        })
        if (found.length === 0) return { message: 'No relevant facts found', facts: [] }
        return { message: 'Facts retrieved successfully', facts: withinBytes(found.map(shownFact)).items }
      }),
  })

interface Asked {
  readonly query: string
  readonly group_ids: readonly string[] | undefined
}

const searchFor = async (desk: Desk, store: MemoryStore, asked: Asked, embed: Embed): Promise<Search> => ({
  store,
  groups: desk.groupsFor(asked.group_ids),
  question: readQuestion(asked.query, Date.now()),
  embedding: await embed(asked.query),
  weights: WEIGHTS,
})

const centerOf = async (store: MemoryStore, uuid: string | undefined): Promise<number | undefined> => {
  if (!uuid) return undefined
  const entity = await store.entity(uuid)
  if (!entity) throw new Refusal(`center_node_uuid: node ${uuid} not found`)
  return entity.id
}

const BOUNDS = {
  valid_at_after: 'validAfter',
  valid_at_before: 'validBefore',
  invalid_at_after: 'invalidAfter',
  invalid_at_before: 'invalidBefore',
} as const satisfies Readonly<Record<string, keyof FactFilter>>

type Bounds = { readonly [K in keyof typeof BOUNDS]: string | undefined }

const filterOf = (args: Bounds & { readonly edge_types: readonly string[] | undefined }): FactFilter => {
  const bounds = Object.entries(BOUNDS).flatMap(([name, key]) => {
    const given = args[name as keyof Bounds]
    if (given === undefined || given.trim() === '') return []
    const at = readDate(given)
    if (at === undefined) throw new Refusal(`Invalid date filter: ${name}: ${notADate(given)}`)
    return [[key, at] as const]
  })
  const { edge_types: names } = args
  return { ...Object.fromEntries(bounds), ...(names && names.length > 0 && { names }) }
}

/** The tools that find things. */
export const searchingTools = (desk: Desk, embed: Embed) => ({
  searchNodes: searchNodes(desk, embed),
  searchMemoryFacts: searchMemoryFacts(desk, embed),
})
