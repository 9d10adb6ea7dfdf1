import { text } from '../define/content.ts'
import { failure } from '../define/failures.ts'
import { type Tool, tool } from '../define/tools.ts'
import { quoted, Refused } from './paths.ts'
import type { Root } from './root.ts'
import { decodeText, isBinary } from './text.ts'
import { fileUri } from './uris.ts'
import { READ_ONLY } from './words.ts'

const MOST_BYTES = 16 * 1024 * 1024
const MOST_CHARACTERS = 200_000

/** The tool `read_file`. */
export const readFile = (root: Root): Tool =>
  tool({
    name: 'read_file',
    title: 'Read a file',
    description:
      'Reads a text file of the project, whole or a range of its lines. Long files are cut off after ' +
      `${MOST_CHARACTERS} characters; the answer then says with which start_line to go on. Pictures and other ` +
      'binary files are read as resources instead.',
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
        text: { type: 'string', description: 'The lines that were asked for' },
        start_line: { type: 'integer', description: 'The first line of the text' },
        end_line: { type: 'integer', description: 'The last line of the text' },
        total_lines: { type: 'integer', description: 'How many lines the file has' },
        next_line: { type: 'integer', description: 'Where to go on; only if the text was cut off' },
      },
      required: ['path', 'text', 'start_line', 'end_line', 'total_lines'],
    },
    annotations: READ_ONLY,
    run: async ({ relative_path, start_line = 1, end_line = Number.MAX_SAFE_INTEGER }) => {
      if (start_line < 1 || end_line < start_line)
        throw failure('invalidParams', 'Lines are counted from 1, and end_line is not before start_line')
      const file = await root.find(relative_path)
      const bytes = await root.read(file, MOST_BYTES)
      if (isBinary(bytes))
        throw new Refused(`${quoted(file.path)} is a binary file; read it as the resource ${fileUri(file.path)}`)
      const cut = cutLines(decodeText(bytes), start_line, end_line)
      if (start_line > Math.max(1, cut.total))
        throw new Refused(`${quoted(file.path)} has ${cut.total} lines; there is no line ${start_line}`)
      const structuredContent = {
        path: file.path,
        text: cut.text,
        start_line,
        end_line: cut.end,
        total_lines: cut.total,
        next_line: cut.next,
      }
      const rest = cut.next === undefined ? [] : [text(`Cut off; go on with start_line ${cut.next}`)]
      return { content: [text(cut.text), ...rest], structuredContent }
    },
  })

/** The lines of a text from one to another, as far as the limit allows; a line that is too long for itself is cut. */
const cutLines = (whole: string, start: number, wanted: number) => {
  const lines = whole.split('\n')
  if (lines.at(-1) === '') lines.pop() // the last line break ends a line, it begins none
  const last = Math.min(wanted, lines.length)
  const kept: string[] = []
  for (let room = MOST_CHARACTERS; start - 1 + kept.length < last; ) {
    const line = lines[start - 1 + kept.length] ?? ''
    room -= line.length + 1
    if (room < 0 && kept.length > 0) break
    kept.push(room < 0 ? `${line.slice(0, MOST_CHARACTERS)}…` : line)
  }
  const end = start - 1 + kept.length
  const isToTheEnd = end === lines.length && whole.endsWith('\n')
  return {
    text: kept.join('\n') + (isToTheEnd ? '\n' : ''),
    end,
    total: lines.length,
    next: end < last ? end + 1 : undefined,
  }
}
