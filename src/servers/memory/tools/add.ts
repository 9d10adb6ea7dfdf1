import { randomUUID } from 'node:crypto'
import { checkDate, checkLength, LONGEST, RequestError } from '../input-checks.ts'
import { sourceOf, titleOf } from '../remember.ts'
import { flagArgument, maybe, objects, optional, optionalText, required, textArgument, texts } from './arguments.ts'
import { presentEdge, presentNode } from './results.ts'
import { ENTITY_SCHEMA, FACT_SCHEMA, readStatedEntities, readStatedFacts } from './stated.ts'
import { memoryTool } from './tool.ts'

// Tools that store episodes, texts and facts.

export const addMemory = memoryTool({
  name: 'add_memory',
  title: 'Add to memory',
  description:
    'Remember an episode: a note, a conversation or a piece of JSON. It is kept for good and found by the very next search. ' +
    'Write what is worth knowing later in whole sentences with names and dates; a summary is better than a transcript. ' +
    'State what you are sure of in facts (source, relation, target, sentence), and name what a new fact replaces in supersedes. ' +
    'Give reference_time when it happened earlier.',
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
    entities: optional(maybe(objects(ENTITY_SCHEMA)), undefined, 'Entities you know it names; you know best'),
    facts: optional(
      maybe(objects(FACT_SCHEMA)),
      undefined,
      'Facts you know it states, each a sentence that can stand alone',
    ),
  },
  success: 'SuccessResponse',
  run: async (args, { store, by, groupFor, remember }) => {
    const group = groupFor(args.group_id)
    checkLength('saga', args.saga, LONGEST.name)
    checkLength('uuid', args.uuid, LONGEST.uuid)
    checkLength('source_description', args.source_description, LONGEST.sentence)
    const time = args.reference_time
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
      entities: readStatedEntities(args.entities),
      facts: readStatedFacts(args.facts),
      extraction: {
        excluded: args.excluded_entity_types,
        instructions: args.custom_extraction_instructions,
        previous: args.previous_episode_uuids,
      },
      rebuildsCommunities: args.update_communities,
    }
    await remember(store, episode, by)
    return { message: `Episode '${args.name}' queued for processing in group '${group}'` }
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
  run: async (args, { store, by, groupFor, embedLater }) => {
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
    const { entities, facts } = await store.addFacts(group, { entities: [], facts: [fact] }, by)
    await embedLater(store, group)
    return {
      message: 'Triplet added successfully',
      nodes: entities.map(presentNode),
      edges: facts.map(presentEdge),
    }
  },
})
