import type { TappedContent, TappedServer } from '../../protocol/message-tap.ts'
import type { RecordedKind, RecordingOutcome } from '../../protocol/recording.ts'
import type { Json } from '../../wire/json/json.ts'
import type { BlockAddress } from './block-store.ts'
import { readMcpHeaders } from './mcp-headers.ts'
import { bodyOf, type PendingMessage, type RecordedExchange } from './recorded-exchange.ts'
import { type TextTable, UNLISTED } from './text-table.ts'

// A block: what is known of an exchange, then its messages, as numbers and bytes. Texts that repeat are numbers of a table, and
// the envelope of a message that was read is written again when it is shown: both are cheaper than texts.

/** What a block says about its exchange. */
export interface StoredExchange {
  readonly order: number
  readonly at: number
  readonly dialect: string
  readonly revision: string
  readonly workspace: string
  readonly principal: string | undefined
  readonly client: string | undefined
  readonly method: string
  readonly subject: string | undefined
  readonly servers: readonly (TappedServer | string)[]
  readonly outcome: RecordingOutcome
  readonly error: string | undefined
  readonly durationMs: number | undefined
  readonly messages: number
  readonly bytes: number
  readonly dropped: number
  readonly continues: number | undefined
}

/** One message in a block. */
export interface StoredMessage {
  readonly atMs: number
  readonly server: string | undefined // undefined: it was exchanged with the client
  readonly direction: 'in' | 'out'
  readonly kind: RecordedKind
  readonly method: string | undefined
  readonly headers: readonly (readonly [string, string])[]
  readonly bytes: number
  readonly text: string // as far as it is kept
  readonly isCut: boolean
}

/** A block that was read. */
export interface ReadBlock {
  readonly exchange: StoredExchange
  readonly messages: readonly StoredMessage[]
  readonly before: BlockAddress // -1: it is the first of its exchange
}

const KINDS: readonly RecordedKind[] = ['request', 'notification', 'result', 'error', 'question', 'answer']
const OUTCOMES: readonly RecordingOutcome[] = [
  ...(['running', 'ok', 'tool_error', 'error', 'denied', 'cancelled', 'input_required'] as const),
]
const FORMS = 16
const RAW = 0 // how a body is kept: as it travelled, or the part of a message that varies
const CALL = 1
const RESULT = 2
const ERROR = 3
const FAILURE = 4 // an error that is kept as a whole

const LONGEST_ID = 256 // bytes
const PLACES = 13 // of texts that repeat
const LONGEST_MESSAGE = 2000 // characters of an error

/** The least room that a block needs besides the bodies of its messages. */
export const BLOCK_OVERHEAD = 16 * 1024

/** Writes and reads blocks. */
export class BlockCodec {
  readonly #texts: TextTable
  #lastTexts: (string | undefined)[] = new Array<undefined>(PLACES).fill(undefined)
  #lastNumbers: number[] = new Array<number>(PLACES).fill(0)
  #target: Buffer = Buffer.alloc(0)
  #at = 0

  constructor(texts: TextTable) {
    this.#texts = texts
  }

  /** Forgets the texts that repeat. */
  clear(): void {
    this.#texts.clear()
    this.#lastTexts.fill(undefined)
    this.#lastNumbers.fill(0)
  }

  /** Writes an exchange with its pending messages at that place of a buffer, and returns where it ends. */
  write(exchange: RecordedExchange, maxMessageBytes: number, target: Buffer, start: number): number {
    this.#target = target
    this.#at = start
    this.#float(exchange.block)
    this.#float(exchange.at)
    this.#float(exchange.durationMs)
    this.#float(exchange.bytes)
    this.#integer(exchange.order)
    this.#integer(exchange.continues)
    this.#integer(exchange.messages)
    this.#integer(exchange.dropped)
    this.#named(exchange.dialect, 0)
    this.#named(exchange.revision, 1)
    this.#named(exchange.workspace, 2)
    this.#named(exchange.principal, 3)
    this.#named(exchange.client, 4)
    this.#named(exchange.method, 5)
    this.#integer(OUTCOMES.indexOf(exchange.outcome))
    this.#named(exchange.subject, 6)
    this.#text(exchange.error)
    this.#integer(exchange.servers.length)
    for (const server of exchange.servers) {
      const { name, dialect, revision } = typeof server === 'string' ? unknownServer(server) : server
      this.#named(name, 7)
      this.#named(dialect, 8)
      this.#named(revision, 9)
    }
    this.#integer(exchange.pending.length)
    for (let at = 0; at < exchange.pending.length; at++) this.#message(exchange, at, maxMessageBytes)
    return this.#at
  }

