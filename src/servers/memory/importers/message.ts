/** One thing somebody said. */
export interface Message {
  readonly actor: string
  readonly text: string
  readonly at: number | undefined
}

/** A conversation in one object, as chat programs export them. */
export interface Conversation {
  readonly id: string | undefined
  readonly title: string | undefined
  readonly messages: readonly Message[]
}

type Members = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const ACTORS = ['role', 'author', 'sender', 'speaker', 'actor', 'from', 'user', 'name']
const TEXTS = ['content', 'text', 'message', 'body', 'parts']
const TIMES = ['create_time', 'created_at', 'createdAt', 'timestamp', 'date', 'time', 'ts', 'valid_at']

/** Reads a message by the names such members usually have; undefined where it has nobody or says nothing. */
export const readMessage = (record: Members): Message | undefined => {
  const actor = firstOf(ACTORS, record, actorIn)
  const text = firstOf(TEXTS, record, textIn)?.trim()
  if (actor === undefined || !text) return undefined
  return { actor, text, at: firstOf(TIMES, record, timeIn) }
}

/** True if an object is a message of which nothing is left to read, like a picture or a call of a tool. */
export const isSilent = (record: Members): boolean =>
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

const SECONDS_BELOW = 1e11 // as milliseconds that is 1973, as seconds it is the year 5138

/** A time as seconds, milliseconds or text. */
export const timeIn = (value: unknown): number | undefined => {
  const given = typeof value === 'string' && /^\d{9,}(\.\d+)?$/.test(value) ? Number(value) : value
  const at = typeof given === 'number' ? given * (given < SECONDS_BELOW ? 1000 : 1) : dateIn(given)
  return at !== undefined && Number.isFinite(at) && Math.abs(at) < 8.64e15 ? Math.trunc(at) : undefined
}

/** Without an offset it is UTC, on every machine. */
const dateIn = (value: unknown): number | undefined => {
  if (typeof value !== 'string' || value.trim() === '') return undefined
  const text = value.trim().replace(/^(\d{4}-\d{2}-\d{2})[ T](\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?)$/, '$1T$2Z')
  return Date.parse(text)
}

/** Reads a whole conversation; undefined where the object is none. */
export const readConversation = (record: Members): Conversation | undefined => {
  const messages = isObject(record.mapping) ? spoken(record, record.mapping) : listIn(record)
  if (!messages) return undefined
  const said = messages.flatMap(message => (isObject(message) ? (readMessage(message) ?? []) : []))
  return {
    id: actorIn(record.id) ?? actorIn(record.uuid) ?? actorIn(record.conversation_id),
    title: actorIn(record.title) ?? actorIn(record.name),
    messages: said,
  }
}

const listIn = ({ messages, chat_messages, conversation }: Members): readonly unknown[] | undefined =>
  [messages, chat_messages, conversation].find(list => Array.isArray(list)) as readonly unknown[] | undefined

/** A tree of tries and retries: the branch that was spoken last, or all of it in the order of time. */
const spoken = ({ current_node }: Members, mapping: Members): readonly unknown[] => {
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
