import type { PostgresValue } from '../../../stores/postgres.ts'
import type { FactFilter, TextQuery } from '../store.ts'
import type { QueryTerm } from '../text/query.ts'
import { type Candidate, idfOf, scoreOf, type Totals, type Weighed } from './bm25.ts'
import type { Context } from './context.ts'
import { groupScope, SLOTS, tenantScope } from './index-row.ts'
import type { IndexKind } from './schema.ts'

// PostgreSQL orders by a rough rank; of so many times more than are wanted, the exact rank chooses.
const SURPLUS = 2
const LEAST_CANDIDATES = 300

const BY_PREFIX = `SELECT p AS stem, (SELECT coalesce(sum(n), 0)::bigint FROM term
  WHERE kind = ? AND stem >= p AND stem < p || chr(1114111)) AS n FROM unnest(?::text[]) p`

interface Counted {
  readonly stem: string
  readonly n: number
  readonly tokens?: number
}

/** What is known of the terms: how many rows there are, and in how many of them each term occurs. */
const weigh = async (
  { db }: Context,
  kind: IndexKind,
  terms: readonly QueryTerm[],
): Promise<{ readonly terms: Weighed[]; readonly totals: Totals }> => {
  const [whole, begun] = [terms.filter(term => !term.isPrefix), terms.filter(term => term.isPrefix)]
  const sql = 'SELECT stem, n, tokens FROM term WHERE kind = ? AND stem = ANY (?)'
  const exact = await db.all<Counted>(sql, kind, ['', ...whole.map(({ stem }) => stem)])
  const prefixed =
    begun.length === 0
      ? []
      : await db.all<Counted>(
          BY_PREFIX,
          kind,
          begun.map(({ stem }) => stem),
        )
  const counts = new Map([...exact, ...prefixed].map(row => [row.stem, row]))
  const totals = { rows: counts.get('')?.n ?? 0, tokens: counts.get('')?.tokens ?? 0 }
  const known = terms.flatMap(term => {
    const n = Math.min(counts.get(term.stem)?.n ?? 0, totals.rows)
    return n === 0 ? [] : [{ term, idf: idfOf(totals.rows, n) }]
  })
  return { terms: known, totals }
}

/** A term in the index's query language. */
export const asQuery = ({ stem, isPrefix }: QueryTerm): string =>
  `'${stem.replaceAll("'", "''")}'${isPrefix ? ':*' : ''}`

const any = (queries: readonly string[]): string => `(${queries.join(' | ')})`

/** The weights of the four labels, D first as PostgreSQL wants them; of two columns with one label the greater. */
const labelWeights = (kind: IndexKind, weights: readonly number[]): number[] =>
  ['D', 'C', 'B', 'A'].map(label =>
    Math.min(1, Math.max(0.01, ...SLOTS[kind].map((slot, at) => (slot.label === label ? (weights[at] ?? 0) : 0)))),
  )

const filterValues = (filter: FactFilter = {}): PostgresValue[] => [
  filter.names?.length ? filter.names : null,
  filter.validAfter ?? null,
  filter.validBefore ?? null,
  filter.invalidAfter ?? null,
  filter.invalidBefore ?? null,
]

/** The ids that match best with their scores, the greatest first: BM25 as in SQLite, over candidates of the index. */
export const bestOf = async (
  context: Context,
  kind: IndexKind,
  query: TextQuery<unknown>,
  weights: readonly number[],
  filter?: FactFilter,
): Promise<Map<number, number>> => {
  const { db, tenant } = context
  const { groups, limit } = query
  if (query.terms.length === 0 || limit <= 0 || groups.length === 0) return new Map()
  const { terms, totals } = await weigh(context, kind, query.terms)
  if (terms.length === 0) return new Map()
  const scopes = groups === 'all' ? [tenantScope(tenant)] : groups.map(group => groupScope(tenant, group))
  const greatest = Math.max(...weights)
  const more = kind === 'fact' ? filterValues(filter) : []
  const candidates = await db.all<Candidate>(
    `SELECT id, len, tsv FROM ${kind}_match(?::tsquery, ?::tsquery[], ?::float8[], ?::float4[], ?::integer${more.map(() => ', ?').join('')})`,
    `${any(scopes.map(scope => `'${scope}'`))} & ${any(terms.map(({ term }) => asQuery(term)))}`,
    terms.map(({ term }) => asQuery(term)),
    terms.map(({ idf }) => idf),
    labelWeights(
      kind,
      weights.map(weight => weight / greatest),
    ),
    Math.max(LEAST_CANDIDATES, limit * SURPLUS),
    ...more,
  )
  const scores = candidates.map(row => [row.id, scoreOf(kind, row, terms, weights, totals)] as const)
  return new Map(scores.toSorted((a, b) => b[1] - a[1] || a[0] - b[0]).slice(0, limit))
}
