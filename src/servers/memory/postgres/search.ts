import type { Doc, Entity, Fact } from '../model.ts'
import { docOf, entityOf, factOf } from '../sqlite/rows.ts'
import type { DocWeights, EntityWeights, FactFilter, FactWeights, Groups, Hit, Step, TextQuery } from '../store.ts'
import { NOTE } from '../text/names.ts'
import { bestOf } from './best.ts'
import type { Context } from './context.ts'
import { readEntities } from './entities.ts'
import { readFacts } from './facts.ts'
import { DOCS, FACTS, inGroups, passing } from './rows.ts'

const scored = <Row extends { readonly id: number }>(
  rows: readonly Row[],
  scores: ReadonlyMap<number, number>,
): Hit<Row>[] =>
  rows.map(row => ({ ...row, score: scores.get(row.id) ?? 0 })).toSorted((a, b) => b.score - a.score || a.id - b.id)

/** Passages by their ids. */
export const readDocs = async ({ db }: Context, ids: readonly number[]): Promise<Doc[]> =>
  ids.length === 0 ? [] : (await db.all(`${DOCS} WHERE d.id = ANY (?) ORDER BY d.id`, ids)).map(docOf)

/** Passages of some episodes, in order. */
export const docsOfEpisodes = async ({ db }: Context, uuids: readonly string[]): Promise<Doc[]> =>
  (await db.all(`${DOCS} WHERE e.uuid = ANY (?) ORDER BY d.episode_id, d.ord`, uuids)).map(docOf)

/** The passages that match best. */
export const searchDocs = async (context: Context, query: TextQuery<DocWeights>): Promise<Hit<Doc>[]> => {
  const { text, actor, prev, next, dt } = query.weights
  const scores = await bestOf(context, 'doc', query, [text, actor, prev, next, dt])
  return scored(await readDocs(context, [...scores.keys()]), scores)
}

/** The given facts that match best. */
export const searchFacts = async (
  context: Context,
  query: TextQuery<FactWeights>,
  filter?: FactFilter,
): Promise<Hit<Fact>[]> => {
  const { fact, ents, dt } = query.weights
  const scores = await bestOf(context, 'fact', query, [fact, ents, dt], filter)
  return scored(await readFacts(context, [...scores.keys()]), scores)
}

/** The entities that match best. */
export const searchEntities = async (context: Context, query: TextQuery<EntityWeights>): Promise<Hit<Entity>[]> => {
  const { name, aliases, summary } = query.weights
  const scores = await bestOf(context, 'entity', query, [name, aliases, summary])
  return scored(await readEntities(context, [...scores.keys()]), scores)
}

/** What was told in these passages; a fact told in two of them comes twice, each time with that passage. */
export const factsOfDocs = async ({ db }: Context, ids: readonly number[], filter?: FactFilter): Promise<Fact[]> => {
  if (ids.length === 0) return []
  const wanted = passing('f', filter)
  const told = `SELECT g.*, told.doc_id AS told_in FROM fact_episode told JOIN (${FACTS} WHERE ${wanted.sql}) g ON g.id = told.fact_id
    WHERE told.doc_id = ANY (?) ORDER BY told.doc_id, g.id`
  const rows = await db.all(told, ...wanted.values, ids)
  return rows.map(row => ({ ...factOf(row), docId: Number(row.told_in) }))
}

const LATEST = 'ORDER BY f.valid_at DESC NULLS LAST, f.id DESC LIMIT ?'

/** What is known of these entities, the latest first. */
export const factsOfEntities = async (
  { db }: Context,
  ids: readonly number[],
  limit: number,
  filter?: FactFilter,
): Promise<Fact[]> => {
  if (ids.length === 0) return []
  const wanted = passing('f', filter)
  const ours = 'SELECT id FROM fact WHERE src = ANY (?) UNION SELECT id FROM fact WHERE dst = ANY (?)'
  const sql = `${FACTS} WHERE f.id IN (${ours}) AND ${wanted.sql} ${LATEST}`
  return (await db.all(sql, ids, ids, ...wanted.values, limit)).map(factOf)
}

/** Facts by their time alone, the latest first. */
export const factsByTime = async (
  { db }: Context,
  groups: Groups,
  limit: number,
  filter: FactFilter,
): Promise<Fact[]> => {
  const scope = inGroups('f.group_id', groups)
  const wanted = passing('f', filter)
  const sql = `${FACTS} WHERE ${scope.sql} AND ${wanted.sql} ${LATEST}`
  return (await db.all(sql, ...scope.values, ...wanted.values, limit)).map(factOf)
}

/** Entities by normalised name or alias. */
export const entitiesNamed = async (
  { db }: Context,
  norms: readonly string[],
  groups: Groups,
): Promise<(Entity & { norm: string })[]> => {
  const scope = inGroups('a.group_id', groups)
  const sql = `SELECT n.*, a.norm FROM alias a JOIN entity n ON n.id = a.entity_id
    WHERE ${scope.sql} AND a.norm = ANY (?) ORDER BY a.group_id, a.norm`
  const rows = await db.all(sql, ...scope.values, norms)
  return rows.map(row => ({ ...entityOf(row), norm: String(row.norm) }))
}

/** Every name of these entities in its normalised form. */
export const aliasesOf = async (
  { db }: Context,
  ids: readonly number[],
): Promise<{ entityId: number; norm: string }[]> =>
  db.all<{ entityId: number; norm: string }>(
    'SELECT entity_id AS "entityId", norm FROM alias WHERE entity_id = ANY (?) ORDER BY entity_id, norm',
    ids,
  )

/** The entities these episodes mention. */
export const entitiesOfEpisodes = async (
  { db }: Context,
  ids: readonly number[],
): Promise<(Entity & { episodeId: number })[]> => {
  const sql = `SELECT n.*, m.episode_id FROM mention m JOIN entity n ON n.id = m.entity_id
    WHERE m.episode_id = ANY (?) ORDER BY m.episode_id, n.id`
  return (await db.all(sql, ids)).map(row => ({ ...entityOf(row), episodeId: Number(row.episode_id) }))
}

/** Everything said alone is joined to its group's note; a way through it would join everything to everything. */
export const NOT_NOTE = (end: string): string =>
  `NOT EXISTS (SELECT 1 FROM entity n WHERE n.id = ${end} AND position('"${NOTE}"' IN n.labels) > 0)`

/** One step from these entities along facts, either way. */
export const neighbours = async ({ db }: Context, ids: readonly number[], limit: number): Promise<Step[]> =>
  db.all<Step>(
    `SELECT * FROM (
        SELECT src AS "from", dst AS "to", id AS "factId" FROM fact
          WHERE src = ANY (?1) AND ${NOT_NOTE('dst')} AND ${NOT_NOTE('src')}
        UNION ALL SELECT dst, src, id FROM fact
          WHERE dst = ANY (?1) AND ${NOT_NOTE('src')} AND ${NOT_NOTE('dst')}
      ) steps LIMIT ?2`,
    ids,
    limit,
  )
