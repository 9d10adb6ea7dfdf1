import { isValidAt } from '../fact-validity.ts'
import type { Doc, Entity, Fact } from '../model.ts'
import {
  type FactFilter,
  type Groups,
  type Hit,
  INDEX_COLUMNS,
  type IndexKind,
  type Step,
  type TextQuery,
} from '../store.ts'
import type { StoreContext } from './context.ts'
import { readEntities } from './entities.ts'
import { readFacts } from './facts.ts'
import {
  docOf,
  ENTITY_COLUMNS,
  entityReader,
  factOf,
  inGroups,
  isNotNote,
  passesFilter,
  SELECT_DOCS,
  selectFacts,
} from './rows.ts'

const withScores = <Row extends { readonly id: number }>(
  rows: readonly Row[],
  scores: ReadonlyMap<number, number>,
): Hit<Row>[] =>
  rows.map(row => ({ ...row, score: scores.get(row.id) ?? 0 })).toSorted((a, b) => b.score - a.score || a.id - b.id)

/** Passages by row id, in the order of the ids. */
export const readDocs = async ({ db }: StoreContext, ids: readonly number[]): Promise<Doc[]> =>
  ids.length === 0
    ? []
    : (await db.all(`${SELECT_DOCS} WHERE ${db.dialect.inList('d.id')} ORDER BY d.id`, ids)).map(docOf)

/** Passages of some episodes, in order. */
export const readDocsOfEpisodes = async ({ db }: StoreContext, uuids: readonly string[]): Promise<Doc[]> => {
  const sql = `${SELECT_DOCS} WHERE ${db.dialect.inList('e.uuid')} ORDER BY d.episode_id, d.ord`
  return (await db.all(sql, uuids)).map(docOf)
}

const findBest = <Kind extends IndexKind>(
  { index }: StoreContext,
  kind: Kind,
  query: TextQuery<Kind>,
  filter?: FactFilter,
): Promise<ReadonlyMap<number, number>> => {
  const weights: Readonly<Record<string, number>> = query.weights
  return index.best(
    kind,
    query,
    INDEX_COLUMNS[kind].map(column => weights[column] ?? 0),
    filter,
  )
}

/** The passages that match best. */
export const searchDocs = async (context: StoreContext, query: TextQuery<'doc'>): Promise<Hit<Doc>[]> => {
  const scores = await findBest(context, 'doc', query)
  return withScores(await readDocs(context, [...scores.keys()]), scores)
}

/** The indexed facts that match best. A rule's fact quotes its passage and is found through that, not here. */
export const bestFacts = async (
  context: StoreContext,
  query: TextQuery<'fact'>,
  filter: FactFilter = {},
): Promise<Hit<Fact>[]> => {
  const scores = await findBest(context, 'fact', query, filter)
  const facts = await readFacts(context, [...scores.keys()])
  const { asOf } = filter // PostgreSQL's index does not know this bound
  return withScores(asOf === undefined ? facts : facts.filter(fact => isValidAt(fact, asOf)), scores)
}

/** The entities that match best. */
export const bestEntities = async (context: StoreContext, query: TextQuery<'entity'>): Promise<Hit<Entity>[]> => {
  const scores = await findBest(context, 'entity', query)
  return withScores(await readEntities(context, [...scores.keys()]), scores)
}

/** The facts stated in these passages; a fact stated in two of them is returned twice, each time with that passage. */
export const readFactsOfDocs = async (
  { db }: StoreContext,
  ids: readonly number[],
  filter?: FactFilter,
): Promise<Fact[]> => {
  if (ids.length === 0) return []
  const wanted = passesFilter(db, 'f', filter)
  const rows = await db.all(
    `SELECT g.*, link.doc_id AS "statedIn" FROM fact_episode link
      JOIN (${selectFacts(db)} WHERE ${wanted.sql}) g ON g.id = link.fact_id
      WHERE ${db.dialect.inList('link.doc_id')} ORDER BY link.doc_id, g.id`,
    ...wanted.values,
    ids,
  )
  return rows.map(row => Object.assign(factOf(row), { docId: Number(row.statedIn) }))
}

const LATEST = 'ORDER BY f.valid_at DESC NULLS LAST, f.id DESC'

/** The facts of these entities, the latest first. */
export const readFactsOfEntities = async (
  { db }: StoreContext,
  ids: readonly number[],
  limit: number,
  filter?: FactFilter,
): Promise<Fact[]> => {
  if (ids.length === 0) return []
  const wanted = passesFilter(db, 'f', filter)
  const { inList } = db.dialect
  // They are chosen first, so that only their episodes are looked up.
  const sql = `${selectFacts(db)} WHERE f.id IN (SELECT f.id FROM fact f WHERE f.id IN (
        SELECT id FROM fact WHERE ${inList('src')} UNION SELECT id FROM fact WHERE ${inList('dst')})
      AND ${wanted.sql} ${LATEST} LIMIT ?) ${LATEST}`
  return (await db.all(sql, ids, ids, ...wanted.values, limit)).map(factOf)
}

/** Facts by time alone, the latest first. */
export const readFactsByTime = async (
  { db }: StoreContext,
  groups: Groups,
  limit: number,
  filter: FactFilter,
): Promise<Fact[]> => {
  const scope = inGroups(db, 'f.group_id', groups)
  const wanted = passesFilter(db, 'f', filter)
  const sql = `${selectFacts(db)} WHERE ${scope.sql} AND ${wanted.sql} ${LATEST} LIMIT ?`
  return (await db.all(sql, ...scope.values, ...wanted.values, limit)).map(factOf)
}

const namedEntityOf = entityReader<{ readonly norm: string }>()
const mentionedEntityOf = entityReader<{ readonly episodeId: number }>()

/** Entities by normalised name or alias. */
export const findEntitiesNamed = async (
  { db }: StoreContext,
  norms: readonly string[],
  groups: Groups,
): Promise<(Entity & { norm: string })[]> => {
  const scope = inGroups(db, 'a.group_id', groups)
  const sql = `SELECT ${ENTITY_COLUMNS}, a.norm FROM alias a JOIN entity n ON n.id = a.entity_id
    WHERE ${scope.sql} AND ${db.dialect.inList('a.norm')} ORDER BY a.group_id, a.norm`
  const rows = await db.all(sql, ...scope.values, norms)
  return rows.map(namedEntityOf)
}

/** The entities that these episodes mention. */
export const readEntitiesOfEpisodes = async (
  { db }: StoreContext,
  ids: readonly number[],
): Promise<(Entity & { episodeId: number })[]> => {
  const sql = `SELECT ${ENTITY_COLUMNS}, m.episode_id AS "episodeId" FROM mention m JOIN entity n ON n.id = m.entity_id
    WHERE ${db.dialect.inList('m.episode_id')} ORDER BY m.episode_id, n.id`
  return (await db.all(sql, ids)).map(mentionedEntityOf)
}

/** Steps from these entities along facts, in both directions. A path through a Note would connect everything. */
export const readNeighbours = ({ db }: StoreContext, ids: readonly number[], limit: number): Promise<Step[]> => {
  const { inList } = db.dialect
  const hasNoNote = `${isNotNote(db, 'dst')} AND ${isNotNote(db, 'src')}`
  return db.all<Step>(
    `SELECT * FROM (
        SELECT src AS "from", dst AS "to", id AS "factId" FROM fact WHERE ${inList('src', '?1')} AND ${hasNoNote}
        UNION ALL SELECT dst, src, id FROM fact WHERE ${inList('dst', '?1')} AND ${hasNoNote}
      ) steps LIMIT ?2`,
    ids,
    limit,
  )
}
