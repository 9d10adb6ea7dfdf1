import type { QueryTerm } from '../text/query.ts'
import { isUnspaced } from '../text/query.ts'
import { stemOf, wordsOf } from '../text/words.ts'

/** Says how much of a query a text holds, rare words counting more; 0 to 1. */
export type Overlap = (text: string) => number

/** Stems of those words that may have one of the terms' stems: a stem begins as its word does. */
const stemsOf = (text: string, beginnings: ReadonlySet<string>): Set<string> =>
  new Set(
    wordsOf(text)
      .filter(word => beginnings.has(word.slice(0, 2)))
      .map(stemOf),
  )

const holds = (text: string, stems: ReadonlySet<string>, { word, stem }: QueryTerm): boolean =>
  stems.has(stem) || (isUnspaced(word) && text.includes(word))

/** Weighs the terms by how few of the candidates hold them. */
export const overlapWith = (terms: readonly QueryTerm[], candidates: readonly string[]): Overlap => {
  const beginnings = new Set(terms.map(({ stem }) => stem.slice(0, 2)))
  const read = candidates.map(text => ({ text, stems: stemsOf(text, beginnings) }))
  const weights = terms.map(term => {
    const holding = read.filter(({ text, stems }) => holds(text, stems, term)).length
    return Math.log(1 + (candidates.length - holding + 0.5) / (holding + 0.5)) + 0.1
  })
  const all = weights.reduce((sum, weight) => sum + weight, 0)
  return text => {
    const stems = stemsOf(text, beginnings)
    const held = terms.reduce((sum, term, index) => sum + (holds(text, stems, term) ? (weights[index] ?? 0) : 0), 0)
    return all === 0 ? 0 : held / all
  }
}
