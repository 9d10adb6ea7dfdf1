import { withoutAccents } from '../../../text/words.ts'

const EDGES = /^[\s"'“”‘’«»()[\]{}.,;:!?]+|[\s"'“”‘’«»()[\]{},;:!?]+$/gu
const POSSESSIVE = /['’]s$/u

/** Most names: only their capitals need folding. */
const PLAIN = /^[a-z0-9]+(?:[ _-][a-z0-9]+)*$/

/** The lookup form of a name: names with equal forms denote one entity. */
export const normaliseName = (name: string): string => {
  const lower = name.toLowerCase()
  if (PLAIN.test(lower)) return lower
  const plain = withoutAccents(name.normalize('NFKC').toLowerCase()).replace(/\s+/gu, ' ')
  return plain
    .replace(EDGES, '')
    .replace(POSSESSIVE, '')
    .replace(EDGES, '')
    .replace(/(?<=\p{L}{3})\.$/u, '')
}

const LEAST_LENGTH = 6 // of a name in one word
const LEAST_ENTROPY = 1.5 // bits per character
const LEAST_OVERLAP = 0.9

const entropyOf = (text: string): number => {
  const counts = new Map<string, number>()
  for (const letter of text) counts.set(letter, (counts.get(letter) ?? 0) + 1)
  let bits = 0
  for (const count of counts.values()) bits -= (count / text.length) * Math.log2(count / text.length)
  return bits
}

/** Whether a normalised name is long and varied enough for fuzzy matching; in short names every letter matters. */
const isDistinctive = (name: string): boolean =>
  (name.length >= LEAST_LENGTH || name.includes(' ')) && entropyOf(name.replaceAll(' ', '')) >= LEAST_ENTROPY

const trigramsOf = (name: string): Set<string> => {
  const letters = name.replaceAll(' ', '')
  const grams = new Set<string>()
  for (let at = 0; at + 3 <= letters.length; at++) grams.add(letters.slice(at, at + 3))
  return grams
}

const digitsOf = (name: string): string => (name.match(/\p{N}+/gu) ?? []).join(' ')

/** Whether two names differ only by a typo: their trigrams overlap by 0.9 or more, and both are distinctive. */
export const fuzzySame = (left: string, right: string): boolean => {
  const [a, b] = [normaliseName(left), normaliseName(right)]
  if (a === b) return a !== ''
  // "release 10" and "release 11" are different things.
  if (!isDistinctive(a) || !isDistinctive(b) || digitsOf(a) !== digitsOf(b)) return false
  const [ours, theirs] = [trigramsOf(a), trigramsOf(b)]
  let common = 0
  for (const gram of ours) if (theirs.has(gram)) common++
  return common / (ours.size + theirs.size - common) >= LEAST_OVERLAP
}

const LONGEST_KEYED = 300 // the keys of a longer name would take as much space as the name

/**
 * The index keys for finding a normalised name by similarity: two names whose trigrams overlap by 0.9 and whose digits
 * are equal share at least one key. A lookup by key misses none of them, and finds one of 100,000 numbered tickets.
 */
export const nameKeys = (norm: string): readonly string[] => {
  if ((norm.length < LEAST_LENGTH && !norm.includes(' ')) || norm.length > LONGEST_KEYED) return []
  const [grams, digits] = [[...trigramsOf(norm)].toSorted(), digitsOf(norm)]
  // Sets that overlap by 9/10 cannot differ in all of the first tenth (plus one) of one common order.
  return grams.slice(0, grams.length - Math.ceil(grams.length * 0.9) + 1).map(gram => `${digits}${gram}`)
}

/** The entity that facts without a named entity point to, one per group. */
export const NOTE = 'Note'

/** The labels that tell this entity from one that a caller named "Note". */
export const NOTE_LABELS: readonly string[] = ['Entity', 'Note']
