import { isUtf8 } from 'node:buffer'
import { type AmbiguousMember, Members } from './members.ts'
import { JsonSyntaxError, scanText, spansAt, trimEnd } from './scan.ts'
import { ScanIndex } from './scan-index.ts'
import { isText, type JsonKind, kindOf, readDigits, readText } from './text.ts'
import { appendChanged, buildJson, type Plain, type PlainObject } from './write.ts'

export type { AmbiguousMember as Rival, JsonKind, Plain, PlainObject }

const DEPTH = 512
const NO_INDEX = new ScanIndex()
const OPEN_BRACE = 0x7b
const OPEN_BRACKET = 0x5b
const QUOTE = 0x22

/** Members that are not in the text, in the order they were set. */
type Added = readonly (readonly [string, Json])[]
const NONE: Added = []

/** By member: the value that was read or that replaces it; null if removed; undefined if not read. */
type Children = (Json | null | undefined)[]

/**
 * A JSON value, kept as the bytes it was read from. Members are parsed when they are read, and changed by splicing; the
 * rest is written back byte for byte. Values are immutable.
 */
export class Json {
  private readonly bytes: Buffer
  private readonly start: number
  private readonly end: number
  private readonly index: ScanIndex
  private members: Members | undefined
  private children: Children | undefined
  private readonly added: Added | undefined // undefined: not edited

  private constructor(
    bytes: Buffer,
    start: number,
    end: number,
    index: ScanIndex,
    members?: Members,
    children?: Children,
    added?: Added,
  ) {
    this.bytes = bytes
    this.start = start
    this.end = end
    this.index = index
    this.members = members
    this.children = children
    this.added = added
  }

  /** Checks the whole text once and throws JsonSyntaxError. The bytes must not change afterwards. */
  static parse(bytes: Buffer, depth = DEPTH): Json {
    if (!isUtf8(bytes)) throw new JsonSyntaxError('Not UTF-8', 0)
    if (bytes[0] === 0xef && bytes[1] === 0xbb) throw new JsonSyntaxError('Byte order mark', 0)
    const index = new ScanIndex(depth)
    const spans: number[] = []
    const text = trimEnd(bytes)
    const start = scanText(text, index, spans)
    return new Json(text, start, text.length, index, new Members(text, spans))
  }

  /** Bytes that `toBytes` gave, which need no check; they must not change afterwards. */
  static written(bytes: Buffer): Json {
    return new Json(bytes, 0, bytes.length, new ScanIndex())
  }

  /** A value made of plain data. Json inside it is copied; use `with` to wrap a large value. */
  static of(value: Plain): Json {
    if (value instanceof Json) return value
    const bytes = buildJson(value)
    return new Json(bytes, 0, bytes.length, typeof value === 'object' ? new ScanIndex() : NO_INDEX)
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

  /** Bytes of memory it retains: the whole message it was read from. */
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
   * A member of the text that a lenient reader could take for one of `keys` instead of the one that `get` returns: another
   * case or Unicode spelling, a name that continues after NUL, or a duplicate.
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

  /** For JSON.stringify and loggers. */
  toJSON(): unknown {
    return this.toValue()
  }

  toString(): string {
    return this.isSource ? this.bytes.toString('utf8', this.start, this.end) : this.toBytes().toString('utf8')
  }

  /** Its text with one character for each byte. */
  toByteText(): string {
    if (this.isSource) return this.bytes.toString('latin1', this.start, this.end)
    return this.toBytes().toString('latin1')
  }

  toBytes(): Buffer {
    if (this.isSource) return this.bytes.subarray(this.start, this.end)
    const pieces: Buffer[] = []
    this.appendTo(pieces)
    return Buffer.concat(pieces)
  }

  /** The text of the message that has this id and this body, if it was read as one text and is unchanged. */
  static textWith(id: Json, body: Json): Buffer | undefined {
    const { bytes } = id
    return bytes === body.bytes && bytes[0] === OPEN_BRACE && body.isSource ? bytes : undefined
  }

  /** Whether both were read from the same text, byte for byte; false if one was changed. */
  isSameText(other: Json): boolean {
    const { size } = this
    if (size !== other.size || !this.isSource || !other.isSource) return false
    for (let at = 0; at < size; at++) if (this.bytes[this.start + at] !== other.bytes[other.start + at]) return false
    return true
  }

  /** Copies its text into a buffer, as far as there is room, and returns where it ends there. */
  copyTo(target: Buffer, at: number): number {
    if (this.isSource) return at + this.bytes.copy(target, at, this.start, this.end)
    return at + this.toBytes().copy(target, at)
  }

  /**
   * The value for long-lived state: a copy with its own memory, unless it is at least half of the memory it retains. A
   * value that outlives its message must be compact, or it retains the whole body.
   */
  compact(): Json {
    if (this.isSource && this.size * 2 >= this.retained) return this
    const source = this.toBytes()
    const bytes = Buffer.allocUnsafeSlow(source.length) // the buffer pool would keep others' bytes alive
    source.copy(bytes)
    return new Json(bytes, 0, bytes.length, new ScanIndex())
  }

  /** Appends the value as buffers without joining them, so that a large one is not copied. */
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
    this.members ??= new Members(this.bytes, spansAt(this.bytes, this.start, this.index))
    return this.members
  }

  private child(i: number): Json | null {
    const layout = this.layout
    this.children ??= new Array<Json | null | undefined>(layout.count)
    let child = this.children[i]
    if (child === undefined) {
      child = new Json(this.bytes, layout.valueStart(i), layout.end(i), this.index)
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
    return new Json(this.bytes, this.start, this.end, this.index, this.layout, children, added)
  }

  /** Whether it is still the text it was read from. Reading a duplicate name deep inside drops the earlier member. */
  private get isSource(): boolean {
    if (this.added || this.members?.anyDropped) return false
    const { children } = this
    if (!children) return true
    for (let at = 0; at < children.length; at++) if (children[at]?.isSource === false) return false
    return true
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
