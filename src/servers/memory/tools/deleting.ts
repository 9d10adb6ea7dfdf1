import type { PlainObject } from '../../../wire/json/json.ts'
import type { Tool } from '../../define/tools.ts'
import { byOf, type Desk } from '../desk.ts'
import { Refusal } from '../refusal.ts'
import { type Forget, type ForgetProof, StoreError } from '../store.ts'
import { groups, maybe, optional, required, text } from './arguments.ts'
import { shownDate } from './present.ts'
import { memoryTool } from './tool.ts'

/** What is not there is named as clients of the contract know it. */
const missing = (message: string) => (error: unknown) => {
  throw error instanceof StoreError && error.kind === 'missing' ? new Refusal(message) : error
}

const deleteEdge = (desk: Desk): Tool =>
  memoryTool({
    name: 'delete_entity_edge',
    title: 'Delete a fact',
    description: 'Delete one fact by its uuid. To record that something stopped being true, add the new fact instead.',
    effect: 'destroys',
    args: { uuid: required(text, 'The uuid of the fact') },
    success: 'SuccessResponse',
    run: ({ uuid }, call) =>
      desk.with(async store => {
        await store.deleteFact(uuid, byOf(call)).catch(missing(`Error deleting entity edge: edge ${uuid} not found`))
        return { message: `Entity edge with UUID ${uuid} deleted successfully` }
      }),
  })

const deleteEpisode = (desk: Desk): Tool =>
  memoryTool({
    name: 'delete_episode',
    title: 'Delete an episode',
    description:
      'Delete one episode by its uuid, with the facts and entities that no other episode tells of. Facts told again elsewhere stay.',
    effect: 'destroys',
    args: { uuid: required(text, 'The uuid of the episode') },
    success: 'SuccessResponse',
    run: ({ uuid }, call) =>
      desk.with(async store => {
        await store.deleteEpisode(uuid, byOf(call)).catch(missing(`Error deleting episode: node ${uuid} not found`))
        return { message: `Episode with UUID ${uuid} deleted successfully` }
      }),
  })

const clearGraph = (desk: Desk): Tool =>
  memoryTool({
    name: 'clear_graph',
    title: 'Clear groups',
    description:
      'Delete everything in the groups named, or in the default group when none is named. There is no way back but a backup: ask the user first.',
    effect: 'destroys',
    args: { group_ids: optional(groups, undefined, 'A group or a list of groups') },
    success: 'SuccessResponse',
    run: ({ group_ids }, call) =>
      desk.with(async store => {
        const ids = desk.groupsFor(group_ids)
        await store.clear(ids, byOf(call))
        return { message: `Graph data cleared successfully for group IDs: ${ids.join(', ')}` }
      }),
  })

const WAYS = ['group_id', 'entity_uuid', 'subject'] as const

const forgetTool = (desk: Desk): Tool =>
  memoryTool({
    name: 'forget',
    title: 'Forget for good',
    description:
      'Erase a group, one entity, or everything that names a person or thing (subject), so that no byte of it stays in the store; ' +
      'answers with a proof of what was erased. Give exactly one of group_id, entity_uuid and subject. There is no way back: ask the user first.',
    effect: 'destroys',
    args: {
      group_id: optional(maybe(text), undefined, 'Erase this whole group'),
      entity_uuid: optional(
        maybe(text),
        undefined,
        'Erase this entity, the facts about it, and every episode that mentions it',
      ),
      subject: optional(maybe(text), undefined, 'Erase every entity of this name, and every episode that names it'),
      group_ids: optional(groups, undefined, 'With subject: only in these groups'),
    },
    success: 'ForgetResponse',
    run: (args, call) =>
      desk.with(async store => {
        const given = WAYS.filter(way => (args[way] ?? '').trim() !== '')
        if (given.length !== 1) throw new Refusal(`Give exactly one of ${WAYS.join(', ')}; ${given.length} were given`)
        const proof = await store.forget(whatOf(desk, args), byOf(call))
        return { message: proofMessage(proof), proof: shownProof(proof) }
      }),
  })

interface Named {
  readonly group_id: string | undefined
  readonly entity_uuid: string | undefined
  readonly subject: string | undefined
  readonly group_ids: readonly string[] | undefined
}

const whatOf = (desk: Desk, { group_id, entity_uuid, subject, group_ids }: Named): Forget => {
  if (group_id) return { kind: 'group', group: desk.groupFor(group_id) }
  if (entity_uuid) return { kind: 'entity', uuid: entity_uuid }
  return { kind: 'subject', name: subject ?? '', groups: desk.groupsFor(group_ids) }
}

const proofMessage = ({ erased, clean }: ForgetProof): string => {
  const counts = `${erased.episodes.length} episodes, ${erased.entities.length} entities and ${erased.facts.length} facts`
  if (erased.episodes.length + erased.entities.length + erased.facts.length === 0) return 'Nothing was there to forget'
  return clean
    ? `Erased ${counts}; no byte of them is left`
    : `Erased ${counts}; that no byte of them is left could not be proven: another process still reads what was there (end it, and forget the same again), or the database keeps files that cannot be seen from here`
}

const shownProof = ({ at, erased, checked, gone, files, clean }: ForgetProof): PlainObject => ({
  at: shownDate(at),
  erased: { ...erased },
  checked,
  gone,
  files: files.length,
  clean,
})

/** The tools that take something out of memory. */
export const deletingTools = (desk: Desk) => ({
  deleteEdge: deleteEdge(desk),
  deleteEpisode: deleteEpisode(desk),
  clearGraph: clearGraph(desk),
  forget: forgetTool(desk),
})
