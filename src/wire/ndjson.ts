import { ChunkBuffer } from './chunk-buffer.ts'

export const LF = 0x0a
export const CR = 0x0d
const SPACE = 0x20

/**
 * JSON text without line breaks. JSON has line breaks only between tokens, so spaces in their place make the same
 * document. Text without line breaks is returned without a copy.
 */
export const withoutLineBreaks = (text: Buffer): Buffer => {
  const lf = text.indexOf(LF)
  const cr = text.indexOf(CR)
  if (lf < 0 && cr < 0) return text
  const copy = Buffer.from(text)
  for (let at = lf; at >= 0; at = copy.indexOf(LF, at)) copy[at] = SPACE
  for (let at = cr; at >= 0; at = copy.indexOf(CR, at)) copy[at] = SPACE
  return copy
}

/** A line is longer than the limit; the rest of the stream may not be messages. */
export class LineTooLong extends Error {
  override readonly name = 'LineTooLong'
  constructor(limit: number) {
    super(`A line is longer than ${limit} bytes`)
  }
}

/** Cuts a byte stream into lines. Blank lines are skipped, CRLF counts as LF. A line within one chunk is not copied. */
export class LineDecoder {
  readonly #onLine: (line: Buffer) => void
  readonly #maxBytes: number
  readonly #unfinished = new ChunkBuffer()

  constructor(onLine: (line: Buffer) => void, options: { maxBytes?: number } = {}) {
    this.#onLine = onLine
    this.#maxBytes = options.maxBytes ?? Number.POSITIVE_INFINITY
  }

  feed(chunk: Buffer): void {
    let start = 0
    for (let end = chunk.indexOf(LF); end >= 0; end = chunk.indexOf(LF, start)) {
      this.#finish(chunk.subarray(start, end))
      start = end + 1
    }
    this.#keep(chunk.subarray(start))
  }

  /** The stream has ended: the text after the last line break is a line too. */
  end(): void {
    this.#finish(EMPTY)
  }

  #keep(rest: Buffer): void {
    this.#check(this.#unfinished.length + rest.length)
    this.#unfinished.push(rest)
  }

  #finish(rest: Buffer): void {
    this.#check(this.#unfinished.length + rest.length)
    let line = rest
    if (this.#unfinished.length > 0) {
      this.#unfinished.push(rest)
      line = this.#unfinished.take()
    }
    if (line.at(-1) === CR) line = line.subarray(0, -1)
    if (!isBlank(line)) this.#onLine(line)
  }

  #check(length: number): void {
    if (length <= this.#maxBytes) return
    this.#unfinished.clear()
    throw new LineTooLong(this.#maxBytes)
  }
}

const EMPTY = Buffer.alloc(0)
const END_OF_LINE = Buffer.from('\n')

const isBlank = (line: Buffer): boolean => {
  for (const byte of line) if (byte !== 0x20 && byte !== 0x09 && byte !== CR) return false
  return true
}

/** One message as one line. */
export const encodeLine = (pieces: readonly Buffer[]): Buffer[] => [...pieces.map(withoutLineBreaks), END_OF_LINE]
