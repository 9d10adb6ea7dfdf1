const FIRST_BYTES = 16 * 1024
const MOST_BYTES_EACH = 3 // of a UTF-16 unit in UTF-8
const COMMA = 0x2c

/**
 * Encoded spans that are sent together, as bytes outside the heap: as texts they would live long enough to cause full
 * garbage collections, which cost ten times as much as all else that is done for a span.
 */
export class SpanBatch {
  #bytes: Buffer = Buffer.allocUnsafeSlow(FIRST_BYTES)
  #used = 0
  #count = 0

  get count(): number {
    return this.#count
  }

  /** The elements of a JSON array, without its brackets. Valid until the next span is added. */
  get spans(): Buffer {
    return this.#bytes.subarray(0, this.#used)
  }

  add(span: string): void {
    const needed = this.#used + 1 + span.length * MOST_BYTES_EACH
    if (needed > this.#bytes.length) this.#grow(needed)
    if (this.#count > 0) this.#bytes[this.#used++] = COMMA
    this.#used += this.#bytes.write(span, this.#used)
    this.#count++
  }

  #grow(needed: number): void {
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.#bytes.length))
    this.spans.copy(larger)
    this.#bytes = larger
  }
}
