import type { SqlRow, SqlValue } from '../../../stores/sqlite.ts'
import type { Doc, Entity, Fact } from '../model.ts'
import type { DocWeights, EntityWeights, FactFilter, FactWeights, Groups, Hit, Step, TextQuery } from '../store.ts'
import { NOTE } from '../text/names.ts'
import { ftsQuery } from '../text/query.ts'
import type { Context } from './context.ts'
import { DOCS, docOf, entityOf, FACTS, factOf, inGroups } from './rows.ts'

const list = (ids: readonly (number | string)[]): string => JSON.stringify(ids)

const bm25 = (weights: readonly number[]): string => `bm25(${weights.join(', ')})`

/** The ids that match best with their scores, the greatest first. */
const bestOf = (
  context: Context,
  table: 'doc' | 'fact' | 'entity',
  query: TextQuery<unknown>,
  weights: readonly number[],
  filter = NONE,
): Map<number, number> => {
  const match = ftsQuery(query.terms)
  if (match === '' || query.limit <= 0) return new Map()
  const scope = inGroups('r.group_id', query.groups)
  const isFree = scope.sql === '1' && filter.sql === '1'
  const joined = isFree ? '' : `JOIN ${table} r ON r.id = i.rowid`
  const rows = context.db.all<{ id: number; rank: number }>(
    `SELECT i.rowid AS id, i.rank AS rank FROM ${table}_fts i ${joined}
      WHERE i.${table}_fts MATCH ? AND i.rank MATCH ? AND ${scope.sql} AND ${filter.sql} ORDER BY i.rank LIMIT ?`,
    match,
    bm25(weights),
    ...scope.values,
    ...filter.values,
    query.limit,
  )
  return new Map(rows.map(({ id, rank }) => [id, -rank]))
}

const scored = <Row extends { readonly id: number }>(
  rows: readonly Row[],
  scores: ReadonlyMap<number, number>,
): Hit<Row>[] =>
  rows.map(row => ({ ...row, score: scores.get(row.id) ?? 0 })).toSorted((a, b) => b.score - a.score || a.id - b.id)

const NONE: { readonly sql: string; readonly values: readonly SqlValue[] } = { sql: '1', values: [] }

const BOUNDS = [
  ['validAfter', 'valid_at >= ?'],
  ['validBefore', 'valid_at <= ?'],
  ['invalidAfter', 'invalid_at >= ?'],
  ['invalidBefore', 'invalid_at <= ?'],
] as const

/** The condition that a fact passes a filter. */
const passing = (alias: string, filter: FactFilter = {}): typeof NONE => {
  const bounds = BOUNDS.flatMap(([key, sql]) => {
    const at = filter[key]
    return at === undefined ? [] : [{ sql: `${alias}.${sql}`, value: at as SqlValue }]
  })
  const names = filter.names?.length
    ? [{ sql: `${alias}.name IN (SELECT value FROM json_each(?))`, value: list(filter.names) as SqlValue }]
    : []
  const all = [...bounds, ...names]
  return all.length === 0 ? NONE : { sql: all.map(one => one.sql).join(' AND '), values: all.map(one => one.value) }
}

/** Passages by their ids. */
export const readDocs = ({ db }: Context, ids: readonly number[]): Doc[] =>
  db.all(`${DOCS} WHERE d.id IN (SELECT value FROM json_each(?))`, list(ids)).map(docOf)

/** Passages of some episodes, in order. */
export const docsOfEpisodes = ({ db }: Context, uuids: readonly string[]): Doc[] =>
  db
    .all(`${DOCS} WHERE e.uuid IN (SELECT value FROM json_each(?)) ORDER BY d.episode_id, d.ord`, list(uuids))
    .map(docOf)

/** The passages that match best. */
export const searchDocs = (context: Context, query: TextQuery<DocWeights>): Hit<Doc>[] => {
  const { text, actor, prev, next, dt } = query.weights
  const scores = bestOf(context, 'doc', query, [text, actor, prev, next, dt])
  return scored(readDocs(context, [...scores.keys()]), scores)
}

/** The given facts that match best. */
export const searchFacts = (context: Context, query: TextQuery<FactWeights>, filter?: FactFilter): Hit<Fact>[] => {
  const { fact, ents, dt } = query.weights
  const scores = bestOf(context, 'fact', query, [fact, ents, dt], passing('r', filter))
  const sql = `${FACTS} WHERE f.id IN (SELECT value FROM json_each(?))`
  return scored(context.db.all(sql, list([...scores.keys()])).map(factOf), scores)
}

/** The entities that match best. */
export const searchEntities = (context: Context, query: TextQuery<EntityWeights>): Hit<Entity>[] => {
  const { name, aliases, summary } = query.weights
  const scores = bestOf(context, 'entity', query, [name, aliases, summary])
  const sql = 'SELECT * FROM entity WHERE id IN (SELECT value FROM json_each(?))'
  return scored(context.db.all(sql, list([...scores.keys()])).map(entityOf), scores)
}

