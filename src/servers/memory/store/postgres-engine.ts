import { open } from 'node:fs/promises'
import type { Sql, SqlDatabase, SqlValue } from '../../../stores/sql.ts'
import { SqlError } from '../../../stores/sql.ts'
import { type QueryTerm, queryTerms } from '../../../text/query.ts'
import type { FactFilter, IndexKind, TextQuery } from '../store.ts'
import type { Engine, ErasureCheck, IndexedRow, TextIndex } from './engine.ts'
import { explainDatabaseError, type MemoryDatabase } from './postgres-database.ts'
import { groupScope, indexRow, labelWeights, tenantScope } from './postgres-index-row.ts'
import {
  type Candidate,
  createTermCounts,
  type IndexTotals,
  idfOf,
  scoreOf,
  type WeightedTerm,
} from './postgres-ranking.ts'
import { POSTGRES_MIGRATIONS } from './postgres-schema.ts'
import { samplesOf } from './residue.ts'
import { inGroups } from './rows.ts'

// PostgreSQL orders candidates by a rough rank; the exact rank then chooses from this many times the limit.
const SURPLUS = 2
const LEAST_CANDIDATES = 300

const COUNT_PREFIXES = `SELECT p AS stem, (SELECT coalesce(sum(n), 0)::bigint FROM term
  WHERE kind = ? AND stem >= p AND stem < p || chr(1114111)) AS n FROM unnest(?::text[]) p`

interface StemCount {
  readonly stem: string
  readonly n: number
  readonly tokens?: number
}

/** The terms that occur in an index with their rarity, and the size of the index. */
const weighTerms = async (
  db: Sql,
  kind: IndexKind,
  terms: readonly QueryTerm[],
): Promise<{ readonly terms: WeightedTerm[]; readonly totals: IndexTotals }> => {
  const stems = (isPrefix: boolean) => terms.filter(term => term.isPrefix === isPrefix).map(({ stem }) => stem)
  const sql = 'SELECT stem, n, tokens FROM term WHERE kind = ? AND stem = ANY (?)'
  const exact = await db.all<StemCount>(sql, kind, ['', ...stems(false)])
  const prefixes = stems(true)
  const prefixed = prefixes.length === 0 ? [] : await db.all<StemCount>(COUNT_PREFIXES, kind, prefixes)
  const counts = new Map([...exact, ...prefixed].map(row => [row.stem, row]))
  const totals = { rows: counts.get('')?.n ?? 0, tokens: counts.get('')?.tokens ?? 0 }
  const weighted = terms.flatMap(term => {
    const n = Math.min(counts.get(term.stem)?.n ?? 0, totals.rows)
    return n === 0 ? [] : [{ term, idf: idfOf(totals.rows, n) }]
  })
  return { terms: weighted, totals }
}

/** A term as a tsquery. */
const termQuery = ({ stem, isPrefix }: QueryTerm): string => `'${stem.replaceAll("'", "''")}'${isPrefix ? ':*' : ''}`

const anyOf = (queries: readonly string[]): string => `(${queries.join(' | ')})`

const filterValues = (filter: FactFilter = {}): SqlValue[] => [
  filter.names?.length ? filter.names : null,
  filter.validAfter ?? null,
  filter.validBefore ?? null,
  filter.invalidAfter ?? null,
  filter.invalidBefore ?? null,
]

