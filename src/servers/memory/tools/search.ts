import { checkDate, RequestError } from '../input-checks.ts'
import { searchEntities } from '../search/entities.ts'
import { searchFacts } from '../search/facts.ts'
import { type Search, searchPassages } from '../search/passages.ts'
import { readQuestion } from '../search/question.ts'
import { WEIGHTS } from '../search/weights.ts'
import type { FactFilter, MemoryStore } from '../store.ts'
import { GROUP_IDS, integer, maybe, optional, optionalText, required, textArgument, texts } from './arguments.ts'
import { presentEpisode, presentFact, presentNode, withinBytes } from './results.ts'
import { memoryTool, type ToolCall } from './tool.ts'

// Tools that search facts, entities and episodes.

const MOST_FOUND = 200

const QUERY = required(textArgument, 'Names, subjects and dates; a question in plain words is fine')
const CENTER = optionalText('The uuid of an entity: what is near it comes first')

export const searchNodes = memoryTool({
  name: 'search_nodes',
  title: 'Search entities',
  description:
    'Find the entities (people, places, things, preferences, procedures) that a query is about. ' +
    'Use it before a task to find what is known about its subject; use search_memory_facts for what is known about them.',
  effect: 'reads',
  args: {
    query: QUERY,
    group_ids: GROUP_IDS,
    max_nodes: optional(integer, 10, 'How many, at most'),
    entity_types: optional(maybe(texts), undefined, 'Only entities with one of these labels'),
    center_node_uuid: CENTER,
  },
  success: 'NodeSearchResponse',
  run: async (args, call) => {
    if (args.max_nodes <= 0) throw new RequestError('max_nodes must be a positive integer')
    const found = await searchEntities({
      ...(await searchFor(args, call)),
      limit: Math.min(args.max_nodes, MOST_FOUND),
      labels: args.entity_types,
      center: await centerOf(call.store, args.center_node_uuid),
    })
    if (found.length === 0) return { message: 'No relevant nodes found', nodes: [] }
    return { message: 'Nodes retrieved successfully', nodes: withinBytes(found.map(presentNode)).items }
  },
})

export const searchMemoryFacts = memoryTool({
  name: 'search_memory_facts',
  title: 'Search facts',
  description:
    'Find facts, the best first: statements about the people and things in a query, with the time they are valid. ' +
    'A fact with expired_at, or whose invalid_at has passed, is no longer valid. Ask with the words that matter; filter by time where you know it.',
  effect: 'reads',
  args: {
    query: QUERY,
    group_ids: GROUP_IDS,
    max_facts: optional(integer, 10, 'How many, at most'),
    center_node_uuid: CENTER,
    edge_types: optional(maybe(texts), undefined, 'Only facts with one of these relations'),
    valid_at_after: optionalText('Only facts that became true then or later, ISO 8601'),
    valid_at_before: optionalText('Only facts that became true then or earlier'),
    invalid_at_after: optionalText('Only facts that stopped being true then or later'),
    invalid_at_before: optionalText('Only facts that stopped being true then or earlier'),
    as_of: optionalText('Only facts that were true then'),
  },
  success: 'FactSearchResponse',
  run: async (args, call) => {
    if (args.max_facts <= 0) throw new RequestError('max_facts must be a positive integer')
    const found = await searchFacts({
      ...(await searchFor(args, call)),
      limit: Math.min(args.max_facts, MOST_FOUND),
      filter: filterOf(args),
      center: await centerOf(call.store, args.center_node_uuid),
    })
    if (found.length === 0) return { message: 'No relevant facts found', facts: [] }
    return { message: 'Facts retrieved successfully', facts: withinBytes(found.map(presentFact)).items }
  },
})

const MOST_PASSAGES = 3 // per episode
const LONGEST_CONTENT = 4_000 // characters; the resource of an episode has all of it

export const searchEpisodes = memoryTool({
  name: 'search_episodes',
  title: 'Search episodes',
  description:
    'Find episodes, the best first: the original texts, with the passages that match. Use it for the exact words, or for what no fact states. ' +
    `Content of more than ${LONGEST_CONTENT} characters is cut; read memory://episode/{uuid} for all of it.`,
  effect: 'reads',
  args: { query: QUERY, group_ids: GROUP_IDS, max_episodes: optional(integer, 10, 'How many, at most') },
  success: 'EpisodeSearchResponse',
  run: async (args, call) => {
    if (args.max_episodes <= 0) throw new RequestError('max_episodes must be a positive integer')
    const passages = await searchPassages(await searchFor(args, call))
    const uuids = [...new Set(passages.map(({ episode }) => episode))].slice(0, Math.min(args.max_episodes, MOST_FOUND))
    const found = (await call.store.episodesByUuid(uuids)).map(episode => ({
      ...presentEpisode(episode),
      content: shortened(episode.content),
      passages: passages
        .filter(passage => passage.episode === episode.uuid)
        .slice(0, MOST_PASSAGES)
        .map(({ text, actor }) => ({ text, actor: actor ?? null })),
    }))
    if (found.length === 0) return { message: 'No relevant episodes found', episodes: [] }
    return { message: 'Episodes retrieved successfully', episodes: withinBytes(found).items }
  },
})

const shortened = (text: string): string =>
  text.length <= LONGEST_CONTENT ? text : `${text.slice(0, LONGEST_CONTENT).replace(/[\uD800-\uDBFF]$/, '')}…` // not half of a character

const searchFor = async (
  { query, group_ids }: { readonly query: string; readonly group_ids: readonly string[] | undefined },
  { store, embed, groupsFor }: ToolCall,
): Promise<Search> => ({
  store,
  groups: groupsFor(group_ids),
  question: readQuestion(query, Date.now()),
  embedding: await embed(query),
  weights: WEIGHTS,
})

const centerOf = async (store: MemoryStore, uuid: string | undefined): Promise<number | undefined> => {
  if (!uuid) return undefined
  const entity = await store.entity(uuid)
  if (!entity) throw new RequestError(`center_node_uuid: node ${uuid} not found`)
  return entity.id
}

const DATE_FILTERS = {
  valid_at_after: 'validAfter',
  valid_at_before: 'validBefore',
  invalid_at_after: 'invalidAfter',
  invalid_at_before: 'invalidBefore',
  as_of: 'asOf',
} as const satisfies Readonly<Record<string, keyof FactFilter>>

type DateArguments = { readonly [K in keyof typeof DATE_FILTERS]: string | undefined }

const filterOf = (args: DateArguments & { readonly edge_types: readonly string[] | undefined }): FactFilter => {
  const dates = Object.entries(DATE_FILTERS).flatMap(([name, key]) => {
    const given = args[name as keyof DateArguments]
    return given?.trim() ? [[key, checkDate(given, `Invalid date filter: ${name}: `)] as const] : []
  })
  const { edge_types: names } = args
  return { ...Object.fromEntries(dates), ...(names && names.length > 0 && { names }) }
}
