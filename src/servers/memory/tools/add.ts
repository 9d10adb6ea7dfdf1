import { randomUUID } from 'node:crypto'
import { checkDate, checkLength, LONGEST, RequestError } from '../input-checks.ts'
import type { NewFact } from '../model.ts'
import { sourceOf, titleOf } from '../remember.ts'
import { StatementError } from '../store.ts'
import {
  ArgumentsError,
  boundedText,
  dateArgument,
  flagArgument,
  listArgument,
  maybe,
  member,
  objectArgument,
  optional,
  optionalText,
  record,
  required,
  shareArgument,
  textArgument,
  texts,
  type Values,
} from './arguments.ts'
import { presentEdge, presentNode } from './results.ts'
import { memoryTool } from './tool.ts'

// Tools that store episodes, texts and facts.

const MOST_STATED = 500

const nameText = boundedText(LONGEST.name)
const sentence = boundedText(LONGEST.sentence)
const names = listArgument(nameText, 'strings')

const ENTITY = {
  name: required(nameText),
  labels: member(names, 'What it is: Person, Preference, Procedure, Organization …'),
  aliases: member(names, 'Other names it goes by'),
  summary: member(sentence),
  attributes: member(objectArgument),
}

const FACT = {
  source: required(nameText, 'Whom or what it is about'),
  name: member(nameText, 'The relation, like WORKS_AT'),
  target: required(nameText, 'The other end'),
  fact: required(sentence, 'The fact as a sentence that can stand alone'),
  valid_at: member(dateArgument),
  invalid_at: member(dateArgument),
  supersedes: member(names, 'uuids of facts that no longer hold because of this one'),
  single_valued: member(flagArgument, 'The source has one such relation at a time: an older one ends'),
  confidence: member(shareArgument),
  attributes: member(objectArgument),
}

const STATED_ENTITIES = listArgument(record(ENTITY), 'entities', MOST_STATED)
const STATED_FACTS = listArgument(record(FACT, { relation: 'name' }), 'facts', MOST_STATED)

/** The fact to store for a stated one. */
const newFact = (stated: Values<typeof FACT>): NewFact => ({
  source: { name: stated.source },
  target: { name: stated.target },
  name: stated.name?.trim() || 'RELATES_TO',
  fact: stated.fact,
  validAt: stated.valid_at,
  invalidAt: stated.invalid_at,
  supersedes: stated.supersedes,
  singleValued: stated.single_valued,
  confidence: stated.confidence ?? 1,
  attributes: stated.attributes,
  origin: 'agent',
})

export const addMemory = memoryTool({
  name: 'add_memory',
  title: 'Add to memory',
  description:
    'Remember an episode: a note, a conversation or a piece of JSON. It is kept for good and found by the very next search. ' +
    'Write what is worth knowing later in whole sentences with names and dates; a summary is better than a transcript. ' +
    'State what you are sure of in facts (source, name of the relation, target, fact as a sentence), and list the uuids of the facts ' +
    'that a new one replaces in its supersedes. Give reference_time when it happened earlier. ' +
    'Answers with the uuid of the episode, the uuids of the facts you stated, and warnings about what was ignored.',
  effect: 'writes',
  args: {
    name: required(textArgument, 'A short title that says what it is about'),
    episode_body: required(textArgument, 'What to remember, in full: text, "actor: text" lines, or JSON; see source'),
    group_id: optionalText('Where it belongs, like a project; the default group when absent'),
    source: optional(textArgument, 'text', 'What the body is: text, message or json'),
    source_description: optional(textArgument, '', 'Where it comes from'),
    uuid: optionalText('Create it under this uuid, or replace the episode that has it'),
    reference_time: optionalText('When it happened, ISO 8601 (UTC without an offset); now when absent'),
    excluded_entity_types: optional(maybe(texts), undefined, 'Kinds of entities a model should not look for'),
    custom_extraction_instructions: optionalText('What a model should mind, where one is configured'),
    previous_episode_uuids: optional(maybe(texts), undefined, 'Episodes a model should read for context'),
    update_communities: optional(flagArgument, false, 'Group the entities anew afterwards'),
    saga: optionalText('The name of a chain of episodes this one continues'),
    saga_previous_episode_uuid: optionalText('The episode before it in the saga; the latest when absent'),
    entities: optional(maybe(STATED_ENTITIES), undefined, 'Entities you know it names; you know best'),
    facts: optional(maybe(STATED_FACTS), undefined, 'Facts you know it states, each a sentence that can stand alone'),
  },
  success: 'SuccessResponse',
  run: async (args, { store, by, groupFor, remember, warnings }) => {
    const group = groupFor(args.group_id)
    checkLength('saga', args.saga, LONGEST.name)
    checkLength('uuid', args.uuid, LONGEST.uuid)
    checkLength('source_description', args.source_description, LONGEST.sentence)
    const time = args.reference_time
    const stated = (args.facts ?? []).map(newFact)
    const episode = {
      uuid: args.uuid,
      group,
      name: args.name,
      body: args.episode_body,
      source: sourceOf(args.source),
      sourceDescription: args.source_description,
      validAt: time?.trim() ? checkDate(time, 'Invalid reference_time: ') : undefined,
      saga: args.saga,
      sagaPrevious: args.saga_previous_episode_uuid,
      entities: args.entities ?? [],
      facts: stated,
      extraction: {
        excluded: args.excluded_entity_types,
        instructions: args.custom_extraction_instructions,
        previous: args.previous_episode_uuids,
      },
      rebuildsCommunities: args.update_communities,
    }
    const added = await remember(store, episode, by).catch((error: unknown) => {
      throw error instanceof StatementError
        ? new ArgumentsError('add_memory', [`entities or facts\n  ${error.message}`])
        : error
    })
    return {
      message: `Episode '${args.name}' queued for processing in group '${group}'`,
      uuid: added.episode.uuid,
      ...(stated.length > 0 && { fact_uuids: added.facts.slice(0, stated.length).map(({ uuid }) => uuid) }),
      ...(warnings.length > 0 && { warnings }),
    }
  },
})

