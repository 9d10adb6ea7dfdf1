// A scanner over UTF-8 JSON bytes: accepts exactly what JSON.parse accepts, builds nothing. Two things keep it fast.
// What its loops use is not exported: V8 reads an exported name from its cell each time (15 % of a walk).
// It never reads beyond the end: one such read, for a text cut short, would slow down every later walk (by 70 %).
// So it starts from a text that ends in a bracket, and looks for the end where one could step over that.

import { ScanIndex } from './scan-index.ts'

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const MINUS = 0x2d
const PLUS = 0x2b
const DOT = 0x2e
const ZERO = 0x30
const NINE = 0x39
const TO_CLOSE = 2 // from `{` to `}` and from `[` to `]`
const ROOT = 0 // levels are counted from there
const LARGE = ScanIndex.LARGE_BYTES

/** 0: nothing to look at inside a string. */
const STOPS = new Uint8Array(256).fill(1, 0, 0x20)
STOPS[QUOTE] = 1
STOPS[BACKSLASH] = 1

const ESCAPES = new Uint8Array(256)
for (const letter of '"\\/bfnrt') ESCAPES[letter.charCodeAt(0)] = 1

const HEX = new Uint8Array(256)
for (const digit of '0123456789abcdefABCDEF') HEX[digit.charCodeAt(0)] = 1

/** The text is not JSON; `offset` is the byte where that became clear. */
export class JsonSyntaxError extends Error {
  override readonly name = 'JsonSyntaxError'
  readonly offset: number
  constructor(reason: string, offset: number) {
    super(`${reason} at byte ${offset}`)
    this.offset = offset
  }
}

const expected = (wanted: string, at: number): JsonSyntaxError => new JsonSyntaxError(`Expected ${wanted}`, at)
const unended = (bytes: Uint8Array): JsonSyntaxError => new JsonSyntaxError('Unexpected end', bytes.length)

const isDigit = (byte: number | undefined): boolean => byte !== undefined && byte >= ZERO && byte <= NINE

const skipDigits = (bytes: Uint8Array, at: number): number => {
  if (!isDigit(bytes[at])) throw expected('a value or a digit', at)
  while (isDigit(bytes[at])) at++
  return at
}

const skipNumber = (bytes: Uint8Array, at: number): number => {
  if (bytes[at] === MINUS) at++
  at = bytes[at] === ZERO ? at + 1 : skipDigits(bytes, at)
  if (bytes[at] === DOT) at = skipDigits(bytes, at + 1)
  if (bytes[at] === 0x65 || bytes[at] === 0x45) {
    at++
    if (bytes[at] === PLUS || bytes[at] === MINUS) at++
    at = skipDigits(bytes, at)
  }
  return at
}

const skipWord = (bytes: Uint8Array, at: number, word: string): number => {
  for (let i = 0; i < word.length; i++) if (bytes[at + i] !== word.charCodeAt(i)) throw expected(`"${word}"`, at + i)
  return at + word.length
}

const skipScalar = (bytes: Uint8Array, at: number): number => {
  switch (bytes[at]) {
    case 0x74:
      return skipWord(bytes, at, 'true')
    case 0x66:
      return skipWord(bytes, at, 'false')
    case 0x6e:
      return skipWord(bytes, at, 'null')
    default:
      return skipNumber(bytes, at)
  }
}

const stops = (bytes: Uint8Array, at: number): number => STOPS[bytes[at] as number] as number

const skipLast = (bytes: Uint8Array, at: number): number => {
  while (at < bytes.length && stops(bytes, at) === 0) at++
  if (at === bytes.length) throw unended(bytes)
  return at
}

const skipEscape = (bytes: Uint8Array, at: number): number => {
  if (bytes[at] !== BACKSLASH) throw new JsonSyntaxError('Control character in a string', at)
  const letter = bytes[at + 1] as number
  if (ESCAPES[letter] === 1) return at + 2
  if (letter !== 0x75) throw new JsonSyntaxError('Bad escape', at)
  for (let i = at + 2; i < at + 6; i++)
    if (HEX[bytes[i] as number] !== 1) throw new JsonSyntaxError('Bad unicode escape', at)
  return at + 6
}

/** From behind the opening quote to behind the closing one, by fours: half the time of the plain loop. */
const skipText = (bytes: Uint8Array, at: number): number => {
  const byFours = bytes.length - 3
  for (;;) {
    while (
      at < byFours &&
      (stops(bytes, at) | stops(bytes, at + 1) | stops(bytes, at + 2) | stops(bytes, at + 3)) === 0
    )
      at += 4
    if (at >= byFours) at = skipLast(bytes, at)
    else if (stops(bytes, at) === 0 && stops(bytes, ++at) === 0 && stops(bytes, ++at) === 0) at++
    if (bytes[at] === QUOTE) return at + 1
    at = skipEscape(bytes, at)
  }
}

const skipName = (bytes: Uint8Array, at: number): number => {
  if (bytes[at] !== QUOTE) throw expected('a member name', at)
  return skipText(bytes, at + 1)
}

const isSpace = (byte: number | undefined): boolean => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09

const skipSpace = (bytes: Uint8Array, at: number): number => {
  while (isSpace(bytes[at])) at++
  return at
}

const skipColon = (bytes: Uint8Array, at: number): number => {
  if (bytes[at] !== COLON) at = skipSpace(bytes, at)
  if (bytes[at] !== COLON) throw expected('a colon', at)
  return skipSpace(bytes, at + 1)
}

