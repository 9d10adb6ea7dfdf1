const LEVELS = 6

/**
 * Where large objects and arrays near the root end, noted on the first walk, so that nobody walks through them
 * again to find what comes after. The two bounds keep the notes small beside any text.
 */
export class Landmarks {
  static readonly LARGE = 256 // bytes
  readonly depth: number
  #ends: Map<number, number> | undefined

  /** `depth` is how deep the text may be nested. */
  constructor(depth: number) {
    this.depth = depth
  }

  note(depth: number, start: number, end: number): void {
    if (depth <= this.depth - LEVELS) return
    this.#ends ??= new Map()
    this.#ends.set(start, end)
  }

  endOf(start: number): number | undefined {
    return this.#ends?.get(start)
  }
}
