import { documentItems } from './documents.ts'
import type { Format, Shape } from './formats.ts'
import { graphitiItem } from './graphiti.ts'
import type { Item, Origin } from './item.ts'
import { type Conversation, isSilent, readConversation, readMessage } from './message.ts'
import { type Record, recordsInDocument, recordsInLines } from './records.ts'
import { serverMemoryItem } from './server-memory.ts'
import { createSessions, type Sessions } from './sessions.ts'
import { linesOf } from './text-stream.ts'
import { saidIn } from './transcript.ts'

const LONGEST_LINE = 64 * 1024

/** What to read a stream as. `given` is the group somebody asked for, whatever the data says. */
export interface Reading extends Origin {
  readonly given: string | undefined
}

type Texts = AsyncIterable<string>
type Read = (texts: Texts, shape: Shape, reading: Reading) => AsyncGenerator<Item>

const recordsOf = (texts: Texts, { holds }: Shape): AsyncGenerator<Record> =>
  holds === 'lines' ? recordsInLines(texts) : recordsInDocument(texts)

/** One item for each record. */
const each = (item: (members: Readonly<{ [key: string]: unknown }>, where: string, reading: Reading) => Item): Read =>
  async function* (texts, shape, reading) {
    for await (const record of recordsOf(texts, shape)) {
      const { where } = record
      yield 'fault' in record ? { kind: 'fault', where, why: record.fault } : item(record.members, where, reading)
    }
  }

/** Conversations each for itself; messages that stand alone are one conversation. */
const chat: Read = async function* (texts, shape, reading) {
  const alone = createSessions(reading)
  if (shape.holds === 'text') for await (const said of saidIn(linesOf(texts, LONGEST_LINE))) yield* alone.add(said)
  else for await (const record of recordsOf(texts, shape)) yield* chatItems(record, reading, alone)
  yield* alone.end()
}

const chatItems = (record: Record, reading: Reading, alone: Sessions): readonly Item[] => {
  const { where } = record
  if ('fault' in record) return [{ kind: 'fault', where, why: record.fault }]
  const conversation = readConversation(record.members)
  if (conversation) return conversationItems(conversation, where, reading)
  const message = readMessage(record.members)
  if (message) return alone.add({ ...message, where })
  if (isSilent(record.members)) return []
  return [{ kind: 'fault', where, why: 'is no message: it does not say who said what' }]
}

const conversationItems = ({ id, title, messages }: Conversation, where: string, reading: Reading): readonly Item[] => {
  const key = id ?? `${reading.key}#${where}`
  const sessions = createSessions({ ...reading, key, name: title ?? reading.name })
  return [...messages.flatMap(message => sessions.add({ ...message, where })), ...sessions.end()]
}

const READERS: Readonly<{ [format in Exclude<Format, 'dragoman'>]: Read }> = {
  'server-memory': each(serverMemoryItem),
  graphiti: each((members, where, { given, group }) => graphitiItem(members, where, { given, absent: group })),
  chat,
  markdown: (texts, _shape, reading) => documentItems(linesOf(texts, LONGEST_LINE), reading, 'Markdown file'),
  text: (texts, _shape, reading) => documentItems(linesOf(texts, LONGEST_LINE), reading, 'text file'),
}

/** Reads a stream of somebody else's data, item by item. */
export const readItems = (texts: Texts, shape: Shape & { readonly format: keyof typeof READERS }, reading: Reading) =>
  READERS[shape.format](texts, shape, reading)
