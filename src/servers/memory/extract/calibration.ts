/** Pairs of sentences that say the same in other words; each has nothing to do with the rest. */
export const PAIRS: readonly (readonly [string, string])[] = [
  ['The kitten naps on the couch.', 'A young cat is asleep on the sofa.'],
  ['She resigned from her job at the bank.', 'She quit working for the financial institute.'],
  ['Our train was cancelled because of a blizzard.', 'Heavy snow stopped the railway connection we had booked.'],
  ['He is allergic to peanuts.', 'Eating nuts makes him ill.'],
  ['The database server ran out of disk space.', 'No storage was left on the machine that holds the tables.'],
  ['They got married in June.', 'Their wedding took place at the beginning of summer.'],
  ['I am learning to play the violin.', 'I take lessons on a string instrument.'],
  ['Taxes on fuel will rise next year.', 'Petrol is going to cost more as the state takes a bigger share.'],
]

/** The share of sentences whose nearest other sentence must be their own pair; by chance it is one in fifteen. */
const ENOUGH = 0.6

/** The sentences in the order in which `tellsApart` wants their vectors. */
export const SENTENCES: readonly string[] = PAIRS.flat()

const cosine = (one: Float32Array, other: Float32Array): number => {
  let [dot, left, right] = [0, 0, 0]
  for (let at = 0; at < one.length; at++) {
    const [a, b] = [one[at] ?? 0, other[at] ?? 0]
    dot += a * b
    left += a * a
    right += b * b
  }
  return dot / (Math.sqrt(left * right) || 1)
}

const nearestTo = (place: number, vectors: readonly Float32Array[]): number => {
  let [best, nearest] = [Number.NEGATIVE_INFINITY, -1]
  for (const [other, vector] of vectors.entries()) {
    const likeness = other === place ? Number.NEGATIVE_INFINITY : cosine(vectors[place] ?? vector, vector)
    if (likeness > best) [best, nearest] = [likeness, other]
  }
  return nearest
}

/** Whether vectors of the sentences mean anything: most must lie nearest to their own pair. */
export const tellsApart = (vectors: readonly Float32Array[]): boolean => {
  const right = vectors.filter((_, place) => nearestTo(place, vectors) === (place ^ 1)).length
  return right >= vectors.length * ENOUGH
}
