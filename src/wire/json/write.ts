import type { Json } from './json.ts'
import type { Members } from './members.ts'

/** The argument of Json.of: plain data that may contain Json values; undefined members are left out. */
export type Plain = Json | string | number | boolean | null | readonly Plain[] | PlainObject
export interface PlainObject {
  readonly [key: string]: Plain | undefined
}

/** The bytes of plain data; Json values inside are copied as they are. */
export const buildJson = (value: Exclude<Plain, Json>): Buffer => {
  if (value === null || typeof value !== 'object') return Buffer.from(JSON.stringify(value))
  const pieces: Pieces = ['']
  append(value, pieces)
  const [only] = pieces
  return pieces.length === 1 && typeof only === 'string' ? Buffer.from(only) : joinPieces(pieces)
}

/** Text is added to the text before it: each piece costs a call when they are joined. */
type Pieces = (string | Buffer)[]

const appendText = (text: string, pieces: Pieces): void => {
  const last = pieces.length - 1
  if (typeof pieces[last] === 'string') pieces[last] += text
  else pieces.push(text)
}

const joinPieces = (pieces: Pieces): Buffer => {
  let length = 0
  for (const piece of pieces) length += typeof piece === 'string' ? Buffer.byteLength(piece) : piece.length
  const bytes = Buffer.allocUnsafe(length)
  let at = 0
  for (const piece of pieces) at += typeof piece === 'string' ? bytes.write(piece, at) : piece.copy(bytes, at)
  return bytes
}

const append = (value: Plain, pieces: Pieces): void => {
  if (value === null || typeof value !== 'object') appendText(JSON.stringify(value) ?? 'null', pieces)
  else if (isJson(value)) value.appendTo(pieces as Buffer[])
  else if (Array.isArray(value)) appendList(value as readonly Plain[], pieces)
  else appendObject(value as PlainObject, pieces)
}

const appendList = (values: readonly Plain[], pieces: Pieces): void => {
  appendText('[', pieces)
  values.forEach((value, i) => {
    if (i > 0) appendText(',', pieces)
    append(value, pieces)
  })
  appendText(']', pieces)
}

const appendObject = (object: PlainObject, pieces: Pieces): void => {
  let separator = '{'
  for (const [key, value] of Object.entries(object)) {
    if (value === undefined) continue
    appendText(`${separator}${JSON.stringify(key)}:`, pieces)
    separator = ','
    append(value, pieces)
  }
  appendText(separator === '{' ? '{}' : '}', pieces)
}

/** By shape: importing the class would make a cycle. */
const isJson = (value: object): value is Json => 'appendTo' in value && typeof value.appendTo === 'function'

/** A container with changes: its text, the offsets of its members, and their replacements. */
export interface ChangedContainer<Value extends Writable> {
  readonly bytes: Buffer
  readonly start: number
  readonly end: number
  readonly members: Members
  readonly replacement: (i: number) => Value | 'keep' | 'remove'
  readonly added: readonly (readonly [string, Value])[]
}

interface Writable {
  appendTo(pieces: Buffer[]): void
}

const COMMA = Buffer.from(',')

/** Copies the text between the changes in runs as long as possible. */
export const appendChanged = <Value extends Writable>(pieces: Buffer[], changed: ChangedContainer<Value>): void => {
  const { bytes, start, end, members, replacement, added } = changed
  let from = start // start of kept text that is not written yet; -1: none
  let keptEnd = start + 1 // its end so far
  let isEmpty = true

  const flush = (to: number) => {
    if (from >= 0 && to > from) pieces.push(bytes.subarray(from, to))
    from = -1
  }
  for (let i = 0; i < members.count; i++) {
    const value = members.isDropped(i) ? 'remove' : replacement(i)
    if (value === 'remove') {
      flush(keptEnd)
      continue
    }
    if (from < 0) {
      if (!isEmpty) pieces.push(COMMA)
      from = members.start(i)
    }
    isEmpty = false
    keptEnd = members.end(i)
    if (value === 'keep') continue
    flush(members.valueStart(i))
    value.appendTo(pieces)
    from = keptEnd
  }
  if (added.length === 0 && from >= 0) flush(end)
  else {
    flush(keptEnd)
    appendAdded(pieces, added, isEmpty)
    pieces.push(bytes.subarray(end - 1, end))
  }
}

const appendAdded = (pieces: Buffer[], added: ChangedContainer<Writable>['added'], isFirst: boolean): void => {
  let separator = isFirst ? '' : ','
  for (const [name, value] of added) {
    pieces.push(Buffer.from(`${separator}${JSON.stringify(name)}:`))
    value.appendTo(pieces)
    separator = ','
  }
}
