const SLOTS = 512 // a power of two
const LONGEST = 48 // bytes; the longest names of MCP's own members have 42

/** The latest short texts, by a hash of their bytes. Names of methods, tools and members repeat in nearly every message. */
const texts = new Array<string>(SLOTS).fill('')
/** Their bytes: to compare these takes a quarter of the time that the characters of a string take. */
const bytesOfTexts = new Uint8Array(SLOTS * LONGEST)

/**
 * The text at these offsets. To compare it with the one that was read there before takes a tenth of the time to decode it.
 * Texts of ASCII are interned: V8 compares one of them with a text of the source code, or with another, by address.
 */
export const readShortText = (bytes: Buffer, start: number, end: number): string => {
  const length = end - start
  if (length > LONGEST || length === 0) return bytes.toString('utf8', start, end)
  const first = bytes[start] as number
  const middle = bytes[start + (length >> 1)] as number
  const last = bytes[end - 1] as number
  const slot = (length * 37 + first * 5 + middle * 11 + last * 17) & (SLOTS - 1)
  const known = texts[slot] as string
  if (known.length === length && isAt(bytes, start, slot * LONGEST, length)) return known
  const text = bytes.toString('utf8', start, end)
  return text.length === length ? remember(slot, text) : text // others than those of ASCII are shorter than their bytes
}

const isAt = (bytes: Buffer, start: number, from: number, length: number): boolean => {
  for (let at = 0; at < length; at++) if (bytes[start + at] !== bytesOfTexts[from + at]) return false
  return true
}

const remember = (slot: number, text: string): string => {
  for (let at = 0; at < text.length; at++) bytesOfTexts[slot * LONGEST + at] = text.charCodeAt(at)
  const interned = Object.keys({ [text]: 0 })[0] as string // V8 interns the names of properties
  texts[slot] = interned
  return interned
}
