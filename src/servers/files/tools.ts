import { text } from '../define/content.ts'
import { failure, messageOf } from '../define/failures.ts'
import { type Tool, tool } from '../define/tools.ts'
import { type Glob, readGlob } from './glob.ts'
import { fileUri, quoted, Rejected } from './paths.ts'
import type { Root } from './root.ts'
import { decodeText, isBinary } from './text.ts'
import { createWalkBudget, walk } from './walk.ts'

const WALK_MS = 10_000
const MAX_LISTED = 10_000
const MAX_SEEN = 100_000 // entries that one find_file looks at
const MAX_FOUND = 1000
const MAX_BYTES = 16 * 1024 * 1024
const MAX_CHARACTERS = 200_000

/** The annotations of every tool of this server. */
export const READ_ONLY = {
  readOnlyHint: true,
  destructiveHint: false,
  idempotentHint: true,
  openWorldHint: false,
} as const

/** An argument that several tools share. */
export const INCLUDE_IGNORED = {
  type: 'boolean',
  default: false,
  description: 'Also include node_modules folders, and .git where dot files are shown; by default both are left out',
} as const

const PATHS = { type: 'array', items: { type: 'string' } } as const

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
        relative_path: { type: 'string', description: 'The folder, relative to the project root; "." is the root' },
        recursive: { type: 'boolean', default: false, description: 'Also list the folders below' },
        include_ignored: INCLUDE_IGNORED,
      },
      required: ['relative_path'],
    },
    output: {
      type: 'object',
      properties: {
        dirs: { ...PATHS, description: 'Folders' },
        files: { ...PATHS, description: 'Files' },
        truncated: { type: 'boolean', description: 'True if the list is not complete; list a smaller folder then' },
      },
      required: ['dirs', 'files'],
    },
    annotations: READ_ONLY,
    run: async ({ relative_path, recursive = false, include_ignored = false }, { signal }) => {
      const budget = createWalkBudget(MAX_LISTED, WALK_MS)
      const found: Record<'file' | 'folder', string[]> = { file: [], folder: [] }
      const options = { recursive, includeIgnored: include_ignored, budget, signal }
      for await (const { kind, path } of walk(root, await root.find(relative_path), options)) found[kind].push(path)
      return {
        structuredContent: { dirs: found.folder, files: found.file, truncated: budget.isSpent || undefined },
      }
    },
  })

export const findFile = (root: Root): Tool =>
  tool({
    name: 'find_file',
    title: 'Find files by name',
    description:
      'Finds files whose name matches a pattern, anywhere below a folder of the project. A pattern without a slash ' +
      'matches the name ("*.test.ts"); one with a slash matches the path from the project root ' +
      '("src/**/index.{ts,tsx}"). To search the contents of files use search_for_pattern.',
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
          description: 'The folder to search, relative to the project root',
        },
        include_ignored: INCLUDE_IGNORED,
      },
      required: ['file_mask'],
    },
    output: {
      type: 'object',
      properties: {
        files: { ...PATHS, description: 'Paths relative to the project root' },
        truncated: { type: 'boolean', description: 'True if there may be more; use a narrower pattern or folder then' },
      },
      required: ['files'],
    },
    annotations: READ_ONLY,
    run: async ({ file_mask, relative_path = '.', include_ignored = false }, { signal }) => {
      const isWanted = globArgument('file_mask', file_mask)
      const budget = createWalkBudget(MAX_SEEN, WALK_MS)
      const options = { recursive: true, includeIgnored: include_ignored, budget, signal }
      const files: string[] = []
      for await (const { kind, path } of walk(root, await root.find(relative_path), options)) {
        if (kind !== 'file' || !isWanted(path)) continue
        if (files.length === MAX_FOUND) {
          budget.isSpent = true
          break
        }
        files.push(path)
      }
      return { structuredContent: { files, truncated: budget.isSpent || undefined } }
    },
  })

/** Reads an argument that is a glob. */
export const globArgument = (name: string, pattern: string): Glob => {
  try {
    return readGlob(pattern)
  } catch (error) {
    throw failure('invalidParams', `Argument "${name}": ${messageOf(error)}`)
  }
}

export const readFile = (root: Root): Tool =>
  tool({
    name: 'read_file',
    title: 'Read a file',
    description:
      `Reads a text file of the project, or a range of its lines. Long files are cut off after ${MAX_CHARACTERS} ` +
      'characters; the answer then says with which start_line to continue. Images and other binary files are read ' +
      'as resources instead.',
    input: {
      type: 'object',
      properties: {
        relative_path: { type: 'string', description: 'The file, relative to the project root' },
        start_line: { type: 'integer', minimum: 1, description: 'The first line to read; lines are counted from 1' },
        end_line: { type: 'integer', minimum: 1, description: 'The last line to read' },
      },
      required: ['relative_path'],
    },
    output: {
      type: 'object',
      properties: {
        path: { type: 'string' },
        text: { type: 'string', description: 'The requested lines' },
        start_line: { type: 'integer', description: 'The first line of the text' },
        end_line: { type: 'integer', description: 'The last line of the text' },
        total_lines: { type: 'integer', description: 'The number of lines in the file' },
        next_line: { type: 'integer', description: 'Where to continue; only if the text was cut off' },
      },
      required: ['path', 'text', 'start_line', 'end_line', 'total_lines'],
    },
    annotations: READ_ONLY,
    run: async ({ relative_path, start_line = 1, end_line = Number.MAX_SAFE_INTEGER }) => {
      if (start_line < 1 || end_line < start_line)
        throw failure('invalidParams', 'Lines are counted from 1, and end_line must not be before start_line')
      const file = await root.find(relative_path)
      const bytes = await root.read(file, MAX_BYTES)
      if (isBinary(bytes))
        throw new Rejected(`${quoted(file.path)} is a binary file; read it as the resource ${fileUri(file.path)}`)
      const { end, next, total, ...cut } = cutLines(decodeText(bytes), start_line, end_line)
      if (start_line > Math.max(1, total))
        throw new Rejected(`${quoted(file.path)} has ${total} lines; there is no line ${start_line}`)
      return {
        content: [text(cut.text), ...(next === undefined ? [] : [text(`Cut off; continue with start_line ${next}`)])],
        structuredContent: {
          path: file.path,
          text: cut.text,
          start_line,
          end_line: end,
          total_lines: total,
          next_line: next,
        },
      }
    },
  })

/** The lines from `start` to `wanted`, up to the limit of characters; a single line over the limit is cut. */
const cutLines = (whole: string, start: number, wanted: number) => {
  const lines = whole.split('\n')
  if (lines.at(-1) === '') lines.pop() // a line break at the end starts no line
  const last = Math.min(wanted, lines.length)
  const kept: string[] = []
  for (let left = MAX_CHARACTERS; start - 1 + kept.length < last; ) {
    const line = lines[start - 1 + kept.length] ?? ''
    left -= line.length + 1
    if (left < 0 && kept.length > 0) break
    kept.push(left < 0 ? `${line.slice(0, MAX_CHARACTERS)}…` : line)
  }
  const end = start - 1 + kept.length
  const hasLastBreak = end === lines.length && whole.endsWith('\n')
  return {
    text: kept.join('\n') + (hasLastBreak ? '\n' : ''),
    end,
    total: lines.length,
    next: end < last ? end + 1 : undefined,
  }
}
