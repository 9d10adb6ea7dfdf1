import { digitsOf, trigramsOf } from '../text/names.ts'

const LEAST_LENGTH = 6 // of a name in one word, as the rule of likeness has it
const MOST_LENGTH = 300 // of a longer one every key would be kept beside the whole of it

/**
 * The keys under which a normalised name can be found by likeness: two names that share nine tenths of their
 * three-letter pieces, and all of their digits, share at least one of these few. So a lookup by key misses none, and
 * of a hundred thousand numbered tickets it reads one.
 */
export const nameKeys = (norm: string): readonly string[] => {
  if ((norm.length < LEAST_LENGTH && !norm.includes(' ')) || norm.length > MOST_LENGTH) return []
  const [grams, digits] = [[...trigramsOf(norm)].toSorted(), digitsOf(norm)]
  // Sets that overlap by 9/10 cannot all differ in the first tenth (and one) of one common order.
  return grams.slice(0, grams.length - Math.ceil(grams.length * 0.9) + 1).map(gram => `${digits}${gram}`)
}