export const writeMemory = memoryTool({
  name: 'write_memory',
  title: 'Write memory',
  description: 'Remember a text, in one argument. For titles, dates, facts or conversations use add_memory.',
  effect: 'writes',
  args: {
    text: required(textArgument, 'What to remember'),
    group_id: optionalText('Where it belongs; the default group when absent'),
  },
  success: 'WriteResponse',
  run: async ({ text: body, group_id }, { store, by, groupFor, remember }) => {
    const group = groupFor(group_id)
    const input = { group, name: titleOf(body), body, source: 'text', sourceDescription: '' } as const
    const { episode } = await remember(store, input, by)
    return { message: 'Remembered', uuid: episode.uuid, group_id: group }
  },
})

export const addTriplet = memoryTool({
  name: 'add_triplet',
  title: 'Add a fact',
  description:
    'Add one fact between two entities, which are found by name or made. An equal fact is not added twice. ' +
    'To keep where it comes from, use add_memory with facts.',
  effect: 'writes',
  args: {
    source_node_name: required(textArgument, 'Whom or what it is about'),
    edge_name: required(textArgument, 'The relation, like WORKS_AT'),
    fact: required(textArgument, 'The fact as a sentence that can stand alone'),
    target_node_name: required(textArgument, 'The other end'),
    group_id: optionalText('Where it belongs; the default group when absent'),
    source_node_uuid: optionalText('The source, if its uuid is known'),
    target_node_uuid: optionalText('The target, if its uuid is known'),
  },
  success: 'TripletResponse',
  run: async (args, { store, groupFor, embedLater }) => {
    for (const key of ['source_node_name', 'edge_name', 'fact', 'target_node_name'] as const)
      if (args[key].trim() === '') throw new RequestError(`${key} must not be blank`)
      else checkLength(key, args[key], key === 'fact' ? LONGEST.sentence : LONGEST.name)
    const refTo = (name: string, uuid: string | undefined) => (uuid ? { uuid } : { name })
    const fact = {
      uuid: randomUUID(),
      source: refTo(args.source_node_name, args.source_node_uuid),
      target: refTo(args.target_node_name, args.target_node_uuid),
      name: args.edge_name,
      fact: args.fact,
      origin: 'triplet',
      confidence: 1,
    } as const
    const group = groupFor(args.group_id)
    const { entities, facts } = await store.addFacts(group, { entities: [], facts: [fact] })
    await embedLater(store, group)
    return {
      message: 'Triplet added successfully',
      nodes: entities.map(presentNode),
      edges: facts.map(presentEdge),
    }
  },
})
