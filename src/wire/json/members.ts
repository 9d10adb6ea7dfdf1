import { foldsTo, mayFoldTo } from './member-names.ts'
import { isText, readText } from './text.ts'

const FEW = 16 // up to so many names are compared one by one, nearly always by address; more are looked up in a map

const FLAGS = 31 // bits of a small integer

/** A member, and another one that lenient readers take for it; the same name if it is a duplicate. */
export interface AmbiguousMember {
  readonly member: string
  readonly lookalike: string
}

/** The offsets of the members of an object, or of the elements of an array, in the text. */
export class Members {
  readonly count: number
  readonly #bytes: Buffer
  readonly #spans: readonly number[]
  #names: string[] | undefined // of up to FEW members, once one of them was looked for
  #index: Map<string, number> | undefined
  #dropped: Set<number> | undefined

  constructor(bytes: Buffer, spans: readonly number[]) {
    this.#bytes = bytes
    this.#spans = spans
    this.count = spans.length / 4
  }

  /** Where the member begins: the quote of its name, or the value of an element. */
  start(i: number): number {
    const nameStart = this.#spans[i * 4] as number
    return nameStart === this.valueStart(i) ? nameStart : nameStart - 1
  }

  valueStart(i: number): number {
    return this.#spans[i * 4 + 2] as number
  }

  end(i: number): number {
    return this.#spans[i * 4 + 3] as number
  }

  name(i: number): string {
    const known = this.#names?.[i]
    if (known !== undefined) return known
    return readText(this.#bytes, this.#spans[i * 4] as number, this.#spans[i * 4 + 1] as number)
  }

  /**
   * The last member of that name, or -1. Earlier duplicates are dropped: a server that reads the first one must not see
   * another value than the gateway.
   */
  find(name: string): number {
    if (this.count > FEW) return this.#lookUp().get(name) ?? -1
    const names = this.#names ?? this.#readNames()
    let found = -1
    for (let i = 0; i < names.length; i++) {
      if (names[i] !== name) continue
      if (found >= 0) this.#drop(found)
      found = i
    }
    return found
  }

  #readNames(): string[] {
    const names: string[] = []
    for (let i = 0; i < this.count; i++) names.push(this.name(i))
    this.#names = names
    return names
  }

  /** The first member that a lenient reader takes for one of these names although it is not the one `find` returns. */
  findAmbiguous(names: readonly string[]): AmbiguousMember | undefined {
    for (let from = 0; from < names.length; from += FLAGS) {
      const found = this.#findAmong(names, from, Math.min(names.length, from + FLAGS))
      if (found) return found
    }
    return undefined
  }

  #findAmong(names: readonly string[], from: number, until: number): AmbiguousMember | undefined {
    let found = 0 // a flag for each name that was seen
    for (let i = 0; i < this.count; i++) {
      const start = this.#spans[i * 4] as number
      const end = this.#spans[i * 4 + 1] as number
      const first = this.#bytes[start] as number
      for (let at = from; at < until; at++) {
        const name = names[at] as string
        if (!mayFoldTo(first, name)) continue
        const isExact = isText(this.#bytes, start, end, name)
        if (!isExact && !foldsTo(this.#bytes, start, end, name)) continue
        if (!isExact || (found & (1 << (at - from))) !== 0) return { member: name, lookalike: this.name(i) }
        found |= 1 << (at - from)
      }
    }
    return undefined
  }

  /** Drops every member whose name is repeated later. */
  dropRepeated(): void {
    this.#lookUp()
  }

  isDropped(i: number): boolean {
    return this.#dropped?.has(i) ?? false
  }

  get anyDropped(): boolean {
    return this.#dropped !== undefined
  }

  #lookUp(): Map<string, number> {
    if (this.#index) return this.#index
    const index = new Map<string, number>()
    for (let i = 0; i < this.count; i++) {
      const name = this.name(i)
      const earlier = index.get(name)
      if (earlier !== undefined) this.#drop(earlier)
      index.set(name, i)
    }
    this.#index = index
    return index
  }

  #drop(i: number): void {
    this.#dropped ??= new Set()
    this.#dropped.add(i)
  }
}
