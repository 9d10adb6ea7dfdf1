import { type Tool, tool } from '../define/tools.ts'
import type { Root } from './root.ts'
import { createBudget, walk } from './walk.ts'
import { INCLUDE_IGNORED, READ_ONLY } from './words.ts'

const MOST_ENTRIES = 10_000
const LONGEST_MS = 10_000

/** The tool `list_dir`. */
export const listDir = (root: Root): Tool =>
  tool({
    name: 'list_dir',
    title: 'List a folder',
    description:
      'Lists the files and folders of one folder of the project, or with "recursive" of everything below it. ' +
      'Start with relative_path "." to see the project. All paths in the answer are relative to the project root, ' +
      'ready to be given to read_file or to list_dir again.',
    input: {
      type: 'object',
      properties: {
        relative_path: {
          type: 'string',
          description: 'The folder, relative to the project root; "." is the root itself',
        },
        recursive: { type: 'boolean', default: false, description: 'Also list what is in the folders below' },
        include_ignored: INCLUDE_IGNORED,
      },
      required: ['relative_path'],
    },
    output: {
      type: 'object',
      properties: {
        dirs: { type: 'array', items: { type: 'string' }, description: 'Folders' },
        files: { type: 'array', items: { type: 'string' }, description: 'Files' },
        truncated: {
          type: 'boolean',
          description: 'True if there is more than was listed; list a smaller part of the project then',
        },
      },
      required: ['dirs', 'files'],
    },
    annotations: READ_ONLY,
    run: async ({ relative_path, recursive = false, include_ignored = false }, { signal }) => {
      const budget = createBudget(MOST_ENTRIES, LONGEST_MS)
      const found: Record<'file' | 'folder', string[]> = { file: [], folder: [] }
      const options = { recursive, includeIgnored: include_ignored, budget, signal }
      for await (const { kind, path } of walk(root, await root.find(relative_path), options)) found[kind].push(path)
      return {
        structuredContent: {
          dirs: found.folder,
          files: found.file,
          truncated: budget.isSpent || undefined,
        },
      }
    },
  })
