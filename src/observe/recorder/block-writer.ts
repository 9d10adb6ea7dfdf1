import type { TappedServer } from '../../protocol/message-tap.ts'
import type { RecordedKind } from '../../protocol/recording.ts'
import { Json } from '../../wire/json/json.ts'
import type { ErrorObject } from '../../wire/json-rpc.ts'
import { alignUp, BODY_SHIFT, FORM, HEADERS, ID, METHOD, OUTCOMES, SHIFT } from './block-format.ts'
import { NO_SEGMENT, type Segment } from './block-store.ts'
import type { PendingMessage } from './pending-message.ts'
import type { RecordedExchange } from './recorded-exchange.ts'
import { type TextTable, UNLISTED } from './text-table.ts'

const LONGEST_ID = 256 // bytes
const PLACES = 11 // of texts that repeat
const LONGEST_MESSAGE = 2000 // characters of an error
const MOST_ENVELOPE = 512 // bytes of a message besides its params or result

/** The least room that a block needs besides the bodies of its messages. */
export const BLOCK_OVERHEAD = 16 * 1024

/** Writes blocks. It runs once or more for each request of a client, so it calls little that is not inlined. */
export class BlockWriter {
  readonly #texts: TextTable
  #lastTexts: (string | undefined)[] = new Array<undefined>(PLACES).fill(undefined)
  #lastNumbers: number[] = new Array<number>(PLACES).fill(0)
  #segment: Segment = NO_SEGMENT
  #ints: Int32Array = NO_SEGMENT.ints
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

  /** Writes an exchange with its pending messages at that place of a segment, and returns where it ends. */
  write(exchange: RecordedExchange, maxMessageBytes: number, segment: Segment, start: number): number {
    this.#segment = segment
    this.#ints = segment.ints
    const { floats } = segment
    const at = start >> 3
    floats[at] = exchange.block
    floats[at + 1] = exchange.at
    floats[at + 2] = exchange.durationMs
    floats[at + 3] = exchange.bytes
    this.#at = start + 32
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
    this.#integer(exchange.outcome === 'ok' ? 1 : OUTCOMES.indexOf(exchange.outcome))
    this.#named(exchange.subject, 6)
    this.#text(exchange.error)
    this.#servers(exchange.servers)
    const { pending } = exchange
    this.#integer(pending.length)
    for (let index = 0; index < pending.length; index++) this.#message(exchange, index, maxMessageBytes)
    return this.#at
  }

