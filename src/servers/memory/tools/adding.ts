import { randomUUID } from 'node:crypto'
import type { Tool } from '../../define/tools.ts'
import { byOf, type Desk } from '../desk.ts'
import type { Source } from '../model.ts'
import { Refusal } from '../refusal.ts'
import { type Remember, titleOf } from '../remember.ts'
import { flag, maybe, objects, optional, required, text, texts } from './arguments.ts'
import { notADate, readDate } from './dates.ts'
import { LONGEST, refuseLong } from './lengths.ts'
import { shownEdge, shownNode } from './present.ts'
import { ENTITY_SCHEMA, FACT_SCHEMA, readEntities, readFacts } from './stated.ts'
import { memoryTool } from './tool.ts'

const SOURCES: readonly string[] = ['text', 'message', 'json', 'fact_triple'] satisfies readonly Source[]

/** An unknown kind of source is text, as it always was. */
const sourceOf = (given: string): Source => {
  const word = given.trim().toLowerCase()
  return SOURCES.includes(word) ? (word as Source) : 'text'
}

const whenOf = (given: string | undefined): number | undefined => {
  if (given === undefined || given.trim() === '') return undefined
  const at = readDate(given)
  if (at === undefined) throw new Refusal(`Invalid reference_time: ${notADate(given)}`)
  return at
}

const ADD_ARGUMENTS = {
  name: required(text, 'A short title that says what it is about'),
  episode_body: required(text, 'What to remember, in full: text, "actor: text" lines, or JSON; see source'),
  group_id: optional(maybe(text), undefined, 'Where it belongs, like a project; the default group when absent'),
  source: optional(text, 'text', 'What the body is: text, message or json'),
  source_description: optional(text, '', 'Where it comes from'),
  uuid: optional(maybe(text), undefined, 'Create it under this uuid, or replace the episode that has it'),
  reference_time: optional(
    maybe(text),
    undefined,
    'When it happened, ISO 8601 (UTC without an offset); now when absent',
  ),
  excluded_entity_types: optional(maybe(texts), undefined, 'Kinds of entities a model should not look for'),
  custom_extraction_instructions: optional(maybe(text), undefined, 'What a model should mind, where one is configured'),
  previous_episode_uuids: optional(maybe(texts), undefined, 'Episodes a model should read for context'),
  update_communities: optional(flag, false, 'Group the entities anew afterwards'),
  saga: optional(maybe(text), undefined, 'The name of a chain of episodes this one continues'),
  saga_previous_episode_uuid: optional(
    maybe(text),
    undefined,
    'The episode before it in the saga; the latest when absent',
  ),
  entities: optional(maybe(objects(ENTITY_SCHEMA)), undefined, 'Entities you know it names; you know best'),
  facts: optional(
    maybe(objects(FACT_SCHEMA)),
    undefined,
    'Facts you know it states, each a sentence that can stand alone',
  ),
} as const

const addMemory = (desk: Desk, remember: Remember): Tool =>
  memoryTool({
    name: 'add_memory',
    title: 'Add to memory',
    description:
      'Remember an episode: a note, a conversation or a piece of JSON. It is kept for good and found by the very next search. ' +
      'Write what is worth knowing later in whole sentences with names and dates; a summary is better than a transcript. ' +
      'State what you are sure of in facts (source, relation, target, sentence), and name what a new fact replaces in supersedes. ' +
      'Give reference_time when it happened earlier.',
    effect: 'adds',
    args: ADD_ARGUMENTS,
    success: 'SuccessResponse',
    run: (args, call) =>
      desk.with(async store => {
        const group = desk.groupFor(args.group_id)
        refuseLong('saga', args.saga, LONGEST.name)
        refuseLong('uuid', args.uuid, LONGEST.uuid)
        refuseLong('source_description', args.source_description, LONGEST.sentence)
        await remember(
          store,
          {
            uuid: args.uuid,
            group,
            name: args.name,
            body: args.episode_body,
            source: sourceOf(args.source),
            sourceDescription: args.source_description,
            validAt: whenOf(args.reference_time),
            saga: args.saga,
            sagaPrevious: args.saga_previous_episode_uuid,
            entities: readEntities(args.entities),
            facts: readFacts(args.facts),
            extraction: {
              excluded: args.excluded_entity_types,
              instructions: args.custom_extraction_instructions,
              previous: args.previous_episode_uuids,
            },
            regroup: args.update_communities,
          },
          byOf(call),
        )
        return { message: `Episode '${args.name}' queued for processing in group '${group}'` }
      }),
  })

const writeMemory = (desk: Desk, remember: Remember): Tool =>
  memoryTool({
    name: 'write_memory',
    title: 'Write memory',
    description: 'Remember a text, in one argument. For titles, dates, facts or conversations use add_memory.',
    effect: 'adds',
    args: {
      text: required(text, 'What to remember'),
      group_id: optional(maybe(text), undefined, 'Where it belongs; the default group when absent'),
    },
    success: 'WriteResponse',
    run: (args, call) =>
      desk.with(async store => {
        const group = desk.groupFor(args.group_id)
        const told = {
          group,
          name: titleOf(args.text),
          body: args.text,
          source: 'text',
          sourceDescription: '',
        } as const
        const { episode } = await remember(store, told, byOf(call))
        return { message: 'Remembered', uuid: episode.uuid, group_id: group }
      }),
  })

const addTriplet = (desk: Desk): Tool =>
  memoryTool({
    name: 'add_triplet',
    title: 'Add a fact',
    description:
      'Add one fact between two entities, which are found by name or made. An equal fact is not added twice. ' +
      'To keep where it comes from, use add_memory with facts.',
    effect: 'adds',
    args: {
      source_node_name: required(text, 'Whom or what it is about'),
      edge_name: required(text, 'The relation, like WORKS_AT'),
      fact: required(text, 'The fact as a sentence that can stand alone'),
      target_node_name: required(text, 'The other end'),
      group_id: optional(maybe(text), undefined, 'Where it belongs; the default group when absent'),
      source_node_uuid: optional(maybe(text), undefined, 'The source, if its uuid is known'),
      target_node_uuid: optional(maybe(text), undefined, 'The target, if its uuid is known'),
    },
    success: 'TripletResponse',
    run: (args, call) =>
      desk.with(async store => {
        for (const key of ['source_node_name', 'edge_name', 'fact', 'target_node_name'] as const)
          if (args[key].trim() === '') throw new Refusal(`${key} must not be blank`)
          else refuseLong(key, args[key], key === 'fact' ? LONGEST.sentence : LONGEST.name)
        const end = (name: string, uuid: string | undefined) => (uuid ? { uuid } : { name })
        const fact = {
          uuid: randomUUID(),
          source: end(args.source_node_name, args.source_node_uuid),
          target: end(args.target_node_name, args.target_node_uuid),
          name: args.edge_name,
          fact: args.fact,
          origin: 'triplet',
          confidence: 1,
        } as const
        const group = desk.groupFor(args.group_id)
        const added = await store.addFacts(group, { entities: [], facts: [fact] }, byOf(call))
        await desk.embedLater(store, group)
        return {
          message: 'Triplet added successfully',
          nodes: added.entities.map(shownNode),
          edges: added.facts.map(shownEdge),
        }
      }),
  })

/** The tools that put something into memory. */
export const addingTools = (desk: Desk, remember: Remember) => ({
  addMemory: addMemory(desk, remember),
  writeMemory: writeMemory(desk, remember),
  addTriplet: addTriplet(desk),
})