const skipComma = (bytes: Uint8Array, at: number, close: number): number => {
  if (bytes[at] !== COMMA) throw expected(`a comma or ${String.fromCharCode(close)}`, at)
  return skipSpace(bytes, at + 1)
}

/** A loop, not a recursion, and with few calls in it: V8 gives up inlining early, which doubles the time. */
const skipContainer = (bytes: Uint8Array, at: number, level: number, index: ScanIndex): number => {
  const opened: number[] = [] // where those around us start
  let close = 0 // what ends the innermost of them
  for (;;) {
    const first = bytes[at]
    if (first === QUOTE) at = skipText(bytes, at + 1)
    else if (first === OPEN_BRACE || first === OPEN_BRACKET) {
      if (level + opened.length >= index.depth) throw new JsonSyntaxError('Nested too deeply', at)
      opened.push(at)
      close = first + TO_CLOSE
      at = skipSpace(bytes, at + 1)
      if (bytes[at] !== close) {
        if (close === CLOSE_BRACE) at = skipColon(bytes, skipName(bytes, at))
        continue
      }
    } else at = skipScalar(bytes, at)
    at = skipSpace(bytes, at)
    while (bytes[at] === close) {
      const open = opened.pop() as number
      if (at - open > LARGE) index.addEnd(level + opened.length, open, at + 1)
      if (opened.length === 0) return at + 1
      if (at + 1 === bytes.length) throw unended(bytes)
      close = (bytes[opened[opened.length - 1] as number] as number) + TO_CLOSE
      at = skipSpace(bytes, at + 1)
    }
    at = skipComma(bytes, at, close)
    if (close === CLOSE_BRACE) at = skipColon(bytes, skipName(bytes, at))
  }
}

const skipValue = (bytes: Uint8Array, at: number, level: number, index: ScanIndex): number => {
  if (bytes[at] === QUOTE) return skipText(bytes, at + 1)
  if (bytes[at] === OPEN_BRACE || bytes[at] === OPEN_BRACKET) return skipContainer(bytes, at, level, index)
  return skipScalar(bytes, at)
}

/**
 * Walks the object or array that opens there. Four numbers go to `spans` for every member: start and end of its
 * name, without the quotes, start and end of its value. An element has an empty name where its value starts.
 */
const walkMembers = (bytes: Uint8Array, open: number, level: number, index: ScanIndex, spans: number[]): number => {
  if (level >= index.depth) throw new JsonSyntaxError('Nested too deeply', open)
  const isObject = bytes[open] === OPEN_BRACE
  const close = (bytes[open] as number) + TO_CLOSE
  let at = skipSpace(bytes, open + 1)
  if (bytes[at] === close) return at + 1
  for (;;) {
    const nameEnd = isObject ? skipName(bytes, at) - 1 : at
    const start = isObject ? skipColon(bytes, nameEnd + 1) : at
    const end = index.endOf(start) ?? walkMember(bytes, start, level + 1, index)
    spans.push(isObject ? at + 1 : at, nameEnd, start, end)
    if (end === bytes.length) throw unended(bytes)
    at = skipSpace(bytes, end)
    if (bytes[at] === close) return at + 1
    at = skipComma(bytes, at, close)
  }
}

/** The object right below the root (params, result) is always read: its members are found during the first scan. */
const walkMember = (bytes: Uint8Array, at: number, level: number, index: ScanIndex): number => {
  if (bytes[at] !== OPEN_BRACE || level !== ROOT + 1) return skipValue(bytes, at, level, index)
  const spans: number[] = []
  const end = walkMembers(bytes, at, level, index, spans)
  index.setSpans(at, spans)
  return end
}

/** The spans of the members of an object, or of the elements of an array, in a text that has been checked. */
export const spansAt = (bytes: Uint8Array, open: number, index: ScanIndex): readonly number[] => {
  const known = index.spansAt(open)
  if (known) return known
  const spans: number[] = []
  walkMembers(bytes, open, ROOT + 1, index, spans)
  return spans
}

/**
 * Checks a whole text, as deep as `index` allows, and returns where its value starts. White space after it must have
 * been cut off. `spans` gets those of its root.
 */
export const scanText = (bytes: Buffer, index: ScanIndex, spans: number[]): number => {
  const start = skipLeading(bytes)
  const first = bytes[start]
  if (first !== OPEN_BRACE && first !== OPEN_BRACKET) return checkScalar(bytes, start)
  const last = bytes[bytes.length - 1]
  if (last !== CLOSE_BRACE && last !== CLOSE_BRACKET) throw expected('the text to end in } or ]', bytes.length)
  const end = walkMembers(bytes, start, ROOT, index, spans)
  if (end < bytes.length) throw new JsonSyntaxError('Unexpected text after the value', end)
  return start
}

const skipLeading = (bytes: Uint8Array): number => {
  let at = 0
  while (at < bytes.length && isSpace(bytes[at])) at++
  return at
}

/** Bare strings and numbers are not messages, so this need not be fast. */
const checkScalar = (bytes: Buffer, start: number): number => {
  try {
    JSON.parse(bytes.toString('utf8', start))
  } catch {
    throw expected('a value', start)
  }
  return start
}

/** The text without white space at its end. */
export const trimEnd = (bytes: Buffer): Buffer => {
  let end = bytes.length
  while (end > 0 && isSpace(bytes[end - 1])) end--
  return end === bytes.length ? bytes : bytes.subarray(0, end)
}
