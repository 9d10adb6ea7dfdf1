import type { RecordedKind } from '../../protocol/recording.ts'
import { Json } from '../../wire/json/json.ts'
import {
  alignUp,
  BODY_SHIFT,
  FORM,
  HEADERS,
  ID,
  KINDS,
  METHOD,
  OUTCOMES,
  type ReadBlock,
  SHIFT,
  type StoredExchange,
  type StoredMessage,
} from './block-format.ts'
import type { BlockAddress } from './block-store.ts'
import { readMcpHeaders } from './mcp-headers.ts'
import { serverNameOf } from './recorded-exchange.ts'
import { type TextTable, UNLISTED } from './text-table.ts'

/** The exchange of a block, the block before, and the reader behind them. */
interface ReadExchange {
  readonly exchange: StoredExchange
  readonly before: BlockAddress
  readonly reader: FieldReader
}

/** Reads what a block says about its exchange. */
export const readExchange = (bytes: Buffer, texts: TextTable): ReadExchange => {
  const reader = new FieldReader(bytes, texts)
  const [before, at, durationMs, size] = [reader.float(), reader.float(), reader.float(), reader.float()]
  const numbers = [reader.integer(), reader.integer(), reader.integer(), reader.integer()] as const
  const [order, continues, messages, dropped] = numbers
  const named = Array.from({ length: 6 }, () => reader.known())
  const [dialect = '', revision = '', workspace = '', principal, client, method = ''] = named
  const outcome = OUTCOMES[reader.integer()] ?? 'running'
  const [subject, error] = [reader.known(), reader.text()]
  const servers = Array.from({ length: reader.integer() }, () => {
    const [name = '', dialect, revision] = [reader.known(), reader.known(), reader.known()]
    return dialect === undefined || revision === undefined ? name : { name, dialect, revision }
  })
  const exchange: StoredExchange = {
    ...{
      order: order >>> 0,
      at,
      dialect,
      revision,
      workspace,
      principal,
      client: client || undefined,
      method,
      subject,
      servers,
    },
    ...{ outcome, error, messages, bytes: size, dropped },
    durationMs: durationMs < 0 ? undefined : Math.round(durationMs * 1000) / 1000,
    continues: continues >>> 0 || undefined,
  }
  return { exchange, before, reader }
}

/** Reads a block with its messages. */
export const readBlock = (bytes: Buffer, texts: TextTable): ReadBlock => {
  const { exchange, before, reader } = readExchange(bytes, texts)
  const earlier: ReadBody[] = []
  const messages = Array.from({ length: reader.integer() }, () => readMessage(reader, exchange, earlier))
  return { exchange, messages, before }
}

/** What later messages of a block refer to. */
interface ReadBody {
  readonly text: string
  readonly body: string // the params or the result alone
  readonly id: string
  readonly isCut: boolean
}

const readMessage = (reader: FieldReader, exchange: StoredExchange, earlier: ReadBody[]): StoredMessage => {
  const microseconds = reader.integer() >>> 0
  const what = reader.integer()
  const atMs = ((what >>> SHIFT.time) * 2 ** 32 + microseconds) / 1000
  const [serverIndex, size] = [reader.integer(), reader.integer()]
  const methodForm = (what >> SHIFT.method) & 3
  const named = methodForm === METHOD.other ? reader.known() : undefined
  const method = methodForm === METHOD.same ? exchange.method : named
  const headersForm = (what >> SHIFT.headers) & 1023
  const headersText = headersForm === HEADERS.text ? reader.text() : undefined
  const headers = headersForm >= HEADERS.digit ? String(headersForm - HEADERS.digit) : headersText
  const server = exchange.servers[serverIndex]
  const revision = typeof server === 'object' ? server.revision : exchange.revision
  const kind = KINDS[(what >> SHIFT.kind) & 7] ?? 'notification'
  const read = readBody(reader, { kind, method }, earlier)
  earlier.push(read)
  return {
    atMs,
    server: server === undefined ? undefined : serverNameOf(server),
    direction: what % 2 === 1 ? 'out' : 'in',
    kind,
    method,
    headers: readMcpHeaders(headers, { revision, method, subject: exchange.subject }),
    bytes: size > 0 ? size : Buffer.byteLength(read.text),
    text: read.text,
    isCut: read.isCut,
  }
}

/** A cut may leave a part of a character at the end. */
const readBody = (
  reader: FieldReader,
  { kind, method }: Pick<StoredMessage, 'kind' | 'method'>,
  earlier: readonly ReadBody[],
): ReadBody => {
  const [code, length] = [reader.integer(), reader.integer()]
  const form = (code >> BODY_SHIFT.form) & 7
  const same = earlier[(code >> BODY_SHIFT.same) - 1]
  const isCut = code % 2 === 1 || same?.isCut === true
  const idForm = (code >> BODY_SHIFT.id) & 3
  const id = idForm === ID.same ? (earlier[0]?.id ?? '') : reader.id(idForm)
  const given = reader.slice(length)
  const kept = isCut ? given.replace(/\uFFFD+$/, '') : given
  if (form === FORM.bytes) return { text: kept, body: kept, id, isCut }
  if (form === FORM.whole) return { text: kept, ...membersOf(kept, kind), isCut }
  const body = same?.body ?? kept
  return { text: messageText(form, id, method, body, isCut ? '' : '}'), body, id, isCut }
}

const messageText = (form: number, id: string, method: string | undefined, body: string, tail: string): string => {
  const head = `{"jsonrpc":"2.0"${id === '' ? '' : `,"id":${id}`}`
  if (form === FORM.result) return `${head},"result":${body}${tail}`
  if (form === FORM.error) return `${id === '' ? `${head},"id":null` : head},"error":${body}${tail}`
  const call = `${head},"method":${JSON.stringify(method)}`
  return body === '{}' ? `${call}}` : `${call},"params":${body}${tail}`
}

/** The id of a message that was kept as a whole, and its params or result: it may have the other member, too. */
const membersOf = (text: string, kind: RecordedKind): Pick<ReadBody, 'id' | 'body'> => {
  const message = Json.parse(Buffer.from(text))
  const body = message.get(kind === 'result' || kind === 'answer' ? 'result' : 'params')
  return { id: message.get('id')?.toString() ?? '', body: body?.toString() ?? '{}' }
}

/** Reads the fields of a block one after the other. */
class FieldReader {
  #at = 0
  readonly #bytes: Buffer
  readonly #texts: TextTable

  constructor(bytes: Buffer, texts: TextTable) {
    this.#bytes = bytes
    this.#texts = texts
  }

  float(): number {
    this.#at += 8
    return this.#bytes.readDoubleLE(this.#at - 8)
  }

  integer(): number {
    this.#at += 4
    return this.#bytes.readInt32LE(this.#at - 4)
  }

  known(): string | undefined {
    const number = this.integer()
    return number === UNLISTED ? this.text() : this.#texts.textOf(number)
  }

  text(): string | undefined {
    const length = this.integer()
    return length === 0 ? undefined : this.slice(length - 1)
  }

  id(form: number): string {
    if (form === ID.number) return String(this.integer())
    return form === ID.text ? this.slice(this.integer()) : ''
  }

  slice(length: number): string {
    const start = this.#at
    this.#at = alignUp(start + length, 4)
    return this.#bytes.toString('utf8', start, start + length)
  }
}