  #servers(servers: readonly (TappedServer | string)[]): void {
    this.#integer(servers.length)
    for (let index = 0; index < servers.length; index++) {
      const server = servers[index] as TappedServer | string
      const isKnown = typeof server !== 'string'
      this.#named(isKnown ? server.name : server, 7)
      this.#named(isKnown ? server.dialect : undefined, 8)
      this.#named(isKnown ? server.revision : undefined, 9)
    }
  }

  #message(exchange: RecordedExchange, index: number, maxMessageBytes: number): void {
    const { pending } = exchange
    const message = pending[index] as PendingMessage
    const { headers, method } = message
    const methodForm = method === undefined ? METHOD.none : method === exchange.method ? METHOD.same : METHOD.other
    const headersForm =
      headers === undefined ? HEADERS.none : headers.length > 1 ? HEADERS.text : HEADERS.digit + Number(headers)
    const microseconds = Math.max(0, Math.round((message.at - exchange.started) * 1000))
    this.#integer(microseconds) // the lowest 32 bits
    this.#integer(
      ((microseconds / 2 ** 32) << SHIFT.time) |
        (message.direction === 'out' ? 1 : 0) |
        (kindNumber(message.kind) << SHIFT.kind) |
        (methodForm << SHIFT.method) |
        (headersForm << SHIFT.headers),
    )
    this.#integer(message.server)
    this.#integer(message.isLarge || message.kept < message.size ? message.size : 0) // else as many as the content has
    if (methodForm === METHOD.other) this.#named(method, 10)
    if (headersForm === HEADERS.text) this.#text(headers)
    this.#body(pending, index, message, maxMessageBytes)
  }

  #body(pending: readonly PendingMessage[], index: number, message: PendingMessage, maxMessageBytes: number): void {
    const codeAt = this.#at
    this.#at += 8 // the code and the length
    const { form, body } = message
    let code = form << BODY_SHIFT.form
    let bodyAt = this.#at
    if (message.error) {
      code |= this.#id(pending, index, message.id) << BODY_SHIFT.id
      bodyAt = this.#at
      this.#error(message.error)
    } else if (!body) {
      for (const piece of message.pieces) this.#copy(piece)
    } else {
      const same = indexOfSame(pending, index, body)
      const whole = same < 0 ? wholeText(message.id, body) : undefined
      if (whole && whole.length <= maxMessageBytes) {
        code = FORM.whole << BODY_SHIFT.form
        this.#copy(whole)
      } else {
        code |= (this.#id(pending, index, message.id) << BODY_SHIFT.id) | ((same + 1) << BODY_SHIFT.same)
        bodyAt = this.#at
        if (same < 0) this.#at = body.copyTo(this.#segment.bytes, this.#at)
      }
    }
    const length = this.#at - bodyAt
    const kept = Math.min(length, maxMessageBytes)
    this.#ints[codeAt >> 2] = code | (kept < length || (message.isLarge && message.kept < message.size) ? 1 : 0)
    this.#ints[(codeAt >> 2) + 1] = kept
    this.#at = alignUp(bodyAt + kept, 4)
  }

  #error({ code, message, data }: ErrorObject): void {
    const { bytes } = this.#segment
    this.#at += bytes.write(JSON.stringify({ code, message: message.slice(0, LONGEST_MESSAGE) }), this.#at)
    if (!data) return
    bytes[this.#at - 1] = 0x2c // a comma in place of the brace
    this.#at += bytes.write('"data":', this.#at)
    this.#at = data.copyTo(bytes, this.#at)
    this.#at += bytes.write('}', this.#at)
  }

  /** Writes an id, and returns its form; nothing is written of a long one. */
  #id(pending: readonly PendingMessage[], index: number, id: Json | number | undefined): number {
    if (id === undefined) return ID.none
    if (typeof id === 'number') {
      if (id !== (id | 0)) return this.#longNumber(id)
      this.#integer(id)
      return ID.number
    }
    const first = pending[0] as PendingMessage
    if (index > 0 && first.kind === 'request' && first.id === id) return ID.same
    if (id.size > LONGEST_ID) return ID.none
    this.#integer(id.size)
    this.#at = alignUp(id.copyTo(this.#segment.bytes, this.#at), 4)
    return ID.text
  }

  /** An id outside the integers of 32 bits: those of continued sessions are. */
  #longNumber(id: number): number {
    const length = this.#segment.bytes.write(String(id), this.#at + 4)
    this.#integer(length)
    this.#at = alignUp(this.#at + length, 4)
    return ID.text
  }

  /** Copies bytes, as far as there is room. */
  #copy(piece: Buffer): void {
    const { bytes } = this.#segment
    const room = bytes.length - this.#at
    bytes.set(piece.length > room ? piece.subarray(0, room) : piece, this.#at)
    this.#at += Math.min(room, piece.length)
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

  #integer(value: number): void {
    this.#ints[this.#at >> 2] = value
    this.#at += 4
  }

  /** A text with its length, which tells an absent one from an empty one. */
  #text(text: string | undefined): void {
    const lengthAt = this.#at >> 2
    this.#at += 4
    const length = text === undefined || text === '' ? 0 : this.#segment.bytes.write(text, this.#at)
    this.#ints[lengthAt] = text === undefined ? 0 : length + 1
    this.#at = alignUp(this.#at + length, 4)
  }
}

/** The place of a kind in `KINDS`. */
const kindNumber = (kind: RecordedKind): number => {
  switch (kind) {
    case 'request':
      return 0
    case 'notification':
      return 1
    case 'result':
      return 2
    case 'error':
      return 3
    case 'question':
      return 4
    case 'answer':
      return 5
  }
}

/** The text of a message that was read: to copy it takes less time than to write it again. */
const wholeText = (id: Json | number | undefined, body: Json): Buffer | undefined => {
  const text = id instanceof Json ? Json.textWith(id, body) : undefined
  return text && text.length - body.size <= MOST_ENVELOPE ? text : undefined
}

/** The earlier message with the very same params or result, which the gateway has passed on unchanged; -1 if there is none. */
const indexOfSame = (pending: readonly PendingMessage[], index: number, body: Json): number => {
  for (let at = 0; at < index; at++) {
    const earlier = pending[at] as PendingMessage
    if (earlier.body === body && earlier.form !== FORM.error) return at
  }
  return -1
}
