import { withoutAccents } from './words.ts'

const EDGES = /^[\s"'“”‘’«»()[\]{}.,;:!?]+|[\s"'“”‘’«»()[\]{},;:!?]+$/gu
const POSSESSIVE = /['’]s$/u

/** Most names: there is nothing to change about them but their capitals. */
const PLAIN = /^[a-z0-9]+(?:[ _-][a-z0-9]+)*$/

/** The form under which a name is looked up: two names of one form are one entity. */
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

/** Whether a normalised name holds enough to be recognised by likeness; of short ones every letter matters. */
const isTelling = (name: string): boolean =>
  (name.length >= LEAST_LENGTH || name.includes(' ')) && entropyOf(name.replaceAll(' ', '')) >= LEAST_ENTROPY

/** The three-letter pieces of a normalised name. */
export const trigramsOf = (name: string): Set<string> => {
  const letters = name.replaceAll(' ', '')
  const grams = new Set<string>()
  for (let at = 0; at + 3 <= letters.length; at++) grams.add(letters.slice(at, at + 3))
  return grams
}

/** The numbers in a name. */
export const digitsOf = (name: string): string => (name.match(/\p{N}+/gu) ?? []).join(' ')

/** Whether two names are one but for a slip: their three-letter pieces overlap by 0.9 or more, and both are long and varied enough. */
export const fuzzySame = (left: string, right: string): boolean => {
  const [a, b] = [normaliseName(left), normaliseName(right)]
  if (a === b) return a !== ''
  // "release 10" and "release 11" are two things however alike they look.
  if (!isTelling(a) || !isTelling(b) || digitsOf(a) !== digitsOf(b)) return false
  const [ours, theirs] = [trigramsOf(a), trigramsOf(b)]
  let common = 0
  for (const gram of ours) if (theirs.has(gram)) common++
  return common / (ours.size + theirs.size - common) >= LEAST_OVERLAP
}
