import { ChunkBuffer } from './chunk-buffer.ts'
import { CR, LF, withoutLineBreaks } from './ndjson.ts'

/** One dispatched event, as the HTML standard defines it, with its data as bytes. */
export interface SseEvent {
  readonly event: string // 'message' by default
  readonly data: Buffer
  readonly id: string | undefined // the last event id in force
}

/** An event is larger than the limit of the decoder. */
export class EventTooLarge extends Error {
  override readonly name = 'EventTooLarge'
  constructor(limit: number) {
    super(`A server-sent event is larger than ${limit} bytes`)
  }
}

const EMPTY = Buffer.alloc(0)
const NEWLINE = Buffer.from('\n')
const BOM = Buffer.from([0xef, 0xbb, 0xbf])
const COLON = 0x3a
const SPACE = 0x20

/** Decodes an event stream from chunks of any size. Data within one line and one chunk is not copied. */
export class SseDecoder {
  readonly #onEvent: (event: SseEvent) => void
  readonly #maxBytes: number
  readonly #unfinished = new ChunkBuffer() // a line without its end
  readonly #lines = new ChunkBuffer() // data of the block, once it has more than one line
  #data: Buffer | undefined // data of the block while it is one line
  #hasData = false
  #event = ''
  #id = '' // becomes the last event id when the block ends
  #lastId = ''
  #retry: number | undefined
  #head: Buffer | undefined = EMPTY // the first bytes, while they may be a byte order mark
  #afterCr = false // the last chunk ended in CR: a LF now belongs to it

  constructor(onEvent: (event: SseEvent) => void, options: { maxBytes?: number } = {}) {
    this.#onEvent = onEvent
    this.#maxBytes = options.maxBytes ?? Number.POSITIVE_INFINITY
  }

  /** The last event id, also of blocks without data. */
  get lastEventId(): string | undefined {
    return this.#lastId === '' ? undefined : this.#lastId
  }

  /** The reconnection time in ms, also of blocks without data. */
  get retry(): number | undefined {
    return this.#retry
  }

  /** Throws EventTooLarge; the decoder cannot be used afterwards. */
  feed(chunk: Buffer): void {
    const bytes = this.#head ? this.#skipBom(this.#head, chunk) : chunk
    if (bytes.length === 0) return
    let at = this.#afterCr && bytes[0] === LF ? 1 : 0
    this.#afterCr = false
    let lf = bytes.indexOf(LF, at)
    let cr = bytes.indexOf(CR, at)
    while (lf >= 0 || cr >= 0) {
      const end = cr < 0 || (lf >= 0 && lf < cr) ? lf : cr
      this.#finish(bytes.subarray(at, end))
      at = end + 1
      if (end === cr && bytes[at] === LF) at++
      this.#afterCr = end === cr && at === end + 1 && at === bytes.length
      // Each kind is searched again only when passed, so that a chunk without CR is searched for CR once.
      if (lf >= 0 && lf < at) lf = bytes.indexOf(LF, at)
      if (cr >= 0 && cr < at) cr = bytes.indexOf(CR, at)
    }
    this.#check(bytes.length - at)
    this.#unfinished.push(bytes.subarray(at))
  }

  /** The stream has ended: an event without its blank line is not dispatched. */
  end(): void {
    this.#unfinished.clear()
    this.#resetBlock()
    this.#id = this.#lastId
  }

  #skipBom(before: Buffer, chunk: Buffer): Buffer {
    const head = before.length === 0 ? chunk : Buffer.concat([before, chunk])
    const undecided = head.length < BOM.length && BOM.subarray(0, head.length).equals(head)
    this.#head = undecided ? head : undefined
    if (undecided) return EMPTY
    return head.subarray(0, BOM.length).equals(BOM) ? head.subarray(BOM.length) : head
  }

  #finish(rest: Buffer): void {
    this.#check(rest.length)
    if (this.#unfinished.length > 0) this.#unfinished.push(rest)
    this.#line(this.#unfinished.length > 0 ? this.#unfinished.take() : rest)
  }

  #check(more: number): void {
    const size = this.#unfinished.length + this.#lines.length + (this.#data?.length ?? 0) + more
    if (size <= this.#maxBytes) return
    this.end()
    throw new EventTooLarge(this.#maxBytes)
  }

  #line(line: Buffer): void {
    if (line.length === 0) this.#dispatch()
    const colon = line.indexOf(COLON)
    const nameEnd = colon < 0 ? line.length : colon
    if (nameEnd === 0 || nameEnd > 5) return
    const valueStart = colon < 0 ? line.length : line[colon + 1] === SPACE ? colon + 2 : colon + 1
    this.#field(line.toString('latin1', 0, nameEnd), line.subarray(valueStart))
  }

  #field(name: string, value: Buffer): void {
    if (name === 'data') this.#addData(value)
    else if (name === 'event') this.#event = value.toString()
    else if (name === 'id' && !value.includes(0)) this.#id = value.toString()
    else if (name === 'retry' && isDigits(value)) this.#retry = Number(value.toString('latin1'))
  }

  #addData(value: Buffer): void {
    if (!this.#hasData) {
      this.#hasData = true
      this.#data = value
      return
    }
    if (this.#data) this.#lines.push(this.#data)
    this.#data = undefined
    this.#lines.push(NEWLINE)
    this.#lines.push(value)
  }

  #dispatch(): void {
    this.#lastId = this.#id
    const event = this.#hasData ? this.#takeEvent() : undefined
    this.#resetBlock()
    if (event) this.#onEvent(event)
  }

  #takeEvent(): SseEvent {
    return { event: this.#event || 'message', data: this.#data ?? this.#lines.take(), id: this.lastEventId }
  }

  #resetBlock(): void {
    this.#hasData = false
    this.#data = undefined
    this.#lines.clear()
    this.#event = ''
  }
}

const isDigits = (value: Buffer): boolean => value.length > 0 && value.every(byte => byte >= 0x30 && byte <= 0x39)

/** One event as bytes, its data (JSON, or text without line breaks) in a single line and not copied if it is one already. */
export const encodeEvent = (fields: {
  readonly event?: string
  readonly id?: string
  readonly data: readonly Buffer[]
}): Buffer[] => {
  const { event, id, data } = fields
  let head = event === undefined ? '' : `event: ${withoutBreaks(event)}\n`
  if (id !== undefined) head += `id: ${withoutBreaks(id)}\n`
  return [Buffer.from(`${head}data: `), ...data.map(withoutLineBreaks), END_OF_EVENT]
}

/** Tells a client how long to wait before it connects again. */
export const encodeRetry = (ms: number): Buffer => Buffer.from(`retry: ${Math.round(ms)}\n\n`)

const END_OF_EVENT = Buffer.from('\n\n')

const withoutBreaks = (text: string): string => text.replace(/[\0\r\n]/g, '')

/** A comment, which keeps connections alive. */
export const COMMENT_BYTES: Buffer = Buffer.from(':\n\n')
