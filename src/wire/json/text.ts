const BACKSLASH = 0x5c
const ZERO = 0x30
const SAFE_DIGITS = 15

/** The string whose text lies there, without its quotes. */
export const readText = (bytes: Buffer, start: number, end: number): string => {
  const text = bytes.toString('utf8', start, end)
  return text.includes('\\') ? (JSON.parse(`"${text}"`) as string) : text
}

/** Compares in place; only what is written with escapes or beyond ASCII has to be decoded. */
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
