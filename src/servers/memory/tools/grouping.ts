import type { Tool } from '../../define/tools.ts'
import type { Desk } from '../desk.ts'
import { regroup, summarise } from '../grouping.ts'
import { Refusal } from '../refusal.ts'
import { groups, maybe, optional, required, text } from './arguments.ts'
import { withinBytes } from './bounds.ts'
import { memoryTool } from './tool.ts'

const summarizeSaga = (desk: Desk): Tool =>
  memoryTool({
    name: 'summarize_saga',
    title: 'Summarise a saga',
    description: 'Summarise a chain of episodes (a saga) in its own words, up to its latest episode.',
    effect: 'changes',
    args: {
      saga_name: required(text, 'The name given as saga in add_memory'),
      group_id: optional(maybe(text), undefined, 'Its group; the default group when absent'),
    },
    success: 'SagaSummaryResponse',
    run: ({ saga_name, group_id }) =>
      desk.with(async store => {
        const group = desk.groupFor(group_id)
        const saga = await summarise(store, group, saga_name)
        if (!saga) throw new Refusal(`Saga '${saga_name}' not found in group '${group}'`)
        return { message: 'Saga summarized successfully', uuid: saga.uuid, name: saga.name, summary: saga.summary }
      }),
  })

const buildCommunities = (desk: Desk): Tool =>
  memoryTool({
    name: 'build_communities',
    title: 'Group the entities',
    description: 'Find entities that hang together and describe each such community. Replaces what was found before.',
    effect: 'changes',
    args: { group_ids: optional(groups, undefined, 'A group or a list of groups; the default group when absent') },
    success: 'BuildCommunitiesResponse',
    run: ({ group_ids }) =>
      desk.with(async store => {
        const found = await regroup(store, desk.groupsFor(group_ids))
        const shown = found.map(({ uuid, name, group, summary }) => ({ uuid, name, group_id: group, summary }))
        return {
          message: found.length === 0 ? 'No communities found' : 'Communities built successfully',
          community_count: found.length,
          edge_count: found.reduce((sum, { members }) => sum + members.length, 0),
          communities: withinBytes(shown).items,
        }
      }),
  })

/** The tools that look at many things as one. */
export const groupingTools = (desk: Desk) => ({
  summarizeSaga: summarizeSaga(desk),
  buildCommunities: buildCommunities(desk),
})
