import type { BlockAddress } from './block-store.ts'

/** The address of a block that does not exist. */
export const GONE: BlockAddress = -1

const SMALLEST = 1024

/**
 * The latest block of each exchange, by the order of the exchange. A ring of numbers outside the heap: an array that grows with
 * each call is copied again and again by the garbage collector.
 */
export class BlockIndex {
  #ring = new Float64Array(0)
  #first = 1 // the ring has the orders from here
  #end = 1 // to before this one
  readonly #late = new Map<number, BlockAddress>() // of exchanges before the first, which took long
  #written = 0

  get bytes(): number {
    return this.#ring.byteLength
  }

  /** The number of exchanges with a block. */
  get written(): number {
    return this.#written
  }

  get(order: number): BlockAddress {
    if (order >= this.#first) return order < this.#end ? (this.#ring[order % this.#ring.length] as number) : GONE
    return this.#late.get(order) ?? GONE
  }

  /** An exchange begins; its order is the next one. */
  begin(order: number): void {
    if (order - this.#first >= this.#ring.length) this.#grow()
    this.#ring[order % this.#ring.length] = GONE
    this.#end = order + 1
  }

  set(order: number, address: BlockAddress): void {
    if (this.get(order) === GONE) this.#written++
    if (order >= this.#first) this.#ring[order % this.#ring.length] = address
    else this.#late.set(order, address)
  }

  /** The block at that address is gone; false if the exchange has a later one. */
  remove(order: number, address: BlockAddress): boolean {
    if (this.get(order) !== address) return false
    this.#written--
    if (this.#late.delete(order)) return true
    this.#ring[order % this.#ring.length] = GONE
    // Exchanges that run are found by their order, so the ring need not reach back to them.
    while (this.#first < this.#end && this.#ring[this.#first % this.#ring.length] === GONE) this.#first++
    return true
  }

  /** The orders that may have a block, newest first, from before that one on. */
  *ordersBefore(order: number): Generator<number> {
    for (let at = Math.min(order, this.#end) - 1; at >= this.#first; at--) yield at
    yield* [...this.#late.keys()].filter(each => each < order).sort((a, b) => b - a)
  }

  /** Forgets everything up to that order. */
  clear(lastOrder: number): void {
    this.#ring = new Float64Array(0)
    this.#first = lastOrder + 1
    this.#end = this.#first
    this.#late.clear()
    this.#written = 0
  }

  #grow(): void {
    const larger = new Float64Array(Math.max(SMALLEST, this.#ring.length * 2))
    for (let order = this.#first; order < this.#end; order++)
      larger[order % larger.length] = this.#ring[order % this.#ring.length] as number
    this.#ring = larger
  }
}
