import { isObject } from '../input-checks.ts'
import type { TextLine } from './text-stream.ts'

/** One message of a conversation. */
export interface ChatMessage {
  readonly actor: string
  readonly text: string
  readonly at: number | undefined
}

/** A conversation in one object, as chat programs export it. */
export interface Conversation {
  readonly id: string | undefined
  readonly title: string | undefined
  readonly messages: readonly ChatMessage[]
}

/** A message and its place in the file, for the report. */
export interface PlacedMessage extends ChatMessage {
  readonly where: string
}

/** The speaker where none is named. */
export const UNKNOWN_SPEAKER = 'unknown'

type Members = Readonly<Record<string, unknown>>

const ACTORS = ['role', 'author', 'sender', 'speaker', 'actor', 'from', 'user', 'name']
const TEXTS = ['content', 'text', 'message', 'body', 'parts']
const TIMES = ['create_time', 'created_at', 'createdAt', 'timestamp', 'date', 'time', 'ts', 'valid_at']

/** Reads a message by the usual names of its members; undefined if it has no speaker or no text. */
export const readMessage = (record: Members): ChatMessage | undefined => {
  const actor = firstOf(ACTORS, record, actorIn)
  const text = firstOf(TEXTS, record, textIn)?.trim()
  if (actor === undefined || !text) return undefined
  return { actor, text, at: firstOf(TIMES, record, timeIn) }
}

/** Whether an object is a message without text, like a picture or a tool call. */
export const isEmptyMessage = (record: Members): boolean =>
  firstOf(ACTORS, record, actorIn) !== undefined && TEXTS.some(key => key in record)

const firstOf = <T>(
  keys: readonly string[],
  record: Members,
  read: (value: unknown) => T | undefined,
): T | undefined => {
  for (const key of keys) {
    const found = read(record[key])
    if (found !== undefined) return found
  }
  return undefined
}

const actorIn = (value: unknown): string | undefined => {
  if (isObject(value)) return actorIn(value.name) ?? actorIn(value.role) ?? actorIn(value.username)
  return typeof value === 'string' && value.trim() !== '' ? value.trim() : undefined
}

const textIn = (value: unknown): string | undefined => {
  if (typeof value === 'string') return value.trim() === '' ? undefined : value
  if (Array.isArray(value)) return value.flatMap(part => textIn(part) ?? []).join('\n') || undefined
  return isObject(value) ? (textIn(value.text) ?? textIn(value.parts) ?? textIn(value.content)) : undefined
}

const SECONDS_BELOW = 1e11 // in milliseconds the year 1973, in seconds the year 5138

/** Reads a time in seconds, milliseconds or text. */
export const timeIn = (value: unknown): number | undefined => {
  const given = typeof value === 'string' && /^\d{9,}(\.\d+)?$/.test(value) ? Number(value) : value
  const at = typeof given === 'number' ? given * (given < SECONDS_BELOW ? 1000 : 1) : dateIn(given)
  return at !== undefined && Number.isFinite(at) && Math.abs(at) < 8.64e15 ? Math.trunc(at) : undefined
}

/** A date without an offset is UTC; Date.parse would take the local time zone. */
const dateIn = (value: unknown): number | undefined => {
  if (typeof value !== 'string' || value.trim() === '') return undefined
  const text = value.trim().replace(/^(\d{4}-\d{2}-\d{2})[ T](\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?)$/, '$1T$2Z')
  return Date.parse(text)
}

/** Reads a conversation; undefined if the object is none. */
export const readConversation = (record: Members): Conversation | undefined => {
  const messages = isObject(record.mapping) ? messagesInTree(record, record.mapping) : listIn(record)
  if (!messages) return undefined
  return {
    id: actorIn(record.id) ?? actorIn(record.uuid) ?? actorIn(record.conversation_id),
    title: actorIn(record.title) ?? actorIn(record.name),
    messages: messages.flatMap(message => (isObject(message) ? (readMessage(message) ?? []) : [])),
  }
}

const listIn = ({ messages, chat_messages, conversation }: Members): readonly unknown[] | undefined =>
  [messages, chat_messages, conversation].find(list => Array.isArray(list)) as readonly unknown[] | undefined

/** The messages of a tree with retries: those of the current branch, or else all by time. */
const messagesInTree = ({ current_node }: Members, mapping: Members): readonly unknown[] => {
  const branch: unknown[] = []
  const seen = new Set<string>()
  for (let id = String(current_node); !seen.has(id); ) {
    const node = Object.hasOwn(mapping, id) ? mapping[id] : undefined
    if (!isObject(node)) break
    seen.add(id)
    branch.push(node.message)
    id = String(node.parent)
  }
  if (branch.length > 0) return branch.toReversed()
  const all = Object.values(mapping).flatMap(node => (isObject(node) && isObject(node.message) ? [node.message] : []))
  return all.toSorted((a, b) => (timeIn(a.create_time) ?? 0) - (timeIn(b.create_time) ?? 0))
}

// `Ann: …`, `[2025-03-01 10:02] Ann Lee: …`, `2025-03-01T10:02:00Z Ann: …`
const SPEAKER =
  /^\s*(?:\[?(\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?)\]?\s+|\[[^\]\n]{1,40}\]\s*)?([\p{L}\p{N}_@.'’-]+(?:[ \t][\p{L}\p{N}_@.'’-]+){0,3})(?:[ \t]*\([^)\n]{1,40}\))?:[ \t]+(?=\S)/u

const MOST_LINES = 60
const LEAST_SHARE = 0.6

/** Whether most of the first lines start with a speaker, and speakers recur. */
export const hasSpeakers = (head: string): boolean => {
  const lines = head.split('\n', MOST_LINES).filter(line => line.trim() !== '')
  const speakers = lines.flatMap(line => SPEAKER.exec(line)?.[2] ?? [])
  return (
    lines.length > 1 &&
    speakers.length >= lines.length * LEAST_SHARE &&
    new Set(speakers).size <= Math.max(2, lines.length / 2)
  )
}

/** The messages in a transcript of `actor: text` lines; a line without a speaker continues the message before. */
export const messagesIn = async function* (parts: AsyncIterable<readonly TextLine[]>): AsyncGenerator<PlacedMessage> {
  let message: { where: string; actor: string; at: number | undefined; text: string } | undefined
  for await (const lines of parts)
    for (const { number, text } of lines) {
      const [opening, time, actor] = SPEAKER.exec(text) ?? []
      if (opening === undefined || actor === undefined) {
        if (message) message.text += `\n${text}`
        else if (text.trim() !== '') message = { where: `line ${number}`, actor: UNKNOWN_SPEAKER, at: undefined, text }
        continue
      }
      if (message) yield { ...message, text: message.text.trim() }
      message = { where: `line ${number}`, actor, at: timeIn(time), text: text.slice(opening.length) }
    }
  if (message) yield { ...message, text: message.text.trim() }
}
