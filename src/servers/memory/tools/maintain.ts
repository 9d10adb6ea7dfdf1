import { rebuildCommunities } from '../extract/communities.ts'
import { updateSagaSummary } from '../extract/summaries.ts'
import { RequestError } from '../input-checks.ts'
import { GROUP_IDS, integer, optional, optionalText, required, textArgument } from './arguments.ts'
import { withinBytes } from './results.ts'
import { memoryTool } from './tool.ts'

// Tools that summarize sagas and group entities.

export const summarizeSaga = memoryTool({
  name: 'summarize_saga',
  title: 'Summarise a saga',
  description: 'Summarise a chain of episodes (a saga) in its own words, up to its latest episode.',
  effect: 'writes',
  args: {
    saga_name: required(textArgument, 'The name given as saga in add_memory'),
    group_id: optionalText('Its group; the default group when absent'),
  },
  success: 'SagaSummaryResponse',
  run: async ({ saga_name, group_id }, { store, groupFor }) => {
    const group = groupFor(group_id)
    const saga = await updateSagaSummary(store, group, saga_name)
    if (!saga) throw new RequestError(`Saga '${saga_name}' not found in group '${group}'`)
    return { message: 'Saga summarized successfully', uuid: saga.uuid, name: saga.name, summary: saga.summary }
  },
})

export const buildCommunities = memoryTool({
  name: 'build_communities',
  title: 'Group the entities',
  description: 'Find communities of connected entities and describe each. Replaces the earlier communities.',
  effect: 'writes',
  args: { group_ids: GROUP_IDS },
  success: 'BuildCommunitiesResponse',
  run: async ({ group_ids }, { store, groupsFor }) => {
    const found = await rebuildCommunities(store, groupsFor(group_ids))
    const communities = found.map(({ uuid, name, group, summary }) => ({ uuid, name, group_id: group, summary }))
    return {
      message: found.length === 0 ? 'No communities found' : 'Communities built successfully',
      community_count: found.length,
      edge_count: found.reduce((sum, { members }) => sum + members.length, 0),
      communities: withinBytes(communities).items,
    }
  },
})

const PAGE_BYTES = 512 * 1024
const MOST_IMPORT_BYTES = 16 * 1024 * 1024 // of one call; the command line takes files of any size

export const exportMemory = memoryTool({
  name: 'export_memory',
  title: 'Export memory',
  description:
    'Write all data of the given groups as JSON lines, page by page: call again with start = next until next is null. ' +
    'import_memory reads it back.',
  effect: 'reads',
  args: {
    group_ids: GROUP_IDS,
    start: optional(integer, 0, 'The line to begin with, as the last answer said in next'),
  },
  success: 'ExportResponse',
  run: async ({ group_ids, start }, { store, groupsFor }) => {
    if (start < 0) throw new RequestError('start must not be negative')
    const page: string[] = []
    let [at, bytes] = [0, 0]
    for await (const line of store.exportLines(groupsFor(group_ids))) {
      if (at++ < start) continue
      bytes += Buffer.byteLength(line) + 1
      if (page.length > 0 && bytes > PAGE_BYTES) return exported(page, start, start + page.length)
      page.push(line)
    }
    return exported(page, start, null)
  },
})

const exported = (page: readonly string[], start: number, next: number | null) => ({
  message: next === null ? 'Exported to the end' : `Exported lines ${start + 1} to ${next}; there are more`,
  lines: page.length,
  jsonl: page.map(line => `${line}\n`).join(''),
  next,
})

export const importMemory = memoryTool({
  name: 'import_memory',
  title: 'Import memory',
  description:
    'Read JSON lines that export_memory wrote (the first line, the header, included). What is stored already stays as it is, ' +
    'so an import can be repeated.',
  effect: 'writes',
  args: { jsonl: required(textArgument, 'The lines') },
  success: 'ImportResponse',
  run: async ({ jsonl }, { store, by, groupFor, embedLater }) => {
    const bytes = Buffer.byteLength(jsonl)
    if (bytes > MOST_IMPORT_BYTES)
      throw new RequestError(
        `${bytes} bytes are too many for one call; import a file of this size with the command line`,
      )
    const lines = jsonl.split('\n').filter(line => line.trim() !== '')
    if (lines.length === 0) throw new RequestError('jsonl is empty')
    const imported = await store.importLines(lines, by)
    await embedLater(store, groupFor(undefined))
    return {
      message: `Imported ${imported.episodes} episodes and ${imported.facts} facts`,
      imported: { ...imported },
    }
  },
})
