import { hasSpeakers } from './transcript.ts'

/** What can be read besides what we wrote ourselves. */
export const FORMATS = ['dragoman', 'server-memory', 'graphiti', 'chat', 'markdown', 'text'] as const

export type Format = (typeof FORMATS)[number]

/** What a stream is: the format, and for data whether every line is an object or all of it is one document. */
export interface Shape {
  readonly format: Format
  readonly holds: 'lines' | 'document' | 'text'
}

type Members = Readonly<Record<string, unknown>>

/** What an object is a record of; undefined where it says nothing. */
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

/** By what stands in the beginning of a document that is not read whole. */
const SIGNS: readonly (readonly [RegExp, Format])[] = [
  [/"(?:entityType|relationType|observations)"\s*:/, 'server-memory'],
  [/"(?:mapping|chat_messages)"\s*:/, 'chat'],
  [/"(?:episode_body|group_id|source_description|episodes)"\s*:/, 'graphiti'],
  [/"(?:role|author|sender|speaker|actor|from|messages)"\s*:/, 'chat'],
  [/"content"\s*:/, 'graphiti'],
]

/** Finds out what a text is by its beginning and its name; undefined where it cannot be told. */
export const detect = (head: string, isWhole: boolean, name: string): Shape | undefined => {
  const start = head.trimStart()
  if (start.startsWith('{') || start.startsWith('[')) {
    const found = detectData(start, isWhole)
    if (found || /\.(json|jsonl|ndjson)$/i.test(name)) return found
  }
  if (/\.(md|markdown|mdx)$/i.test(name)) return { format: 'markdown', holds: 'text' }
  return { format: hasSpeakers(head) ? 'chat' : 'text', holds: 'text' }
}

const detectData = (start: string, isWhole: boolean): Shape | undefined => {
  const end = start.indexOf('\n')
  const line = end < 0 && !isWhole ? undefined : objectIn(end < 0 ? start : start.slice(0, end))
  const own = line && formatOf(line)
  if (own) return { format: own, holds: 'lines' }
  const format = SIGNS.find(([sign]) => sign.test(start))?.[1]
  return format && { format, holds: 'document' }
}

const objectIn = (text: string): Members | undefined => {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Members) : undefined
  } catch {
    return undefined
  }
}

/** How data of a format that was named is to be read, where its beginning does not show it. */
export const shapeFor = (format: Format, head: string): Shape => {
  if (format === 'text' || format === 'markdown') return { format, holds: 'text' }
  const start = head.trimStart()
  if (format === 'chat' && !/^[[{]/.test(start)) return { format, holds: 'text' }
  const end = start.indexOf('\n')
  const line = objectIn(end < 0 ? start : start.slice(0, end))
  return { format, holds: format === 'dragoman' || (line && formatOf(line)) ? 'lines' : 'document' }
}
