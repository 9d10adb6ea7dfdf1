import { uuidFor } from '../ids.ts'
import { type ChatEpisodes, createChatEpisodes } from './chat-episodes.ts'
import type { Format, StreamShape } from './formats.ts'
import { graphitiItem } from './graphiti.ts'
import { isEmptyMessage, messagesIn, readConversation, readMessage } from './messages.ts'
import { type ImportRecord, recordsInDocument, recordsInLines } from './records.ts'
import { serverMemoryItem } from './server-memory.ts'
import type { ImportItem, ImportOrigin } from './store-items.ts'
import { linesOf, type TextLine } from './text-stream.ts'

const LONGEST_LINE = 64 * 1024

type Texts = AsyncIterable<string>
type Reader = (texts: Texts, shape: StreamShape, source: ImportOrigin) => AsyncGenerator<ImportItem>

const recordsOf = (texts: Texts, { layout }: StreamShape): AsyncGenerator<ImportRecord> =>
  layout === 'lines' ? recordsInLines(texts) : recordsInDocument(texts)

/** Reads one item from each record. */
const each = (
  itemOf: (members: Readonly<Record<string, unknown>>, where: string, source: ImportOrigin) => ImportItem,
): Reader =>
  async function* (texts, shape, source) {
    for await (const record of recordsOf(texts, shape)) {
      const { where } = record
      yield 'fault' in record ? { kind: 'fault', where, why: record.fault } : itemOf(record.members, where, source)
    }
  }

/** Reads conversations; single messages together make one conversation. */
const readChat: Reader = async function* (texts, shape, source) {
  const single = createChatEpisodes(source)
  if (shape.layout === 'text')
    for await (const message of messagesIn(linesOf(texts, LONGEST_LINE))) yield* single.add(message)
  else for await (const record of recordsOf(texts, shape)) yield* chatItems(record, source, single)
  yield* single.end()
}

const chatItems = (record: ImportRecord, source: ImportOrigin, single: ChatEpisodes): readonly ImportItem[] => {
  const { where } = record
  if ('fault' in record) return [{ kind: 'fault', where, why: record.fault }]
  const conversation = readConversation(record.members)
  if (conversation) {
    const { id = `${source.key}#${where}`, title = source.name, messages } = conversation
    const episodes = createChatEpisodes({ ...source, key: id, name: title })
    return [...messages.flatMap(message => episodes.add({ ...message, where })), ...episodes.end()]
  }
  const message = readMessage(record.members)
  if (message) return single.add({ ...message, where })
  if (isEmptyMessage(record.members)) return []
  return [{ kind: 'fault', where, why: 'is not a message: it needs a speaker and a text' }]
}

const PIECE_CHARACTERS = 256 * 1024 // a piece ends at the next heading or empty line
const MOST_PIECE_CHARACTERS = 512 * 1024

/** Reads a text as one episode, or several if it is long, cut between its sections. */
const documentReader = (description: string): Reader =>
  async function* (texts, _shape, { name, group, key, modified }) {
    const uuidOf = (number: number): string => uuidFor('file', group, key, number)
    let number = 0
    for await (const { where, body } of piecesOf(linesOf(texts, LONGEST_LINE))) {
      if (body.includes('\0')) {
        yield { kind: 'fault', where, why: 'looks binary: it has a zero byte' }
        return
      }
      const input = {
        uuid: uuidOf(number),
        group,
        name: number === 0 ? name : `${name} (${number + 1})`,
        body,
        source: 'text',
        sourceDescription: description,
        validAt: modified,
        chain: `file:${uuidFor(key)}`,
      } as const
      yield { kind: 'episode', where, input, isUndated: true }
      number++
    }
    yield { kind: 'end', uuidOf, from: number }
  }

const piecesOf = async function* (
  parts: AsyncIterable<readonly TextLine[]>,
): AsyncGenerator<{ where: string; body: string }> {
  let [piece, size, start]: [string[], number, number] = [[], 0, 1]
  for await (const lines of parts)
    for (const { number, text } of lines) {
      const isBreak = text.trim() === '' || /^#{1,6}\s/.test(text)
      if ((size > PIECE_CHARACTERS && isBreak) || size + text.length > MOST_PIECE_CHARACTERS) {
        if (piece.some(line => line.trim() !== '')) yield { where: `line ${start}`, body: piece.join('\n') }
        ;[piece, size, start] = [[], 0, number]
      }
      piece.push(text)
      size += text.length + 1
    }
  if (piece.some(line => line.trim() !== '')) yield { where: `line ${start}`, body: piece.join('\n') }
}

const READERS: Readonly<Record<Exclude<Format, 'dragoman'>, Reader>> = {
  'server-memory': each(serverMemoryItem),
  graphiti: each(graphitiItem),
  chat: readChat,
  markdown: documentReader('Markdown file'),
  text: documentReader('text file'),
}

/** Reads a stream of a foreign format, item by item. */
export const readItems = (
  texts: Texts,
  shape: StreamShape & { readonly format: keyof typeof READERS },
  source: ImportOrigin,
) => READERS[shape.format](texts, shape, source)
