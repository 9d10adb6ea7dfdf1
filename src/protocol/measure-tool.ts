import type { Json } from '../wire/json/json.ts'
import type { ToolSize } from './tool-size.ts'

// Bytes per token, measured on the lists of real servers; docs/tool-budget.md has the error. A tokenizer would be exact for
// one family of models only, and takes megabytes of memory.
const BYTES_PER_TOKEN = { word: 5.35, digit: 1.66, punctuation: 3.07, other: 4.6 } as const

type ByteKind = keyof typeof BYTES_PER_TOKEN

const kindOfByte = (byte: number): ByteKind => {
  if (byte >= 0x80) return 'other'
  const character = String.fromCharCode(byte)
  if (/[A-Za-z\s]/.test(character)) return 'word'
  return /\d/.test(character) ? 'digit' : 'punctuation'
}

const TOKENS_OF_BYTE = Float64Array.from({ length: 256 }, (_, byte) => 1 / BYTES_PER_TOKEN[kindOfByte(byte)])

/** An estimate of the tokens in a text, as UTF-8. */
export const estimateTokens = (text: Uint8Array): number => {
  let tokens = 0
  for (let at = 0; at < text.length; at++) tokens += TOKENS_OF_BYTE[text[at] as number] as number
  return Math.ceil(tokens)
}

const known = new WeakMap<Json, ToolSize>()

/** The size of a definition; each is read once. */
export const sizeOfTool = (definition: Json): ToolSize => {
  const before = known.get(definition)
  if (before) return before
  const text = definition.toBytes()
  const size = { bytes: text.length, tokens: estimateTokens(text) }
  known.set(definition, size)
  return size
}
