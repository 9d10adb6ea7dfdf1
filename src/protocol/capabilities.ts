import type { Json } from '../wire/json/json.ts'
import { boundedKey } from './short-key.ts'

// A client writes its capabilities the same way every time.
const byText = new Map<string, string>()
const MOST_TEXTS = 1000
const LONGEST_TEXT = 1024 // bytes of a text that is kept as a key; longer ones are remembered with their value

const byValue = new WeakMap<Json, string>()
const LONGEST_FINGERPRINT = 128 // characters; a longer one is replaced by its hash

/** Equal for capabilities that mean the same, and short; servers shape their lists by them. */
export const capabilitiesFingerprint = (capabilities: Json): string => {
  if (capabilities.size > LONGEST_TEXT) return ofLong(capabilities)
  const text = capabilities.toString()
  const known = byText.get(text)
  if (known !== undefined) return known
  if (byText.size >= MOST_TEXTS) byText.clear()
  const made = make(capabilities)
  byText.set(text, made)
  return made
}

const ofLong = (capabilities: Json): string => {
  const known = byValue.get(capabilities)
  if (known !== undefined) return known
  const made = make(capabilities)
  byValue.set(capabilities, made)
  return made
}

const make = (capabilities: Json): string =>
  boundedKey(JSON.stringify(sorted(capabilities.toValue())), LONGEST_FINGERPRINT)

const sorted = (value: unknown): unknown => {
  if (value === null || typeof value !== 'object') return value
  if (Array.isArray(value)) return value.map(sorted)
  return Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, member]) => [key, sorted(member)])
}
