import { isObject } from '../input-checks.ts'
import { hasSpeakers } from './messages.ts'

/** The formats that can be imported; `dragoman` is an export of this program. */
export const FORMATS = ['dragoman', 'server-memory', 'graphiti', 'chat', 'markdown', 'text'] as const

export type Format = (typeof FORMATS)[number]

/** The format of a stream, and its layout: one object per line, one JSON document, or text. */
export interface StreamShape {
  readonly format: Format
  readonly layout: 'lines' | 'document' | 'text'
}

type Members = Readonly<Record<string, unknown>>

/** The format of an object; undefined if unknown. */
const formatOf = (record: Members): Format | undefined => RECORDS.find(({ is }) => is(record))?.format

const has = (record: Members, ...keys: readonly string[]): boolean => keys.some(key => record[key] !== undefined)

const RECORDS: readonly { readonly format: Format; readonly is: (record: Members) => boolean }[] = [
  { format: 'dragoman', is: record => record.type === 'dragoman-memory' },
  { format: 'server-memory', is: record => has(record, 'entityType', 'observations', 'relationType') },
  { format: 'chat', is: record => has(record, 'mapping', 'chat_messages') || Array.isArray(record.messages) },
  { format: 'graphiti', is: record => has(record, 'group_id', 'episode_body', 'source_description') },
  {
    format: 'chat',
    is: record =>
      has(record, 'role', 'author', 'sender', 'speaker', 'actor', 'from', 'user') &&
      has(record, 'content', 'text', 'message', 'body', 'parts'),
  },
  { format: 'graphiti', is: record => has(record, 'content') && has(record, 'uuid', 'name') },
]

/** Tells the format of a document from the member names in its beginning. */
const MEMBER_PATTERNS: readonly (readonly [RegExp, Format])[] = [
  [/"(?:entityType|relationType|observations)"\s*:/, 'server-memory'],
  [/"(?:mapping|chat_messages)"\s*:/, 'chat'],
  [/"(?:episode_body|group_id|source_description|episodes)"\s*:/, 'graphiti'],
  [/"(?:role|author|sender|speaker|actor|from|messages)"\s*:/, 'chat'],
  [/"content"\s*:/, 'graphiti'],
]

/** Detects the format by the beginning and the file name; undefined if it is unclear. */
export const detectShape = (head: string, isWhole: boolean, name: string): StreamShape | undefined => {
  const start = head.trimStart()
  if (start.startsWith('{') || start.startsWith('[')) {
    const found = detectJson(start, isWhole)
    if (found || /\.(json|jsonl|ndjson)$/i.test(name)) return found
  }
  if (/\.(md|markdown|mdx)$/i.test(name)) return { format: 'markdown', layout: 'text' }
  return { format: hasSpeakers(head) ? 'chat' : 'text', layout: 'text' }
}

const detectJson = (start: string, isWhole: boolean): StreamShape | undefined => {
  const end = start.indexOf('\n')
  const line = end < 0 && !isWhole ? undefined : objectIn(end < 0 ? start : start.slice(0, end))
  const lineFormat = line && formatOf(line)
  if (lineFormat) return { format: lineFormat, layout: 'lines' }
  const format = MEMBER_PATTERNS.find(([pattern]) => pattern.test(start))?.[1]
  return format && { format, layout: 'document' }
}

const objectIn = (text: string): Members | undefined => {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** The layout of data whose format the caller named. */
export const shapeFor = (format: Format, head: string): StreamShape => {
  if (format === 'text' || format === 'markdown') return { format, layout: 'text' }
  const start = head.trimStart()
  if (format === 'chat' && !/^[[{]/.test(start)) return { format, layout: 'text' }
  const end = start.indexOf('\n')
  const line = objectIn(end < 0 ? start : start.slice(0, end))
  return { format, layout: format === 'dragoman' || (line && formatOf(line)) ? 'lines' : 'document' }
}
