/** Where a block is; a plain number, because there is one for each recording: the segment, and the place in it. */
export type BlockAddress = number

const SEGMENT_BYTES = 256 * 1024
const NO_ORDERS: readonly number[] = []

/**
 * The blocks of bytes that recordings are kept in, one after the other in segments of equal size. The oldest segment is used
 * again when the memory is full, so recording leaves nothing to the garbage collector.
 */
export class BlockStore {
  readonly #most: number // segments
  readonly #segments: Buffer[] = [] // the first one has the number #first
  readonly #orders: number[][] = [] // of the recordings that have blocks in each segment
  readonly #onReleased: (orders: readonly number[], isReleased: (address: BlockAddress) => boolean) => void
  #first = 0
  #end = SEGMENT_BYTES // of the last segment

  /** `onReleased` is called with the recordings whose blocks are gone. */
  constructor(
    maxBytes: number,
    onReleased: (orders: readonly number[], isReleased: (address: BlockAddress) => boolean) => void,
  ) {
    this.#most = Math.max(1, Math.floor(maxBytes / SEGMENT_BYTES))
    this.#onReleased = onReleased
  }

  /** Bytes of memory in use. */
  get bytes(): number {
    return this.#segments.length * SEGMENT_BYTES
  }

  /** Keeps what `write` puts at a place of a segment, where there is room for `most` bytes; it returns where that ends. */
  add(order: number, most: number, write: (segment: Buffer, start: number) => number): BlockAddress {
    if (this.#end + most > SEGMENT_BYTES) this.#nextSegment()
    const at = this.#segments.length - 1
    const start = this.#end
    this.#end = write(this.#segments[at] as Buffer, start)
    this.#orders[at]?.push(order)
    return (this.#first + at) * SEGMENT_BYTES + start
  }

  /** The bytes from there to the end of the segment, valid until the next `add`; undefined if they are gone. */
  read(address: BlockAddress): Buffer | undefined {
    const number = Math.floor(address / SEGMENT_BYTES) // of no segment, if the address is negative
    return this.#segments[number - this.#first]?.subarray(address - number * SEGMENT_BYTES)
  }

  clear(): void {
    this.#first += this.#segments.length
    this.#segments.length = 0
    this.#orders.length = 0
    this.#end = SEGMENT_BYTES
  }

  #nextSegment(): void {
    const isFull = this.#segments.length >= this.#most
    const reused = isFull ? this.#segments.shift() : undefined
    const orders = (isFull && this.#orders.shift()) || NO_ORDERS
    if (isFull) this.#first++
    this.#segments.push(reused ?? Buffer.allocUnsafeSlow(SEGMENT_BYTES))
    this.#orders.push([])
    this.#end = 0
    const released = this.#first * SEGMENT_BYTES
    if (orders.length > 0) this.#onReleased(orders, address => address < released)
  }
}
