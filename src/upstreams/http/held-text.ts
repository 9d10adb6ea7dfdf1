import { ResponseSyntaxError } from './response-head.ts'

const FIRST_BYTES = 512
const CR = 0x0d
const LF = 0x0a

/** The beginning of a line or of several lines whose end has not arrived. Lines end with CR LF, and with nothing else. */
export class HeldText {
  length = 0
  #bytes: Buffer | undefined

  push(byte: number): void {
    if ((byte === LF) !== (this.#at(this.length - 1) === CR))
      throw new ResponseSyntaxError('a line does not end with CR LF')
    this.#bytes ??= Buffer.allocUnsafe(FIRST_BYTES)
    if (this.length === this.#bytes.length) this.#bytes = Buffer.concat([this.#bytes], 2 * this.length)
    this.#bytes[this.length++] = byte
  }

  /** Whether it is a whole line. */
  endsLine(): boolean {
    return this.#at(this.length - 1) === LF
  }

  /** Whether it ends with an empty line. */
  endsWithEmptyLine(): boolean {
    return this.endsLine() && (this.length === 2 || this.#at(this.length - 3) === LF)
  }

  /** Returns the text, each byte as one character, and empties it. */
  take(): string {
    const text = this.#bytes?.toString('latin1', 0, this.length) ?? ''
    this.length = 0
    if (text.length > FIRST_BYTES) this.#bytes = undefined
    return text
  }

  #at(index: number): number | undefined {
    return index < 0 ? undefined : this.#bytes?.[index]
  }
}
