const LEVELS = 6 // containers further below the root are not indexed

/**
 * What the first scan of a text found, so that later reads skip it: the ends of large objects and arrays near the root,
 * and the members of one object. The limits keep the index small compared with the text.
 */
export class ScanIndex {
  static readonly LARGE_BYTES = 256
  readonly depth: number
  #ends: Map<number, number> | undefined
  #start = -1
  #spans: readonly number[] | undefined

  /** `depth` is the greatest nesting that the text may have. */
  constructor(depth: number = Number.POSITIVE_INFINITY) {
    this.depth = depth
  }

  /** Adds the end of a large container; `level` counts from the root. */
  addEnd(level: number, start: number, end: number): void {
    if (level >= LEVELS) return
    this.#ends ??= new Map()
    this.#ends.set(start, end)
  }

  endOf(start: number): number | undefined {
    return this.#ends?.get(start)
  }

  /** Keeps the spans of one object, replacing those of the previous one. */
  setSpans(start: number, spans: readonly number[]): void {
    this.#start = start
    this.#spans = spans
  }

  spansAt(start: number): readonly number[] | undefined {
    return this.#start === start ? this.#spans : undefined
  }
}
