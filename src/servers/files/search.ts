import { failure, messageOf } from '../define/failures.ts'
import { type Tool, tool } from '../define/tools.ts'
import { excerptsOf } from './excerpts.ts'
import { globOf } from './find-file.ts'
import type { Root } from './root.ts'
import { runSearch, type Scope } from './search-run.ts'
import { createSlots } from './slots.ts'
import { INCLUDE_IGNORED, READ_ONLY } from './words.ts'

const MOST_CONTEXT = 20
const MOST_MATCHES = 1000
const USUAL_MATCHES = 200
const MOST_AT_ONCE = 2
const MOST_WAITING = 32

const lines = (description: string) =>
  ({ type: 'integer', minimum: 0, maximum: MOST_CONTEXT, default: 0, description }) as const

/** The tool `search_for_pattern`. */
export const searchForPattern = (root: Root): Tool => {
  const slots = createSlots(MOST_AT_ONCE, MOST_WAITING)
  return tool({
    name: 'search_for_pattern',
    title: 'Search in files',
    description:
      'Searches the text of the project for a regular expression (JavaScript syntax) and shows the lines where it ' +
      'fits. "." stops at the end of a line, ^ and $ are about lines; write \\n to match across lines. Narrow the ' +
      'search with relative_path and the globs when there are too many matches. Binary and very large files are ' +
      'passed over.',
    input: {
      type: 'object',
      properties: {
        substring_pattern: { type: 'string', description: 'The regular expression' },
        relative_path: {
          type: 'string',
          default: '.',
          description: 'The file or folder to search, relative to the project root',
        },
        paths_include_glob: { type: 'string', description: 'Only files that fit, like "*.ts" or "src/**/*.md"' },
        paths_exclude_glob: { type: 'string', description: 'No files that fit' },
        case_sensitive: { type: 'boolean', default: true, description: 'False: A and a are the same' },
        context_lines_before: lines('How many lines to show before each match'),
        context_lines_after: lines('How many lines to show after each match'),
        max_matches: {
          type: 'integer',
          minimum: 1,
          maximum: MOST_MATCHES,
          default: USUAL_MATCHES,
          description: 'Stop after so many matches',
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
              matches: {
                type: 'array',
                items: {
                  type: 'object',
                  properties: {
                    line: { type: 'integer', description: 'The line where the match begins, counted from 1' },
                    first_line: { type: 'integer', description: 'The first line of the text, if not the same' },
                    text: { type: 'string', description: 'The lines of the match, with the context asked for' },
                  },
                  required: ['line', 'text'],
                },
              },
            },
            required: ['path', 'matches'],
          },
        },
        matches: { type: 'integer', description: 'How many matches are shown' },
        searched: { type: 'integer', description: 'How many files were searched' },
        passed_over: { type: 'integer', description: 'How many were binary, too large or not readable' },
        stopped: { type: 'string', description: 'Why the search ended before its end, if it did' },
      },
      required: ['files', 'matches', 'searched', 'passed_over'],
    },
    annotations: READ_ONLY,
    run: async (args, call) => {
      const { context_lines_before: before = 0, context_lines_after: after = 0, max_matches = USUAL_MATCHES } = args
      checkRange('context_lines_before', before, 0, MOST_CONTEXT)
      checkRange('context_lines_after', after, 0, MOST_CONTEXT)
      checkRange('max_matches', max_matches, 1, MOST_MATCHES)
      const scope: Scope = {
        pattern: patternOf(args.substring_pattern, args.case_sensitive ?? true),
        from: await root.find(args.relative_path ?? '.'),
        includes:
          args.paths_include_glob === undefined ? () => true : globOf('paths_include_glob', args.paths_include_glob),
        excludes:
          args.paths_exclude_glob === undefined ? () => false : globOf('paths_exclude_glob', args.paths_exclude_glob),
        includeIgnored: args.include_ignored ?? false,
        mostMatches: max_matches,
        excerpts: (text, spans) => excerptsOf(text, spans, { before, after }),
      }
      const giveBack = await slots.take(call.signal)
      try {
        const { stopped, ...found } = await runSearch(root, scope, call)
        return { structuredContent: { ...found, stopped }, ...(stopped && found.matches === 0 && { isError: true }) }
      } finally {
        giveBack()
      }
    },
  })
}

const checkRange = (name: string, value: number, least: number, most: number): void => {
  if (value < least || value > most)
    throw failure('invalidParams', `Argument "${name}" must be from ${least} to ${most}`)
}

const LONGEST_PATTERN = 2000

const patternOf = (source: string, isCaseSensitive: boolean): RegExp => {
  if (source === '' || source.length > LONGEST_PATTERN)
    throw failure('invalidParams', `Argument "substring_pattern" must have 1 to ${LONGEST_PATTERN} characters`)
  try {
    return new RegExp(source, isCaseSensitive ? 'gm' : 'gim')
  } catch (error) {
    throw failure('invalidParams', `Argument "substring_pattern": ${messageOf(error)}`)
  }
}
