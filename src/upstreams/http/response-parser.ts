import { HeldText } from './held-text.ts'
import { type KnownLines, type ResponseHead, ResponseSyntaxError, readHead, readHeaderLines } from './response-head.ts'

/** Receives a response while it is parsed. */
export interface ParsedResponse {
  /** Not called for informational responses. */
  head(head: ResponseHead): void
  /** A part of the body; its bytes are a copy. */
  body(chunk: Buffer): void
  end(): void
}

type ParserState = 'head' | 'fixed' | 'until-close' | 'size' | 'data' | 'after-data' | 'trailers' | 'done'

const HEAD_BYTES = 64 * 1024 // of all heads of a response, and of its trailers
const TOO_LARGE = `its headers have more than ${HEAD_BYTES} bytes`
const CHUNK_LINE_BYTES = 1024 // a size with its extensions
const WHOLE_HEAD_BYTES = 2048 // most heads are shorter, and arrive in one piece
const PROTOCOL = 'HTTP/1.'
const EMPTY_LINE = '\r\n\r\n'
const SWITCHING_PROTOCOLS = 101
/** 13 digits are less than 2 ** 53, which a number holds exactly. */
const CHUNK_LINE = /^([0-9A-Fa-f]{1,13})(?:;[\t\x20-\x7e\x80-\xff]*)?\r\n$/

/**
 * Parses the responses of one connection from bytes that may be split anywhere. What has more than one reading is rejected
 * with a ResponseSyntaxError; the connection must be closed then.
 */
export class ResponseParser {
  /** Set by the receiver of a part of the body: parsing stops behind that part. */
  isPaused = false
  readonly #response: ParsedResponse
  readonly #held = new HeldText()
  readonly #knownLines: KnownLines = []
  #lastHead: (ResponseHead & { readonly text: string; readonly method: string }) | undefined
  #state: ParserState = 'done'
  #method = ''
  #left = 0 // bytes of the body or of the chunk
  #headBytes = 0 // of informational responses before this one
  #text = '' // what `#reads…` has read

  constructor(response: ParsedResponse) {
    this.#response = response
  }

  /** Expects the response to a request with that method. */
  expect(method: string): void {
    this.#method = method
    this.#state = 'head'
    this.#headBytes = 0
  }

  /** No response is expected, or it is complete: further bytes belong to none. */
  get isDone(): boolean {
    return this.#state === 'done'
  }

  /** The connection has ended. True if that completes the response. */
  endWithConnection(): boolean {
    if (this.#state !== 'until-close') return false
    this.#finish()
    return true
  }

  /** Parses the bytes from `at` to `end`. Returns where it stopped: at the end, paused, or behind the response. */
  feed(bytes: Buffer, at: number, end: number): number {
    let next = at
    while (!this.isPaused) {
      switch (this.#state) {
        case 'head': {
          const stop = this.#readLines(bytes, next, end)
          if (stop < 0) return end
          next = stop
          this.#takeHead(this.#text)
          break
        }
        case 'fixed':
          if (this.#left === 0) this.#finish()
          else if (next === end) return end
          else next = this.#passOn(bytes, next, end)
          break
        case 'until-close':
          if (next === end) return end
          this.#left = end - next
          next = this.#passOn(bytes, next, end)
          break
        case 'size': {
          const stop = this.#readLine(bytes, next, end)
          if (stop < 0) return end
          next = stop
          this.#takeSize(this.#text)
          break
        }
        case 'data':
          if (next === end) return end
          next = this.#passOn(bytes, next, end)
          break
        case 'after-data': {
          const stop = this.#readLine(bytes, next, end)
          if (stop < 0) return end
          next = stop
          if (this.#text !== '\r\n') throw new ResponseSyntaxError('a chunk is longer than its size')
          this.#state = 'size'
          break
        }
        case 'trailers': {
          const stop = this.#readLines(bytes, next, end)
          if (stop < 0) return end
          next = stop
          readHeaderLines(this.#text, 0) // rejected if they are not valid, otherwise not used
          this.#finish()
          break
        }
        case 'done':
          return next
      }
    }
    return next
  }

  #takeHead(text: string): void {
    this.#headBytes += text.length
    if (this.#headBytes > HEAD_BYTES) throw new ResponseSyntaxError(TOO_LARGE)
    const head = this.#readHead(text)
    if (head.status === SWITCHING_PROTOCOLS) throw new ResponseSyntaxError('it changes the protocol unasked')
    if (head.status < 200) return
    const { framing } = head
    this.#state = typeof framing === 'number' ? 'fixed' : framing === 'chunked' ? 'size' : framing
    this.#left = typeof framing === 'number' ? framing : 0
    this.#response.head(head)
  }

  /** Most responses of one second that have the same length have the same head. */
  #readHead(text: string): ResponseHead {
    const last = this.#lastHead
    if (last && text === last.text && this.#method === last.method) return last
    const head = { ...readHead(text, this.#method, this.#knownLines), text, method: this.#method }
    if (text.length <= WHOLE_HEAD_BYTES) this.#lastHead = head
    return head
  }

  #takeSize(line: string): void {
    const size = CHUNK_LINE.exec(line)?.[1]
    if (size === undefined) throw new ResponseSyntaxError('the size of a chunk is not valid')
    this.#left = Number.parseInt(size, 16)
    this.#headBytes = 0
    this.#state = this.#left > 0 ? 'data' : 'trailers'
  }

  #passOn(bytes: Buffer, from: number, end: number): number {
    const length = Math.min(this.#left, end - from)
    const chunk = Buffer.allocUnsafe(length)
    bytes.copy(chunk, 0, from, from + length)
    this.#left -= length
    if (this.#left === 0 && this.#state === 'data') this.#state = 'after-data'
    this.#response.body(chunk)
    return from + length
  }

  #finish(): void {
    this.#state = 'done'
    this.#response.end()
  }

  /** Reads lines up to the empty one. Returns where they end; -1 if they have not arrived. */
  #readLines(bytes: Buffer, from: number, end: number): number {
    if (this.#held.length === 0) {
      const text = bytes.toString('latin1', from, Math.min(end, from + WHOLE_HEAD_BYTES))
      const length = this.#state === 'trailers' && text.startsWith('\r\n') ? 2 : text.indexOf(EMPTY_LINE) + 4
      if (length !== 3) {
        this.#text = text.slice(0, length)
        return from + length
      }
    }
    for (let at = from; at < end; at++) {
      const byte = bytes[at] as number
      if (this.#headBytes + this.#held.length === HEAD_BYTES) throw new ResponseSyntaxError(TOO_LARGE)
      if (
        this.#state === 'head' &&
        this.#held.length < PROTOCOL.length &&
        byte !== PROTOCOL.charCodeAt(this.#held.length)
      )
        throw new ResponseSyntaxError('it does not begin with HTTP/1.1')
      this.#held.push(byte)
      if (!this.#held.endsWithEmptyLine()) continue
      this.#text = this.#held.take()
      return at + 1
    }
    return -1
  }

  /** Reads one line. Returns where it ends; -1 if it has not arrived. */
  #readLine(bytes: Buffer, from: number, end: number): number {
    for (let at = from; at < end; at++) {
      if (this.#held.length === CHUNK_LINE_BYTES) throw new ResponseSyntaxError('the size of a chunk is not valid')
      this.#held.push(bytes[at] as number)
      if (!this.#held.endsLine()) continue
      this.#text = this.#held.take()
      return at + 1
    }
    return -1
  }
}
