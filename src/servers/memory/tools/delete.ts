import type { PlainObject } from '../../../wire/json/json.ts'
import { RequestError } from '../input-checks.ts'
import { type Forget, type ForgetProof, StoreError } from '../store.ts'
import { groups, optional, optionalText, required, textArgument } from './arguments.ts'
import { isoDate } from './results.ts'
import { memoryTool, type ToolCall } from './tool.ts'

/** Replaces the error of a missing row by the message that clients of the contract know. */
const missing = (message: string) => (error: unknown) => {
  throw error instanceof StoreError && error.kind === 'missing' ? new RequestError(message) : error
}

/** What the tools that delete one thing by its uuid have in common. */
const deletesOne = (what: string) =>
  ({
    effect: 'deletes',
    args: { uuid: required(textArgument, `The uuid of the ${what}`) },
    success: 'SuccessResponse',
  }) as const

export const deleteEdge = memoryTool({
  name: 'delete_entity_edge',
  title: 'Delete a fact',
  description: 'Delete one fact by its uuid. To record that something stopped being true, add the new fact instead.',
  ...deletesOne('fact'),
  run: async ({ uuid }, { store, by }) => {
    await store.deleteFact(uuid, by).catch(missing(`Error deleting entity edge: edge ${uuid} not found`))
    return { message: `Entity edge with UUID ${uuid} deleted successfully` }
  },
})

export const deleteEpisodeTool = memoryTool({
  name: 'delete_episode',
  title: 'Delete an episode',
  description:
    'Delete one episode by its uuid, with the facts and entities that no other episode mentions. Facts that another episode states stay.',
  ...deletesOne('episode'),
  run: async ({ uuid }, { store, by }) => {
    await store.deleteEpisode(uuid, by).catch(missing(`Error deleting episode: node ${uuid} not found`))
    return { message: `Episode with UUID ${uuid} deleted successfully` }
  },
})

export const clearGraph = memoryTool({
  name: 'clear_graph',
  title: 'Clear groups',
  description:
    'Delete everything in the groups named, or in the default group when none is named. Only a backup can undo this: ask the user first.',
  effect: 'deletes',
  args: { group_ids: optional(groups, undefined, 'A group or a list of groups') },
  success: 'SuccessResponse',
  run: async ({ group_ids }, { store, by, groupsFor }) => {
    const ids = groupsFor(group_ids)
    await store.clear(ids, by)
    return { message: `Graph data cleared successfully for group IDs: ${ids.join(', ')}` }
  },
})

const FORGET_BY = ['group_id', 'entity_uuid', 'subject'] as const

export const forget = memoryTool({
  name: 'forget',
  title: 'Forget for good',
  description:
    'Erase a group, one entity, or everything that names a person or thing (subject), so that no byte of it stays in the store; ' +
    'answers with a proof of what was erased. Give exactly one of group_id, entity_uuid and subject. This cannot be undone: ask the user first.',
  effect: 'deletes',
  args: {
    group_id: optionalText('Erase this whole group'),
    entity_uuid: optionalText('Erase this entity, the facts about it, and every episode that mentions it'),
    subject: optionalText('Erase every entity of this name, and every episode that names it'),
    group_ids: optional(groups, undefined, 'With subject: only in these groups'),
  },
  success: 'ForgetResponse',
  run: async (args, call) => {
    const given = FORGET_BY.filter(key => (args[key] ?? '').trim() !== '')
    if (given.length !== 1)
      throw new RequestError(`Give exactly one of ${FORGET_BY.join(', ')}; ${given.length} were given`)
    const proof = await call.store.forget(targetOf(args, call), call.by)
    return { message: proofMessage(proof), proof: presentProof(proof) }
  },
})

type ForgetArguments = { readonly [K in (typeof FORGET_BY)[number]]: string | undefined } & {
  readonly group_ids: readonly string[] | undefined
}

const targetOf = ({ group_id, entity_uuid, subject, group_ids }: ForgetArguments, call: ToolCall): Forget => {
  if (group_id) return { kind: 'group', group: call.groupFor(group_id) }
  if (entity_uuid) return { kind: 'entity', uuid: entity_uuid }
  return { kind: 'subject', name: subject ?? '', groups: call.groupsFor(group_ids) }
}

const proofMessage = ({ erased, clean }: ForgetProof): string => {
  const { episodes, entities, facts } = erased
  if (episodes.length + entities.length + facts.length === 0) return 'Nothing was there to forget'
  const counts = `${episodes.length} episodes, ${entities.length} entities and ${facts.length} facts`
  return clean
    ? `Erased ${counts}; no byte of them is left`
    : `Erased ${counts}; that no byte of them is left could not be proven: another process still reads what was there (end it, and forget the same again), or the database keeps files that cannot be seen from here`
}

const presentProof = ({ at, erased, checked, gone, files, clean }: ForgetProof): PlainObject => ({
  at: isoDate(at),
  erased: { ...erased },
  checked,
  gone,
  files: files.length,
  clean,
})
