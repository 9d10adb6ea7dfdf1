import { alignUp } from './block-format.ts'

/** Where a block is; a plain number, because there is one for each recording: the segment, and the place in it. */
export type BlockAddress = number

/** A part of the memory; the typed arrays are other views of its bytes. */
export interface Segment {
  readonly bytes: Buffer
  readonly ints: Int32Array
  readonly floats: Float64Array
}

const createSegment = (size: number): Segment => {
  const bytes = Buffer.allocUnsafeSlow(size)
  return { bytes, ints: new Int32Array(bytes.buffer), floats: new Float64Array(bytes.buffer) }
}

/** A segment without room. */
export const NO_SEGMENT = createSegment(0)

const SEGMENT_BYTES = 256 * 1024
const HEAD_BYTES = 8 // before each block: how long it is, and the order of its recording

/**
 * The blocks of bytes that recordings are kept in, one after the other in segments of equal size. The oldest segment is used
 * again when the memory is full, so recording leaves nothing to the garbage collector.
 */
export class BlockStore {
  readonly #most: number // segments
  readonly #segments: Segment[] = [] // the first one has the number #first
  readonly #ends: number[] = [] // of the blocks in each segment
  readonly #onReleased: (order: number, address: BlockAddress) => void
  #first = 0
  #last = NO_SEGMENT
  #end = SEGMENT_BYTES // of the last segment

  /** `onReleased` is called with each block whose bytes are used again. */
  constructor(maxBytes: number, onReleased: (order: number, address: BlockAddress) => void) {
    this.#most = Math.max(1, Math.floor(maxBytes / SEGMENT_BYTES))
    this.#onReleased = onReleased
  }

  /** Bytes of memory in use. */
  get bytes(): number {
    return this.#segments.length * SEGMENT_BYTES
  }

  /** The segment that the next block is written to. */
  get segment(): Segment {
    return this.#last
  }

  /** Makes room for a block of at most that many bytes, and returns where in `segment` it starts: at a multiple of 8. */
  reserve(most: number): number {
    if (this.#end + HEAD_BYTES + most > SEGMENT_BYTES) this.#nextSegment()
    return this.#end + HEAD_BYTES
  }

  /** Keeps the block that was written from the reserved place to `end`. */
  commit(order: number, end: number): BlockAddress {
    const at = this.#end
    const next = alignUp(end, 8)
    this.#last.ints[at >> 2] = next - at
    this.#last.ints[(at >> 2) + 1] = order
    this.#end = next
    return (this.#first + this.#segments.length - 1) * SEGMENT_BYTES + at + HEAD_BYTES
  }

  /** The bytes from there to the end of the segment, valid until the next block is written; undefined if they are gone. */
  read(address: BlockAddress): Buffer | undefined {
    const number = Math.floor(address / SEGMENT_BYTES) // of no segment, if the address is negative
    return this.#segments[number - this.#first]?.bytes.subarray(address - number * SEGMENT_BYTES)
  }

  clear(): void {
    this.#first += this.#segments.length
    this.#segments.length = 0
    this.#ends.length = 0
    this.#end = SEGMENT_BYTES
  }

  #nextSegment(): void {
    if (this.#segments.length > 0) this.#ends.push(this.#end)
    const isFull = this.#segments.length >= this.#most
    const oldest = isFull ? this.#segments.shift() : undefined
    if (oldest) this.#release(oldest, this.#ends.shift() ?? 0)
    this.#last = oldest ?? createSegment(SEGMENT_BYTES)
    this.#segments.push(this.#last)
    this.#end = 0
  }

  #release({ bytes }: Segment, end: number): void {
    const start = this.#first * SEGMENT_BYTES + HEAD_BYTES
    this.#first++
    for (let at = 0; at < end; at += bytes.readUInt32LE(at)) this.#onReleased(bytes.readUInt32LE(at + 4), start + at)
  }
}
