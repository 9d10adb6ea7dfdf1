import type { Tool } from '../../define/tools.ts'
import { byOf, type Desk } from '../desk.ts'
import { Refusal } from '../refusal.ts'
import { groups, integer, optional, required, text } from './arguments.ts'
import { memoryTool } from './tool.ts'

const PAGE_BYTES = 512 * 1024
const MOST_BYTES = 16 * 1024 * 1024 // of one import; the command line takes files of any size

const exportMemory = (desk: Desk): Tool =>
  memoryTool({
    name: 'export_memory',
    title: 'Export memory',
    description:
      'Write everything in the groups named as JSON lines, a part at a time: call again with start = next until next is null. ' +
      'import_memory reads it back.',
    effect: 'reads',
    args: {
      group_ids: optional(groups, undefined, 'A group or a list of groups; the default group when absent'),
      start: optional(integer, 0, 'The line to begin with, as the last answer said in next'),
    },
    success: 'ExportResponse',
    run: ({ group_ids, start }) =>
      desk.with(async store => {
        if (start < 0) throw new Refusal('start must not be negative')
        const part: string[] = []
        let [at, bytes] = [0, 0]
        for await (const line of store.exportLines(desk.groupsFor(group_ids))) {
          if (at++ < start) continue
          bytes += Buffer.byteLength(line) + 1
          if (part.length > 0 && bytes > PAGE_BYTES) return exported(part, start, start + part.length)
          part.push(line)
        }
        return exported(part, start, null)
      }),
  })

const exported = (part: readonly string[], start: number, next: number | null) => ({
  message: next === null ? 'Exported to the end' : `Exported lines ${start + 1} to ${next}; there are more`,
  lines: part.length,
  jsonl: part.map(line => `${line}\n`).join(''),
  next,
})

const importMemory = (desk: Desk): Tool =>
  memoryTool({
    name: 'import_memory',
    title: 'Import memory',
    description:
      'Read JSON lines that export_memory wrote (the first line, the header, included). What is there already stays as it is, ' +
      'so importing twice does no harm.',
    effect: 'adds',
    args: { jsonl: required(text, 'The lines') },
    success: 'ImportResponse',
    run: ({ jsonl }, call) =>
      desk.with(async store => {
        const bytes = Buffer.byteLength(jsonl)
        if (bytes > MOST_BYTES)
          throw new Refusal(
            `${bytes} bytes are too many for one call; import a file of this size with the command line`,
          )
        const lines = jsonl.split('\n').filter(line => line.trim() !== '')
        if (lines.length === 0) throw new Refusal('jsonl is empty')
        const imported = await store.importLines(lines, byOf(call))
        await desk.embedLater(store, desk.groupFor(undefined))
        return {
          message: `Imported ${imported.episodes} episodes and ${imported.facts} facts`,
          imported: { ...imported },
        }
      }),
  })

/** The tools that carry memory elsewhere and back. */
export const carryingTools = (desk: Desk) => ({ exportMemory: exportMemory(desk), importMemory: importMemory(desk) })
