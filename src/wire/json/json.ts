import { isUtf8 } from 'node:buffer'
import { buildJson, type Plain, type PlainObject } from './build.ts'
import { type JsonKind, kindOf } from './kind.ts'
import { type AmbiguousMember, Members } from './members.ts'
import { JsonSyntaxError, scanText, spansAt, trimEnd } from './scan.ts'
import { ScanIndex } from './scan-index.ts'
import { isText, readDigits, readText } from './text.ts'
import { appendChanged } from './write.ts'

export type { AmbiguousMember as Rival, JsonKind, Plain, PlainObject }

const DEPTH = 512
const UNMARKED = new ScanIndex()
const OPEN_BRACE = 0x7b
const OPEN_BRACKET = 0x5b
const QUOTE = 0x22

/** Members the text does not have, in the order of their setting. */
type Added = readonly (readonly [string, Json])[]
const NONE: Added = []

/** By member: what has been read so far or put there instead; null where it was removed. */
type Children = (Json | null | undefined)[]

/**
 * A JSON value as the bytes it came in. Members are found when asked for and changed by splicing;
 * what nobody touched is written back as it was read. Values are immutable.
 */
export class Json {
  private readonly bytes: Buffer
  private readonly start: number
  private readonly end: number
  private readonly marks: ScanIndex
  private members: Members | undefined
  private children: Children | undefined
  private readonly added: Added | undefined // undefined: not edited

  private constructor(
    bytes: Buffer,
    start: number,
    end: number,
    marks: ScanIndex,
    members?: Members,
    children?: Children,
    added?: Added,
  ) {
    this.bytes = bytes
    this.start = start
    this.end = end
    this.marks = marks
    this.members = members
    this.children = children
    this.added = added
  }

  /** Checks the whole text once and throws JsonSyntaxError. The bytes must not change afterwards. */
  static parse(bytes: Buffer, depth = DEPTH): Json {
    if (!isUtf8(bytes)) throw new JsonSyntaxError('Not UTF-8', 0)
    if (bytes[0] === 0xef && bytes[1] === 0xbb) throw new JsonSyntaxError('Byte order mark', 0)
    const marks = new ScanIndex(depth)
    const spans: number[] = []
    const text = trimEnd(bytes)
    const start = scanText(text, marks, spans)
    return new Json(text, start, text.length, marks, new Members(text, spans))
  }

  /** Bytes that `toBytes` gave, which need no check; they must not change afterwards. */
  static written(bytes: Buffer): Json {
    return new Json(bytes, 0, bytes.length, new ScanIndex())
  }

  /** Plain data as a value; Json inside it is copied, `with` is the way to wrap something large. */
  static of(value: Plain): Json {
    if (value instanceof Json) return value
    const bytes = buildJson(value)
    return new Json(bytes, 0, bytes.length, typeof value === 'object' ? new ScanIndex() : UNMARKED)
  }

  /** The object without members. */
  static readonly empty: Json = Json.of({})

  get kind(): JsonKind {
    return kindOf(this.bytes[this.start] as number)
  }

  get isObject(): boolean {
    return this.bytes[this.start] === OPEN_BRACE
  }

  /** Bytes of the text it was read from. */
  get size(): number {
    return this.end - this.start
  }

  /** Bytes of memory it keeps alive: all of the message it was read from. */
  get retained(): number {
    return this.bytes.buffer.byteLength
  }

  /** The member of that name (the last one, if written twice), or undefined. */
  get(key: string): Json | undefined {
    if (!this.isObject) return undefined
    const i = this.layout.find(key)
    const child = i < 0 ? null : this.child(i)
    return child ?? this.added?.find(([name]) => name === key)?.[1]
  }

  /** The value at the end of a path of members, or undefined. */
  at(...path: readonly string[]): Json | undefined {
    let value: Json | undefined = this
    for (const key of path) value = value?.get(key)
    return value
  }

  has(key: string): boolean {
    return this.get(key) !== undefined
  }

  /** How many members the text has, a name that is written twice counted twice. */
  get memberCount(): number {
    return this.isObject ? this.layout.count : 0
  }

  /**
   * A member, as the text was read, that a lenient reader could take for one of `keys` besides what `get` returns: another
   * case or Unicode spelling, a name that goes on after NUL, or the same name written twice.
   */
  findAmbiguous(keys: readonly string[]): AmbiguousMember | undefined {
    return this.isObject ? this.layout.findAmbiguous(keys) : undefined
  }

  /** Replaces a member in its place or adds one at the end. Setting what is already there returns the same value. */
  with(key: string, value: Plain): Json {
    const json = Json.of(value)
    const before = this.get(key)
    return before && Json.areSame(before, json) ? this : this.edited(key, json)
  }

  /** Removes members; the same value if none was there. */
  without(...keys: readonly string[]): Json {
    let result: Json = this
    for (const key of keys) if (result.has(key)) result = result.edited(key, undefined)
    return result
  }

  /** Members in order of writing, each name once. Empty unless an object. */
  entries(): [string, Json][] {
    if (!this.isObject) return []
    this.layout.dropRepeated()
    const entries: [string, Json][] = []
    for (let i = 0; i < this.layout.count; i++) {
      const child = this.layout.isDropped(i) ? null : this.child(i)
      if (child) entries.push([this.layout.name(i), child])
    }
    for (const [key, value] of this.added ?? NONE) entries.push([key, value])
    return entries
  }

