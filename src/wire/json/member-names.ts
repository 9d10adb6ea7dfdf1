import { readText } from './text.ts'

const BACKSLASH = 0x5c
const ASCII_END = 0x80
const LETTER_CASE = 0x20 // the bit in which upper and lower case of an ASCII letter differ
const NUL = /\0.*$/s
const COMBINING_DOT = /\u0307/g // what is left of U+0130 in lower case

/**
 * The name under which lenient JSON readers look a member up: Go's encoding/json ignores case (U+017F is `s`, U+212A is
 * `k`), others upper-case both sides first (U+0131 is `i`), and C strings end at NUL.
 */
export const foldName = (name: string): string =>
  name.replace(NUL, '').toUpperCase().toLowerCase().replace(COMBINING_DOT, '')

/** False if the first byte of a name shows that it cannot fold to the key. */
export const mayFoldTo = (first: number, key: string): boolean =>
  first === BACKSLASH ||
  first >= ASCII_END ||
  (first | LETTER_CASE) === (key.charCodeAt(0) | LETTER_CASE) ||
  key.charCodeAt(0) >= ASCII_END

/** Whether a name written in these bytes, without its quotes, folds to the same as a key. Most names differ at once. */
export const foldsTo = (bytes: Buffer, start: number, end: number, key: string): boolean => {
  // Up to the first escape or non-ASCII character the name and an ASCII key are compared byte by byte.
  for (let i = 0; i <= key.length; i++) {
    const byte = bytes[start + i] as number
    const unit = key.charCodeAt(i)
    if (byte === BACKSLASH || byte >= ASCII_END || unit >= ASCII_END) break
    const isOver = start + i === end
    if (isOver !== (i === key.length)) return false
    if (isOver) break
    if ((byte | LETTER_CASE) !== (unit | LETTER_CASE)) return false
  }
  return foldName(readText(bytes, start, end)) === foldName(key)
}
