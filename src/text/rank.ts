import { isUnspaced, type QueryTerm } from './query.ts'
import { stemOf, wordsOf } from './words.ts'

/** A ranked list and its weight. */
export interface RankedList<Key> {
  readonly keys: readonly Key[] // best first, each once
  readonly weight: number
}

/** Weighted reciprocal rank fusion: each list adds weight ÷ (constant + rank) to the score of its keys. Best first. */
export const fuse = <Key>(lists: readonly RankedList<Key>[], constant: number): Map<Key, number> => {
  const scores = new Map<Key, number>()
  for (const { keys, weight } of lists) {
    keys.forEach((key, place) => {
      scores.set(key, (scores.get(key) ?? 0) + weight / (constant + place + 1))
    })
  }
  return new Map([...scores].toSorted(([, a], [, b]) => b - a))
}

/** The first item of each source in order, then the second of each, and so on, up to the limit. */
export const interleave = <Item>(items: readonly Item[], sourceOf: (item: Item) => unknown, limit: number): Item[] => {
  const seen = new Map<unknown, number>()
  const rounds: Item[][] = [[]]
  for (const item of items) {
    const source = sourceOf(item)
    const round = source === undefined ? 0 : (seen.get(source) ?? 0)
    if (source !== undefined) seen.set(source, round + 1)
    if (round === rounds.length) rounds.push([])
    rounds[round]?.push(item)
  }
  return rounds.flat().slice(0, limit)
}

/** The share of a query's terms that a text contains, from 0 to 1; rare terms count more. */
export type Overlap = (text: string) => number

/** The stems of the words that may match a term: a stem starts with the same two letters as its word. */
export const stemsAmong = (text: string, prefixes: ReadonlySet<string>): Set<string> =>
  new Set(
    wordsOf(text)
      .filter(word => prefixes.has(word.slice(0, 2)))
      .map(stemOf),
  )

/** Whether a text, and the stems of its words, contain a term. */
export const containsTerm = (text: string, stems: ReadonlySet<string>, { word, stem }: QueryTerm): boolean =>
  stems.has(stem) || (isUnspaced(word) && text.includes(word))

/** The weight of a term that `count` of `total` texts contain: the fewer, the more it says about a text. */
export const rarity = (count: number, total: number): number => Math.log(1 + (total - count + 0.5) / (count + 0.5))

/** Weighs each term by how few of the candidates contain it. */
export const overlapWith = (terms: readonly QueryTerm[], candidates: readonly string[]): Overlap => {
  const prefixes = new Set(terms.map(({ stem }) => stem.slice(0, 2)))
  const read = candidates.map(text => ({ text, stems: stemsAmong(text, prefixes) }))
  const weights = terms.map(term => {
    const count = read.filter(({ text, stems }) => containsTerm(text, stems, term)).length
    return rarity(count, candidates.length) + 0.1
  })
  const all = weights.reduce((sum, weight) => sum + weight, 0)
  return text => {
    const stems = stemsAmong(text, prefixes)
    const found = terms.reduce((sum, term, at) => sum + (containsTerm(text, stems, term) ? (weights[at] ?? 0) : 0), 0)
    return all === 0 ? 0 : found / all
  }
}
