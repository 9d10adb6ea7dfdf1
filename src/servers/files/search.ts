import { NotAcquired, Semaphore } from '../../std/semaphore.ts'
import { failure, messageOf } from '../define/failures.ts'
import { type Tool, tool } from '../define/tools.ts'
import { Rejected } from './paths.ts'
import type { Root } from './root.ts'
import { runSearch } from './run-search.ts'
import { globArgument, INCLUDE_IGNORED, READ_ONLY } from './tools.ts'

const MAX_CONTEXT = 20
const MAX_MATCHES = 1000
const DEFAULT_MATCHES = 200
const MAX_RUNNING = 2
const MAX_WAITING = 32

const lineCount = (description: string) =>
  ({ type: 'integer', minimum: 0, maximum: MAX_CONTEXT, default: 0, description }) as const

const MATCH = {
  type: 'object',
  properties: {
    line: { type: 'integer', description: 'The line where the match begins, counted from 1' },
    first_line: { type: 'integer', description: 'The first line of the text, if not the same' },
    text: { type: 'string', description: 'The lines of the match, with the requested context' },
  },
  required: ['line', 'text'],
} as const

/** The tool `search_for_pattern`. */
export const searchForPattern = (root: Root): Tool => {
  const running = new Semaphore(MAX_RUNNING, MAX_WAITING)
  return tool({
    name: 'search_for_pattern',
    title: 'Search in files',
    description:
      'Searches the text of the project for a regular expression (JavaScript syntax) and shows the matching lines. ' +
      '"." does not match line ends, ^ and $ match at each line; write \\n to match across lines. Narrow the search ' +
      'with relative_path and the globs when there are too many matches. Binary and very large files are skipped.',
    input: {
      type: 'object',
      properties: {
        substring_pattern: { type: 'string', description: 'The regular expression' },
        relative_path: {
          type: 'string',
          default: '.',
          description: 'The file or folder to search, relative to the project root',
        },
        paths_include_glob: { type: 'string', description: 'Only matching files, like "*.ts" or "src/**/*.md"' },
        paths_exclude_glob: { type: 'string', description: 'No matching files' },
        case_sensitive: { type: 'boolean', default: true, description: 'False: A and a are the same' },
        context_lines_before: lineCount('The number of lines to show before each match'),
        context_lines_after: lineCount('The number of lines to show after each match'),
        max_matches: {
          type: 'integer',
          minimum: 1,
          maximum: MAX_MATCHES,
          default: DEFAULT_MATCHES,
          description: 'Stop after this number of matches',
        },
        include_ignored: INCLUDE_IGNORED,
      },
      required: ['substring_pattern'],
    },
    output: {
      type: 'object',
      properties: {
        files: {
          type: 'array',
          items: {
            type: 'object',
            properties: {
              path: { type: 'string', description: 'Relative to the project root' },
              matches: { type: 'array', items: MATCH },
            },
            required: ['path', 'matches'],
          },
        },
        matches: { type: 'integer', description: 'The number of matches shown' },
        searched: { type: 'integer', description: 'The number of files searched' },
        passed_over: { type: 'integer', description: 'The number of files that are binary, too large or unreadable' },
        stopped: { type: 'string', description: 'Why the search stopped early, if it did' },
      },
      required: ['files', 'matches', 'searched', 'passed_over'],
    },
    annotations: READ_ONLY,
    run: async (args, call) => {
      const { context_lines_before: before = 0, context_lines_after: after = 0, max_matches = DEFAULT_MATCHES } = args
      const { paths_include_glob: include, paths_exclude_glob: exclude } = args
      checkRange('context_lines_before', before, 0, MAX_CONTEXT)
      checkRange('context_lines_after', after, 0, MAX_CONTEXT)
      checkRange('max_matches', max_matches, 1, MAX_MATCHES)
      const scope = {
        pattern: patternOf(args.substring_pattern, args.case_sensitive ?? true),
        from: await root.find(args.relative_path ?? '.'),
        includes: include === undefined ? () => true : globArgument('paths_include_glob', include),
        excludes: exclude === undefined ? () => false : globArgument('paths_exclude_glob', exclude),
        includeIgnored: args.include_ignored ?? false,
        maxMatches: max_matches,
        context: { before, after },
      }
      const release = await running.acquire(call.signal).catch(rejectSearch)
      try {
        const found = await runSearch(root, scope, call)
        return { structuredContent: found, ...(found.stopped && found.matches === 0 && { isError: true }) }
      } finally {
        release()
      }
    },
  })
}

const rejectSearch = (error: unknown): never => {
  if (!(error instanceof NotAcquired)) throw error
  throw new Rejected(
    error.reason === 'full' ? 'Too many searches are running; try again in a moment' : 'The call was cancelled',
  )
}

const checkRange = (name: string, value: number, min: number, max: number): void => {
  if (value < min || value > max) throw failure('invalidParams', `Argument "${name}" must be from ${min} to ${max}`)
}

const MAX_PATTERN = 2000

const patternOf = (source: string, isCaseSensitive: boolean): RegExp => {
  if (source === '' || source.length > MAX_PATTERN)
    throw failure('invalidParams', `Argument "substring_pattern" must have 1 to ${MAX_PATTERN} characters`)
  try {
    return new RegExp(source, isCaseSensitive ? 'gm' : 'gim')
  } catch (error) {
    throw failure('invalidParams', `Argument "substring_pattern": ${messageOf(error)}`)
  }
}
