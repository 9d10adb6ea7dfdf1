const EMPTY = Buffer.alloc(0)
const SMALL = 1024
const BLOCK = 4000 // small enough for Node's buffer pool

/**
 * Collects chunks into one buffer with a single copy, or none for a single chunk. Further small chunks are packed into
 * blocks: a peer that sends single bytes must not cost an object, and the socket buffer behind it, per byte.
 */
export class ChunkBuffer {
  length = 0
  #pieces: Buffer[] = []
  #block: Buffer | undefined // what follows `to` is free; the last piece is `from` to `to`, unless that is empty
  #from = 0
  #to = 0

  push(chunk: Buffer): void {
    if (chunk.length === 0) return
    const isSmall = chunk.length < SMALL && this.length > 0
    this.length += chunk.length
    if (isSmall) this.#pack(chunk)
    else {
      this.#pieces.push(chunk)
      this.#from = this.#to
    }
  }

  /** Returns all chunks as one buffer and clears this one. */
  take(): Buffer {
    const [first = EMPTY] = this.#pieces
    const whole = this.#pieces.length > 1 ? Buffer.concat(this.#pieces, this.length) : first
    this.clear()
    return whole
  }

  clear(): void {
    if (this.length === 0) return
    this.length = 0
    this.#pieces = []
    this.#block = undefined
  }

  #pack(chunk: Buffer): void {
    if (!this.#block || this.#to + chunk.length > BLOCK) {
      this.#block = Buffer.allocUnsafe(BLOCK)
      this.#from = this.#to = 0
    }
    const continues = this.#to > this.#from
    this.#to += chunk.copy(this.#block, this.#to)
    const piece = this.#block.subarray(this.#from, this.#to)
    if (continues) this.#pieces[this.#pieces.length - 1] = piece
    else this.#pieces.push(piece)
  }
}
