import type { Json } from '../wire/json.ts'

// A client writes its capabilities the same way every time.
const fingerprints = new Map<string, string>()
const MOST_FINGERPRINTS = 1000

/** Equal for capabilities that mean the same; servers shape their lists by them. */
export const fingerprint = (capabilities: Json): string => {
  const text = capabilities.toString()
  const known = fingerprints.get(text)
  if (known !== undefined) return known
  if (fingerprints.size >= MOST_FINGERPRINTS) fingerprints.clear()
  const made = JSON.stringify(sorted(capabilities.toValue()))
  fingerprints.set(text, made)
  return made
}

const sorted = (value: unknown): unknown => {
  if (value === null || typeof value !== 'object') return value
  if (Array.isArray(value)) return value.map(sorted)
  return Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, member]) => [key, sorted(member)])
}