/** BM25 as in FTS5, over candidates from the index. */
const findBest = async (
  db: Sql,
  tenant: string,
  kind: IndexKind,
  query: TextQuery,
  weights: readonly number[],
  filter?: FactFilter,
): Promise<Map<number, number>> => {
  const { groups, limit } = query
  if (query.terms.length === 0 || limit <= 0 || groups.length === 0) return new Map()
  const { terms, totals } = await weighTerms(db, kind, query.terms)
  if (terms.length === 0) return new Map()
  const scopes = groups === 'all' ? [tenantScope(tenant)] : groups.map(group => groupScope(tenant, group))
  const queries = terms.map(({ term }) => termQuery(term))
  const more = kind === 'fact' ? filterValues(filter) : []
  const candidates = await db.all<Candidate>(
    `SELECT id, len, tsv FROM ${kind}_match(?::tsquery, ?::tsquery[], ?::float8[], ?::float4[], ?::integer${more.map(() => ', ?').join('')})`,
    `${anyOf(scopes.map(scope => `'${scope}'`))} & ${anyOf(queries)}`,
    queries,
    terms.map(({ idf }) => idf),
    labelWeights(kind, weights),
    Math.max(LEAST_CANDIDATES, limit * SURPLUS),
    ...more,
  )
  const scores = candidates.map(row => [row.id, scoreOf(kind, row, terms, weights, totals)] as const)
  return new Map(scores.toSorted((a, b) => b[1] - a[1] || a[0] - b[0]).slice(0, limit))
}

/** Full-text search by tsvectors, with the counts that BM25 needs in a table. */
const createTextIndex = (db: Sql, tenant: string): TextIndex => {
  const counts = createTermCounts()
  const entryOf = (kind: IndexKind, { group, texts }: IndexedRow) =>
    indexRow(kind, texts, [tenantScope(tenant), groupScope(tenant, group)])
  return {
    put: async (kind, rows) => {
      if (rows.length === 0) return
      const made = rows.map(row => entryOf(kind, row))
      for (const row of made) counts.add(kind, row)
      await db.run(
        `INSERT INTO ${kind}_fts (id, tsv, len) SELECT id, tsv::tsvector, len
          FROM unnest(?::bigint[], ?::text[], ?::integer[]) r (id, tsv, len)`,
        rows.map(({ id }) => id),
        made.map(({ tsv }) => tsv),
        made.map(({ len }) => len),
      )
    },
    replace: async (kind, before, after) => {
      const entry = entryOf(kind, after)
      counts.remove(kind, entryOf(kind, before))
      counts.add(kind, entry)
      await db.run(`UPDATE ${kind}_fts SET tsv = ?::tsvector, len = ? WHERE id = ?`, entry.tsv, entry.len, after.id)
    },
    remove: async (kind, ids) => {
      if (ids.length === 0) return
      const sql = `DELETE FROM ${kind}_fts WHERE id = ANY (?) RETURNING tsv::text AS tsv, len`
      for (const row of await db.all<{ tsv: string; len: number }>(sql, ids)) counts.remove(kind, row)
    },
    best: (kind, query, weights, filter) => findBest(db, tenant, kind, query, weights, filter),
    // If the words of the name are too long for a query, every row is returned.
    containing: (kind, columns, name, groups) => {
      const terms = queryTerms(name).map(termQuery)
      const scope = inGroups(db, 'r.group_id', groups)
      const sql = `SELECT ${columns} FROM ${kind} r JOIN ${kind}_fts i ON i.id = r.id
        WHERE (?::text = '' OR i.tsv @@ ?::tsquery) AND ${scope.sql}`
      return db.all(sql, terms.join(''), terms.join(' & '), ...scope.values)
    },
    flush: () => counts.flush(db),
  }
}

const contains = (sample: string, text: string): string => `position(lower(${sample}) IN lower(${text})) > 0`

/** Selects the samples that occur in any of these columns; `chr(10)` separates texts. */
const selectFound = (texts: readonly (readonly [table: string, text: string])[]): string =>
  `SELECT s FROM unnest(?::text[]) s WHERE ${texts.map(([table, text]) => `EXISTS (SELECT 1 FROM ${table} WHERE ${contains('s', text)})`).join(' OR ')}`

const STATED_TEXTS = selectFound([
  ['episode', 'name || chr(10) || content || chr(10) || source_description'],
  ['doc', "coalesce(actor, '') || chr(10) || text"],
  ['fact', 'fact'],
  ['entity', 'name || chr(10) || summary'],
  ['alias', 'name'],
])

