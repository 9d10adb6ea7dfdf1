import { failure, messageOf } from '../define/failures.ts'
import { type Tool, tool } from '../define/tools.ts'
import { type Glob, readGlob } from './glob.ts'
import type { Root } from './root.ts'
import { createBudget, walk } from './walk.ts'
import { INCLUDE_IGNORED, READ_ONLY } from './words.ts'

const MOST_SEEN = 100_000
const MOST_FOUND = 1000
const LONGEST_MS = 10_000

/** The tool `find_file`. */
export const findFile = (root: Root): Tool =>
  tool({
    name: 'find_file',
    title: 'Find files by name',
    description:
      'Finds files whose name fits a pattern, anywhere below a folder of the project. A pattern without a slash is ' +
      'about the name alone ("*.test.ts"); one with a slash is about the path from the project root ' +
      '("src/**/index.{ts,tsx}"). To look for what files contain use search_for_pattern.',
    input: {
      type: 'object',
      properties: {
        file_mask: {
          type: 'string',
          description: 'The pattern: * and ? within a name, ** across folders, [a-z], {one,other}',
        },
        relative_path: {
          type: 'string',
          default: '.',
          description: 'The folder to look in, relative to the project root',
        },
        include_ignored: INCLUDE_IGNORED,
      },
      required: ['file_mask'],
    },
    output: {
      type: 'object',
      properties: {
        files: { type: 'array', items: { type: 'string' }, description: 'Paths relative to the project root' },
        truncated: { type: 'boolean', description: 'True if there may be more; use a narrower pattern or folder then' },
      },
      required: ['files'],
    },
    annotations: READ_ONLY,
    run: async ({ file_mask, relative_path = '.', include_ignored = false }, { signal }) => {
      const isWanted = globOf('file_mask', file_mask)
      const budget = createBudget(MOST_SEEN, LONGEST_MS)
      const options = { recursive: true, includeIgnored: include_ignored, budget, signal }
      const files: string[] = []
      for await (const { kind, path } of walk(root, await root.find(relative_path), options)) {
        if (kind !== 'file' || !isWanted(path)) continue
        if (files.length === MOST_FOUND) {
          budget.isSpent = true
          break
        }
        files.push(path)
      }
      return { structuredContent: { files, truncated: budget.isSpent || undefined } }
    },
  })

/** Reads an argument that is a glob. */
export const globOf = (name: string, pattern: string): Glob => {
  try {
    return readGlob(pattern)
  } catch (error) {
    throw failure('invalidParams', `Argument "${name}": ${messageOf(error)}`)
  }
}
