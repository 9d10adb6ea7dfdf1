import type { MergedList } from '../catalog/merged-list.ts'

const MOST = 3
const LEAST_SCORE = 0.4
const OF_BEST = 0.8 // names that are much less similar than the best one were not meant
const LONGEST = 200 // characters of a name that is compared

/** The exposed names of tools that may have been meant, the most similar first. */
export const nearestNames = ({ items }: Pick<MergedList, 'items'>, wanted: string): readonly string[] => {
  if (wanted.length > LONGEST) return []
  const pairs = pairsOf(wanted)
  const near = items
    .map(({ exposed, original }) => ({
      exposed,
      score: Math.max(similarity(pairs, pairsOf(exposed)), similarity(pairs, pairsOf(original))),
    }))
    .filter(({ score }) => score >= LEAST_SCORE)
    .sort((a, b) => b.score - a.score || (a.exposed < b.exposed ? -1 : 1))
    .slice(0, MOST)
  const least = (near[0]?.score ?? 0) * OF_BEST
  return near.filter(({ score }) => score >= least).map(({ exposed }) => exposed)
}

/** Neighbouring letters and digits: they are alike in names with other separators, other word orders and typing errors. */
const pairsOf = (name: string): ReadonlySet<string> => {
  const folded = name
    .slice(0, LONGEST)
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
  const pairs = new Set<string>()
  for (const word of folded) for (let at = 0; at < word.length - 1; at++) pairs.add(word.slice(at, at + 2))
  return pairs
}

/** The share of pairs that two names have in common, from 0 to 1 (Sørensen–Dice). */
const similarity = (one: ReadonlySet<string>, other: ReadonlySet<string>): number => {
  if (one.size === 0 || other.size === 0) return 0
  let shared = 0
  for (const pair of one) if (other.has(pair)) shared++
  return (2 * shared) / (one.size + other.size)
}
