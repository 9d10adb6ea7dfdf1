import type { Sql } from '../../../stores/sql.ts'
import type { QueryTerm } from '../../../text/query.ts'
import type { IndexKind } from '../store.ts'
import { type IndexEntry, occurrences, stemsIn } from './postgres-index-row.ts'

/** A term of a query with its rarity. */
export interface WeightedTerm {
  readonly term: QueryTerm
  readonly idf: number
}

/** The size of an index. */
export interface IndexTotals {
  readonly rows: number
  readonly tokens: number
}

/** A row that may match a query. */
export interface Candidate extends IndexEntry {
  readonly id: number
}

// The constants of FTS5, so that both engines rank alike.
const K1 = 1.2
const B = 0.75
const LEAST_IDF = 1e-6

/** The rarity of a term that occurs in `n` of the rows. */
export const idfOf = (rows: number, n: number): number => {
  const idf = Math.log((rows - n + 0.5) / (n + 0.5))
  return idf > 0 ? idf : LEAST_IDF
}

/** The score of a row by BM25 with weighted columns. */
export const scoreOf = (
  kind: IndexKind,
  { tsv, len }: Candidate,
  terms: readonly WeightedTerm[],
  weights: readonly number[],
  { rows, tokens }: IndexTotals,
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

interface CountChange {
  readonly kind: IndexKind
  readonly stem: string
  n: number
  tokens: number
}

const byKey = (a: CountChange, b: CountChange): number =>
  Buffer.compare(Buffer.from(`${a.kind}\0${a.stem}`), Buffer.from(`${b.kind}\0${b.stem}`))

const WRITE = `INSERT INTO term AS t (kind, stem, n, tokens)
  SELECT * FROM unnest(?::text[], ?::text[], ?::bigint[], ?::bigint[])
  ON CONFLICT (tenant, kind, stem) DO UPDATE SET n = t.n + excluded.n, tokens = t.tokens + excluded.tokens`

/** Changes of the numbers of rows by stem, collected during a transaction. */
export const createTermCounts = () => {
  const changes = new Map<string, CountChange>()
  let added = 0
  const count = (kind: IndexKind, stem: string, n: number, tokens = 0): void => {
    const key = `${kind}\0${stem}`
    const known = changes.get(key) ?? { kind, stem, n: 0, tokens: 0 }
    known.n += n
    known.tokens += tokens
    changes.set(key, known)
  }
  const countRow = (kind: IndexKind, { tsv, len }: IndexEntry, sign: 1 | -1): void => {
    count(kind, '', sign, sign * len)
    for (const stem of stemsIn(tsv)) count(kind, stem, sign)
  }
  return {
    add: (kind: IndexKind, row: IndexEntry): void => {
      added++
      countRow(kind, row, 1)
    },
    remove: (kind: IndexKind, row: IndexEntry): void => countRow(kind, row, -1),
    /** Writes the changes at the end of a transaction: every writer needs these rows, and locks them only briefly. */
    flush: async (db: Sql): Promise<number> => {
      // In a fixed order, so that two transactions never wait for each other.
      const list = [...changes.values()].filter(({ n, tokens }) => n !== 0 || tokens !== 0).toSorted(byKey)
      changes.clear()
      if (list.length === 0) return added
      const stems = list.map(({ stem }) => stem)
      const numbers = [list.map(({ n }) => n), list.map(({ tokens }) => tokens)]
      await db.run(
        WRITE,
        list.map(({ kind }) => kind),
        stems,
        ...numbers,
      )
      const fewer = list.filter(({ n }) => n < 0).map(({ stem }) => stem)
      if (fewer.length > 0) await db.run('DELETE FROM term WHERE n <= 0 AND stem = ANY (?)', fewer)
      return added
    },
  }
}