const DERIVED_TEXTS = selectFound([
  ['term', 'stem'],
  ['doc', "prev || chr(10) || next || chr(10) || coalesce(index_text, '')"],
  ['saga', 'name || chr(10) || summary'],
  ['community', 'name || chr(10) || summary'],
])

/** A sample as text; bytes cut out of the middle of a character are none. */
const textOf = (sample: string): string[] => {
  const text = Buffer.from(sample, 'latin1').toString('utf8')
  return text.includes('\uFFFD') || text.includes('\0') ? [] : [text]
}

const MOST_SAMPLES = 2_000 // each is searched for in every row

/** How many samples of the erased texts remain in the tenant's rows and are not stated by other rows. */
const countLeft = async (db: Sql, samples: readonly string[]): Promise<number> => {
  const left = (await db.all<{ s: string }>(DERIVED_TEXTS, samples)).map(({ s }) => s)
  return left.length === 0 ? 0 : left.length - (await db.all(STATED_TEXTS, left)).length
}

/** Frees the space of erased rows; returns for each table what was done. */
const vacuum = async (postgres: SqlDatabase, tables: readonly string[]): Promise<string[]> => {
  try {
    await postgres.runLong(`VACUUM ${tables.join(', ')}`)
    return tables.map(
      table => `table ${table}: vacuumed; the server's log, its backups and its replicas are not searched`,
    )
  } catch (error) {
    if (!(error instanceof SqlError)) throw error
    return tables.map(table => `table ${table}: erased rows stay on the disk until it is vacuumed (${error.message})`)
  }
}

const SIZE = `SELECT coalesce((SELECT sum(pg_column_size(episode.*)) FROM episode), 0)::bigint
  + coalesce((SELECT sum(pg_column_size(doc.*)) FROM doc), 0)::bigint
  + coalesce((SELECT sum(pg_column_size(fact.*)) FROM fact), 0)::bigint AS bytes`

const FIRST_GROWTH = 64
const NEXT_GROWTH = 4

/** Calls back when the number of rows has grown to a multiple of what it was. */
const createGrowthWatch = (onGrown: () => void) => {
  let [rows, threshold] = [0, FIRST_GROWTH]
  return (added: number): void => {
    rows += added
    if (rows < threshold) return
    while (threshold <= rows) threshold *= NEXT_GROWTH
    onGrown()
  }
}

const writeLines = async (path: string, lines: AsyncIterable<string>): Promise<void> => {
  const file = await open(path, 'wx', 0o600)
  try {
    for await (const line of lines) await file.write(`${line}\n`)
  } finally {
    await file.close()
  }
}

/** One tenant's rows in a shared PostgreSQL database; `tenant` is its key there. */
export const createPostgresEngine = (shared: MemoryDatabase, tenant: string): Engine => {
  const { postgres, tables } = shared
  const begin = shared.beginAs(tenant)
  return {
    database: postgres,
    begin,
    schemaVersion: POSTGRES_MIGRATIONS.length,
    key: columns => `tenant, ${columns}`,
    createIndex: sql => createTextIndex(sql, tenant),
    // The tables contain the rows of all tenants; these are the bytes of this tenant's texts.
    sizeOf: async sql => (await sql.get<{ bytes: number }>(SIZE))?.bytes ?? 0,
    check: () => {},
    explain: error => explainDatabaseError(error, postgres.location),
    onIndexed: createGrowthWatch(shared.analyze),
    purge: async (texts): Promise<ErasureCheck> => {
      const files = await vacuum(postgres, tables)
      const samples = samplesOf(texts).flatMap(textOf).slice(0, MOST_SAMPLES)
      const left = await postgres.transaction(sql => countLeft(sql, samples), { readOnly: true, begin })
      // The disk of the server cannot be searched from here, so the result is never called clean.
      return { checked: samples.length, gone: samples.length - left, files, clean: false }
    },
    copyTo: (path, lines) => writeLines(path, lines()),
    close: async () => {},
  }
}
