import type { QueryTerm } from '../text/query.ts'
import { occurrences } from './index-row.ts'
import type { IndexKind } from './schema.ts'

/** A term with its rarity. */
export interface Weighed {
  readonly term: QueryTerm
  readonly idf: number
}

/** What is known of an index as a whole. */
export interface Totals {
  readonly rows: number
  readonly tokens: number
}

/** A row that may answer a query. */
export interface Candidate {
  readonly id: number
  readonly len: number
  readonly tsv: string
}

// As SQLite's FTS5 has them, so that both drivers rank alike.
const K1 = 1.2
const B = 0.75
const LEAST_IDF = 1e-6

/** How telling a term is that occurs in `n` of the rows. */
export const idfOf = (rows: number, n: number): number => {
  const idf = Math.log((rows - n + 0.5) / (n + 0.5))
  return idf > 0 ? idf : LEAST_IDF
}

/** A row's score by BM25 with weighted columns. */
export const scoreOf = (
  kind: IndexKind,
  { tsv, len }: Candidate,
  terms: readonly Weighed[],
  weights: readonly number[],
  { rows, tokens }: Totals,
): number => {
  const norm = K1 * (1 - B + (B * len) / (tokens / rows || 1))
  let score = 0
  for (const { term, idf } of terms) {
    const counts = occurrences(kind, tsv, term.stem, term.isPrefix)
    const frequency = counts.reduce((sum, count, column) => sum + count * (weights[column] ?? 0), 0)
    if (frequency > 0) score += (idf * frequency * (K1 + 1)) / (frequency + norm)
  }
  return score
}