/** What was told in these passages; a fact told in two of them comes twice, each time with that passage. */
export const factsOfDocs = ({ db }: Context, ids: readonly number[], filter?: FactFilter): Fact[] => {
  const wanted = passing('f', filter)
  const rows = db.all<SqlRow>(
    `SELECT told.doc_id AS told_in, g.* FROM fact_episode told JOIN (${FACTS} WHERE ${wanted.sql}) g ON g.id = told.fact_id
      WHERE told.doc_id IN (SELECT value FROM json_each(?)) ORDER BY told.doc_id, g.id`,
    ...wanted.values,
    list(ids),
  )
  return rows.map(row => ({ ...factOf(row), docId: Number(row.told_in) }))
}

/** What is known of these entities, the latest first. */
export const factsOfEntities = (
  { db }: Context,
  ids: readonly number[],
  limit: number,
  filter?: FactFilter,
): Fact[] => {
  const wanted = passing('f', filter)
  return db
    .all(
      // The best are chosen first, so that only their episodes are looked up.
      `${FACTS} WHERE f.id IN (SELECT f.id FROM fact f WHERE f.id IN (
            SELECT id FROM fact WHERE src IN (SELECT value FROM json_each(?))
            UNION SELECT id FROM fact WHERE dst IN (SELECT value FROM json_each(?)))
          AND ${wanted.sql} ORDER BY f.valid_at DESC, f.id DESC LIMIT ?)
        ORDER BY f.valid_at DESC, f.id DESC`,
      list(ids),
      list(ids),
      ...wanted.values,
      limit,
    )
    .map(factOf)
}

/** Facts by their time alone, the latest first. */
export const factsByTime = ({ db }: Context, groups: Groups, limit: number, filter: FactFilter): Fact[] => {
  const scope = inGroups('f.group_id', groups)
  const wanted = passing('f', filter)
  const sql = `${FACTS} WHERE ${scope.sql} AND ${wanted.sql} ORDER BY f.valid_at DESC, f.id DESC LIMIT ?`
  return db.all(sql, ...scope.values, ...wanted.values, limit).map(factOf)
}

/** Entities by normalised name or alias. */
export const entitiesNamed = (
  { db }: Context,
  norms: readonly string[],
  groups: Groups,
): (Entity & { norm: string })[] => {
  const scope = inGroups('a.group_id', groups)
  const rows = db.all(
    `SELECT n.*, a.norm FROM alias a JOIN entity n ON n.id = a.entity_id
      WHERE ${scope.sql} AND a.norm IN (SELECT value FROM json_each(?))`,
    ...scope.values,
    list(norms),
  )
  return rows.map(row => ({ ...entityOf(row), norm: String(row.norm) }))
}

/** Every name of these entities in its normalised form. */
export const aliasesOf = ({ db }: Context, ids: readonly number[]): { entityId: number; norm: string }[] =>
  db
    .all<{ entity_id: number; norm: string }>(
      'SELECT entity_id, norm FROM alias WHERE entity_id IN (SELECT value FROM json_each(?))',
      list(ids),
    )
    .map(({ entity_id, norm }) => ({ entityId: entity_id, norm }))

/** The entities these episodes mention. */
export const entitiesOfEpisodes = ({ db }: Context, ids: readonly number[]): (Entity & { episodeId: number })[] =>
  db
    .all(
      `SELECT n.*, m.episode_id FROM mention m JOIN entity n ON n.id = m.entity_id
        WHERE m.episode_id IN (SELECT value FROM json_each(?))`,
      list(ids),
    )
    .map(row => ({ ...entityOf(row), episodeId: Number(row.episode_id) }))

/** Everything said alone is joined to its group's note; a way through it would join everything to everything. */
export const NOT_NOTE = (end: string): string =>
  `NOT EXISTS (SELECT 1 FROM entity n WHERE n.id = ${end} AND instr(n.labels, '"${NOTE}"'))`

/** One step from these entities along facts, either way. */
export const neighbours = ({ db }: Context, ids: readonly number[], limit: number): Step[] =>
  db.all<{ from: number; to: number; factId: number }>(
    `SELECT * FROM (
        SELECT src AS "from", dst AS "to", id AS "factId" FROM fact
          WHERE src IN (SELECT value FROM json_each(?1)) AND ${NOT_NOTE('dst')} AND ${NOT_NOTE('src')}
        UNION ALL SELECT dst, src, id FROM fact
          WHERE dst IN (SELECT value FROM json_each(?1)) AND ${NOT_NOTE('src')} AND ${NOT_NOTE('dst')}
      ) LIMIT ?2`,
    list(ids),
    limit,
  )
