import { readShortText } from './short-texts.ts'

export type JsonKind = 'object' | 'array' | 'string' | 'number' | 'boolean' | 'null'

const FIRST_BYTES: readonly (readonly [string, JsonKind])[] = [
  ['{', 'object'],
  ['[', 'array'],
  ['"', 'string'],
  ['t', 'boolean'],
  ['f', 'boolean'],
  ['n', 'null'],
]

const KINDS = new Array<JsonKind>(128).fill('number')
for (const [first, kind] of FIRST_BYTES) KINDS[first.charCodeAt(0)] = kind

/** The kind of a valid value, by its first byte. */
export const kindOf = (first: number): JsonKind => KINDS[first] as JsonKind

const BACKSLASH = 0x5c
const ZERO = 0x30
const SAFE_DIGITS = 15

/** The string at these offsets, which exclude the quotes. */
export const readText = (bytes: Buffer, start: number, end: number): string => {
  const text = readShortText(bytes, start, end)
  return text.includes('\\') ? (JSON.parse(`"${text}"`) as string) : text
}

/** Compares in place; only text with escapes or beyond ASCII is decoded. */
export const isText = (bytes: Buffer, start: number, end: number, text: string): boolean => {
  const length = end - start
  if (length < text.length) return false
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    const byte = bytes[start + i]
    if (unit >= 0x80 || byte === BACKSLASH) return readText(bytes, start, end) === text
    if (byte !== unit) return false
  }
  return length === text.length
}

/** A whole number of few digits, or undefined for every other one. */
export const readDigits = (bytes: Buffer, start: number, end: number): number | undefined => {
  if (end - start > SAFE_DIGITS) return undefined
  let number = 0
  for (let at = start; at < end; at++) {
    const digit = (bytes[at] as number) - ZERO
    if (digit < 0 || digit > 9) return undefined
    number = number * 10 + digit
  }
  return number
}