  #message({ pending, started }: RecordedExchange, index: number, maxMessageBytes: number): void {
    const message = pending[index] as PendingMessage
    const { content, server } = message
    this.#integer(Math.max(0, Math.round((message.at - started) * 1000)))
    this.#integer(KINDS.indexOf(message.kind) * 2 + (message.direction === 'out' ? 1 : 0))
    this.#named(server?.name, 10)
    this.#named(message.method, 11)
    this.#named(message.headers?.length === 1 ? message.headers : undefined, 12)
    this.#text(message.headers?.length === 1 ? undefined : message.headers)
    this.#integer(message.bytes)
    const lengthAt = this.#at
    this.#at += 8
    const same = 'kind' in content && content.kind !== 'error' ? indexOfSame(pending, index, bodyOf(content)) : -1
    const form = this.#body(content, same)
    const length = this.#at - lengthAt - 8
    const kept = Math.min(length, maxMessageBytes)
    this.#at = lengthAt
    this.#integer((same + 1) * FORMS + form * 2 + (kept < length || message.isCut ? 1 : 0))
    this.#integer(kept)
    this.#at += kept
  }

  /** Writes the body of a message, and returns its form; `same`: the earlier message that has the same params or result. */
  #body(content: TappedContent, same: number): number {
    if (!('kind' in content)) {
      for (const piece of content) {
        const room = this.#target.length - this.#at
        this.#target.set(piece.length > room ? piece.subarray(0, room) : piece, this.#at)
        this.#at += Math.min(room, piece.length)
      }
      return RAW
    }
    switch (content.kind) {
      case 'request':
      case 'notification':
        this.#id('id' in content ? content.id : undefined)
        if (same < 0) this.#json(content.params)
        return CALL
      case 'response':
        this.#id(content.id)
        if (same < 0) this.#json(content.result)
        return RESULT
      case 'error': {
        this.#id(content.id)
        const { code, message, data } = content.error
        this.#at += this.#target.write(JSON.stringify({ code, message: message.slice(0, LONGEST_MESSAGE) }), this.#at)
        if (!data) return FAILURE
        this.#target[this.#at - 1] = 0x2c // a comma in place of the brace
        this.#at += this.#target.write('"data":', this.#at)
        this.#json(data)
        this.#at += this.#target.write('}', this.#at)
        return ERROR
      }
    }
  }

  /** An id with its length; of a long one nothing. */
  #id(id: Json | number | undefined): void {
    if (id === undefined) return this.#integer(0)
    if (typeof id === 'number') return this.#digits(id)
    const lengthAt = this.#at
    this.#at += 4
    const end = id.size > LONGEST_ID ? this.#at : id.copyTo(this.#target, this.#at)
    const length = end - this.#at
    this.#at = lengthAt
    this.#integer(length + 1)
    this.#at = end
  }

  /** An id of the gateway's own, with its length. */
  #digits(id: number): void {
    let count = 1
    for (let rest = id; rest >= 10; rest = Math.floor(rest / 10)) count++
    this.#integer(count + 1)
    let rest = id
    for (let at = this.#at + count - 1; at >= this.#at; at--) {
      this.#target[at] = 0x30 + (rest % 10)
      rest = Math.floor(rest / 10)
    }
    this.#at += count
  }

  /**
   * A text that repeats, as its number; where the table is full, the text itself follows. Each place of a block most often
   * has the text of the block before, and to compare texts takes less time than to find one in the table.
   */
  #named(text: string | undefined, place: number): void {
    if (this.#lastTexts[place] !== text) {
      this.#lastTexts[place] = text
      this.#lastNumbers[place] = this.#texts.numberOf(text)
    }
    const number = this.#lastNumbers[place] as number
    this.#integer(number)
    if (number === UNLISTED) this.#text(text)
  }

  #json(value: Json): void {
    this.#at = value.copyTo(this.#target, this.#at)
  }

  #float(value: number): void {
    this.#at = this.#target.writeDoubleLE(value, this.#at)
  }

  #integer(value: number): void {
    const target = this.#target
    const at = this.#at
    target[at] = value
    target[at + 1] = value >>> 8
    target[at + 2] = value >>> 16
    target[at + 3] = value >>> 24
    this.#at = at + 4
  }

  /** A text with its length, which tells an absent one from an empty one. */
  #text(text: string | undefined): void {
    const lengthAt = this.#at
    this.#at += 4
    const length = text === undefined || text === '' ? 0 : this.#target.write(text, this.#at)
    this.#at = lengthAt
    this.#integer(text === undefined ? 0 : length + 1)
    this.#at += length
  }

  /** Reads what a block says about its exchange; `rest` is where its messages are. */
  readExchange(bytes: Buffer): {
    readonly exchange: StoredExchange
    readonly before: BlockAddress
    readonly rest: number
  } {
    const reader = new BlockReader(bytes, 0, this.#texts)
    const [before, at, durationMs, size] = [reader.float(), reader.float(), reader.float(), reader.float()]
    const [order, continues, messages, dropped] = [
      reader.integer(),
      reader.integer(),
      reader.integer(),
      reader.integer(),
    ]
    const named = Array.from({ length: 6 }, () => reader.known())
    const [dialect = '', revision = '', workspace = '', principal, client, method = ''] = named
    const outcome = OUTCOMES[reader.integer()] ?? 'running'
    const [subject, error] = [reader.known(), reader.text()]
    const servers = Array.from({ length: reader.integer() }, () => {
      const [name = '', dialect, revision] = [reader.known(), reader.known(), reader.known()]
      return dialect === undefined || revision === undefined ? name : { name, dialect, revision }
    })
    const exchange: StoredExchange = {
      ...{ order, at, dialect, revision, workspace, principal, client: client || undefined, method, subject, servers },
      ...{ outcome, error, messages, bytes: size, dropped },
      durationMs: durationMs < 0 ? undefined : Math.round(durationMs * 1000) / 1000,
      continues: continues || undefined,
    }
    return { exchange, before, rest: reader.at }
  }

  readBlock(bytes: Buffer): ReadBlock {
    const { exchange, before, rest } = this.readExchange(bytes)
    const reader = new BlockReader(bytes, rest, this.#texts)
    const bodies: { readonly body: string; readonly isCut: boolean }[] = []
    const messages = Array.from({ length: reader.integer() }, () => readMessage(reader, exchange, bodies))
    return { exchange, messages, before }
  }
}

/** The earlier message with the very same params or result, which the gateway has passed on unchanged; -1 if there is none. */
const indexOfSame = (pending: readonly PendingMessage[], index: number, body: Json | undefined): number => {
  if (!body) return -1
  for (let at = 0; at < index; at++) {
    const { content } = pending[at] as PendingMessage
    if ('kind' in content && content.kind !== 'error' && bodyOf(content) === body) return at
  }
  return -1
}

const unknownServer = (name: string) => ({ name, dialect: undefined, revision: undefined })

class BlockReader {
  at: number
  readonly #bytes: Buffer
  readonly #texts: TextTable

  constructor(bytes: Buffer, at: number, texts: TextTable) {
    this.#bytes = bytes
    this.at = at
    this.#texts = texts
  }

  float(): number {
    this.at += 8
    return this.#bytes.readDoubleLE(this.at - 8)
  }

  integer(): number {
    this.at += 4
    return this.#bytes.readUInt32LE(this.at - 4)
  }

  known(): string | undefined {
    const number = this.integer()
    return number === UNLISTED ? this.text() : this.#texts.textOf(number)
  }

  text(): string | undefined {
    const length = this.integer()
    return length === 0 ? undefined : this.slice(length - 1)
  }

  slice(length: number): string {
    this.at += length
    return this.#bytes.toString('utf8', this.at - length, this.at)
  }
}

/** `bodies` gets the body of each message, for later ones that have the same. */
const readMessage = (
  reader: BlockReader,
  { revision, subject, servers }: StoredExchange,
  bodies: { readonly body: string; readonly isCut: boolean }[],
): StoredMessage => {
  const atMs = reader.integer() / 1000
  const what = reader.integer()
  const [server, method] = [reader.known(), reader.known()]
  const spoken = servers.find(each => typeof each !== 'string' && each.name === server)
  const said = { revision: typeof spoken === 'object' ? spoken.revision : revision, method, subject }
  const [repeated, given] = [reader.known(), reader.text()]
  const headers = readMcpHeaders(repeated ?? given, said)
  const size = reader.integer()
  const [coded, length] = [reader.integer(), reader.integer()]
  const [same, form] = [bodies[Math.floor(coded / FORMS) - 1], coded % FORMS]
  const isCut = form % 2 === 1 || same?.isCut === true
  const end = reader.at + length
  const { text, body } = readBody(reader, { form: form >> 1, method, end, isCut, same: same?.body })
  bodies.push({ body, isCut })
  reader.at = end
  const kind = KINDS[what >> 1] ?? 'notification'
  const bytes = size > 0 ? size : Buffer.byteLength(text)
  return { atMs, server, direction: what % 2 === 1 ? 'out' : 'in', kind, method, headers, bytes, text, isCut }
}

interface CodedBody {
  readonly form: number
  readonly method: string | undefined
  readonly end: number
  readonly isCut: boolean
  readonly same: string | undefined // the body, if an earlier message has the same
}

/** The text of a message with its envelope, and its body alone. A cut may leave a part of a character at the end. */
const readBody = (
  reader: BlockReader,
  { form, method, end, isCut, same }: CodedBody,
): { readonly text: string; readonly body: string } => {
  const rest = (): string => {
    const text = reader.slice(Math.max(0, end - reader.at))
    return isCut ? text.replace(/\uFFFD+$/, '') : text
  }
  if (form === RAW) {
    const text = rest()
    return { text, body: text }
  }
  const id = reader.text() ?? ''
  const head = `{"jsonrpc":"2.0"${id === '' ? '' : `,"id":${id}`}`
  const body = same ?? rest()
  const tail = isCut ? '' : '}'
  if (form === CALL) {
    const call = `${head},"method":${JSON.stringify(method)}`
    return { text: body === '{}' ? `${call}}` : `${call},"params":${body}${tail}`, body }
  }
  if (form === RESULT) return { text: `${head},"result":${body}${tail}`, body }
  return { text: `${id === '' ? `${head},"id":null` : head},"error":${body}${tail}`, body }
}
