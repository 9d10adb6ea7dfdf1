import type { Landmarks } from './json-landmarks.ts'
import { scanMembers } from './json-scan.ts'

const BACKSLASH = 0x5c
const FEW = 16 // names are compared one by one up to here, looked up in a map beyond

/** Where the members of an object, or the elements of an array, lie in the text. */
export class Members {
  readonly count: number
  readonly #bytes: Buffer
  readonly #spans: readonly number[]
  #index: Map<string, number> | undefined
  #dropped: Set<number> | undefined

  constructor(bytes: Buffer, spans: readonly number[]) {
    this.#bytes = bytes
    this.#spans = spans
    this.count = spans.length / 4
  }

  static scan(bytes: Buffer, start: number, marks: Landmarks): Members {
    const spans: number[] = []
    scanMembers(bytes, start, marks, spans)
    return new Members(bytes, spans)
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
    const text = this.#bytes.toString('utf8', this.#spans[i * 4], this.#spans[i * 4 + 1])
    return text.includes('\\') ? (JSON.parse(`"${text}"`) as string) : text
  }

  /**
   * The last member of that name, or -1. Earlier ones of the same name are dropped: a peer that takes the first
   * one must not be sent something else than what was read here.
   */
  find(name: string): number {
    if (this.count > FEW) return this.#lookUp().get(name) ?? -1
    let found = -1
    for (let i = 0; i < this.count; i++) {
      if (!this.#isNamed(i, name)) continue
      if (found >= 0) this.#drop(found)
      found = i
    }
    return found
  }

  /** Drops every member whose name comes again. */
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

  /** Compares in place; only a name that is written with escapes or beyond ASCII has to be decoded. */
  #isNamed(i: number, name: string): boolean {
    const bytes = this.#bytes
    const start = this.#spans[i * 4] as number
    const length = (this.#spans[i * 4 + 1] as number) - start
    if (length < name.length) return false
    for (let k = 0; k < name.length; k++) {
      const unit = name.charCodeAt(k)
      const byte = bytes[start + k]
      if (unit >= 0x80 || byte === BACKSLASH) return this.name(i) === name
      if (byte !== unit) return false
    }
    return length === name.length
  }
}