  /** Elements of an array; empty unless an array. */
  elements(): Json[] {
    if (this.bytes[this.start] !== OPEN_BRACKET) return []
    const elements: Json[] = []
    for (let i = 0; i < this.layout.count; i++) {
      const child = this.child(i)
      if (child) elements.push(child)
    }
    return elements
  }

  /** The array with every element converted (undefined drops it); the same value if none changed. */
  map(convert: (element: Json) => Json | undefined): Json {
    if (this.bytes[this.start] !== OPEN_BRACKET) return this
    const children: Children = []
    let isChanged = false
    for (let i = 0; i < this.layout.count; i++) {
      const before = this.child(i)
      const after = before && (convert(before) ?? null)
      if (after !== before) isChanged = true
      children.push(after)
    }
    return isChanged ? this.copy(children, NONE) : this
  }

  asString(): string | undefined {
    return this.bytes[this.start] === QUOTE ? readText(this.bytes, this.start + 1, this.end - 1) : undefined
  }

  /** Whether it is that very string; cheaper than reading it. */
  isString(text: string): boolean {
    return this.bytes[this.start] === QUOTE && isText(this.bytes, this.start + 1, this.end - 1, text)
  }

  asNumber(): number | undefined {
    if (this.kind !== 'number') return undefined
    return readDigits(this.bytes, this.start, this.end) ?? Number(this.toString())
  }

  asBoolean(): boolean | undefined {
    return this.kind === 'boolean' ? this.end - this.start === 4 : undefined
  }

  /** The value as plain data, as JSON.parse would make it. */
  toValue(): unknown {
    return JSON.parse(this.toString())
  }

  /** So that JSON.stringify and loggers show the value and not how it is kept. */
  toJSON(): unknown {
    return this.toValue()
  }

  toString(): string {
    return this.isSource ? this.bytes.toString('utf8', this.start, this.end) : this.toBytes().toString('utf8')
  }

  toBytes(): Buffer {
    if (this.isSource) return this.bytes.subarray(this.start, this.end)
    const pieces: Buffer[] = []
    this.appendTo(pieces)
    return Buffer.concat(pieces)
  }

  /**
   * The same value for keeping: a copy with memory of its own, unless it is at least half of what it keeps alive.
   * Whatever outlives its message must be compact, or it keeps the whole body alive.
   */
  compact(): Json {
    if (this.isSource && this.size * 2 >= this.retained) return this
    const source = this.toBytes()
    const bytes = Buffer.allocUnsafeSlow(source.length) // the buffer pool would keep others' bytes alive
    source.copy(bytes)
    return new Json(bytes, 0, bytes.length, new ScanIndex())
  }

  /** Writes the value as pieces without joining them, so that a large one is never copied. */
  appendTo(pieces: Buffer[]): void {
    if (this.isSource) pieces.push(this.bytes.subarray(this.start, this.end))
    else
      appendChanged(pieces, {
        bytes: this.bytes,
        start: this.start,
        end: this.end,
        members: this.layout,
        replacement: i => this.replacement(i),
        added: this.added ?? NONE,
      })
  }

  private get layout(): Members {
    this.members ??= new Members(this.bytes, spansAt(this.bytes, this.start, this.marks))
    return this.members
  }

  private child(i: number): Json | null {
    const layout = this.layout
    this.children ??= new Array<Json | null | undefined>(layout.count)
    let child = this.children[i]
    if (child === undefined) {
      child = new Json(this.bytes, layout.valueStart(i), layout.end(i), this.marks)
      this.children[i] = child
    }
    return child
  }

  private edited(key: string, value: Json | undefined): Json {
    if (!this.isObject) throw new TypeError(`A JSON ${this.kind} has no members to change`)
    const added = this.added ?? NONE
    const i = this.layout.find(key)
    if (i >= 0 && this.child(i)) {
      const children = this.children?.slice() ?? []
      children[i] = value ?? null
      return this.copy(children, added)
    }
    const at = added.findIndex(([name]) => name === key)
    if (!value) return this.copy(this.children, added.toSpliced(at, 1))
    return this.copy(this.children, at < 0 ? [...added, [key, value]] : added.with(at, [key, value]))
  }

  private copy(children: Children | undefined, added: Added): Json {
    return new Json(this.bytes, this.start, this.end, this.marks, this.layout, children, added)
  }

  /** Still the text it was read from? A name read deep inside may have dropped an earlier one of the same name. */
  private get isSource(): boolean {
    if (this.added || this.members?.anyDropped) return false
    return !this.children || this.children.every(child => !child || child.isSource)
  }

  private static areSame(a: Json, b: Json): boolean {
    return a === b || (a.bytes === b.bytes && a.start === b.start && !a.added && !b.added)
  }

  private replacement(i: number): Json | 'keep' | 'remove' {
    const child = this.children?.[i]
    if (child === undefined) return 'keep'
    if (child === null) return 'remove'
    const isInPlace = child.bytes === this.bytes && child.start === this.layout.valueStart(i)
    return isInPlace && child.isSource ? 'keep' : child
  }
}
