const LEVELS = 6

/**
 * What the first walk through a text found out, so that nobody walks there again: where large objects and arrays
 * near the root end, and the members of one object. The bounds keep the notes small beside any text.
 */
export class ScanIndex {
  static readonly LARGE = 256 // bytes
  readonly depth: number
  #ends: Map<number, number> | undefined
  #start = -1
  #spans: readonly number[] | undefined

  /** `depth` is how many levels the text may have. */
  constructor(depth: number = Number.POSITIVE_INFINITY) {
    this.depth = depth
  }

  /** Notes the end of a large container that many levels below the root. */
  note(level: number, start: number, end: number): void {
    if (level >= LEVELS) return
    this.#ends ??= new Map()
    this.#ends.set(start, end)
  }

  endOf(start: number): number | undefined {
    return this.#ends?.get(start)
  }

  /** Keeps the spans of the object that starts there, until the next one. */
  remember(start: number, spans: readonly number[]): void {
    this.#start = start
    this.#spans = spans
  }

  spansAt(start: number): readonly number[] | undefined {
    return this.#start === start ? this.#spans : undefined
  }
}
