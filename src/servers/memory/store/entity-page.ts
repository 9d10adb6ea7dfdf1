import type { Entity } from '../model.ts'
import type { FactFilter, Groups } from '../store.ts'
import type { StoreContext } from './context.ts'
import {
  ENTITY_COLUMNS,
  type EpisodeHead,
  entityReader,
  episodeHeadOf,
  inGroups,
  isNotNote,
  passesFilter,
  SELECT_EPISODE_HEADS,
} from './rows.ts'

/** Two connected entities, and how many facts connect them. */
export interface WeightedLink {
  readonly from: number
  readonly to: number
  readonly facts: number
}

/** The names of an entity besides its own. */
export const listAliases = async ({ db }: StoreContext, id: number): Promise<string[]> => {
  const sql = `SELECT a.name FROM alias a JOIN entity n ON n.id = a.entity_id
    WHERE a.entity_id = ? AND a.name <> n.name ORDER BY a.norm`
  return (await db.all<{ name: string }>(sql, id)).map(({ name }) => name)
}

/** The latest episodes that mention an entity, and the number of all. */
export const readMentions = async (
  { db }: StoreContext,
  id: number,
  limit: number,
): Promise<{ readonly episodes: EpisodeHead[]; readonly total: number }> => {
  const mentions = 'SELECT episode_id FROM mention WHERE entity_id = ?'
  const sql = `${SELECT_EPISODE_HEADS} WHERE e.id IN (${mentions}) ORDER BY e.valid_at DESC, e.id DESC LIMIT ?`
  const counted = await db.get<{ n: number }>('SELECT count(*) AS n FROM mention WHERE entity_id = ?', id)
  return { episodes: (await db.all(sql, id, limit)).map(episodeHeadOf), total: counted?.n ?? 0 }
}

const neighbourOf = entityReader<{ readonly facts: number }>()

/** The entities that facts connect with an entity, those with the most facts first. */
export const readConnected = async (
  { db }: StoreContext,
  id: number,
  limit: number,
): Promise<(Entity & { readonly facts: number })[]> => {
  const sql = `SELECT ${ENTITY_COLUMNS}, ends.facts FROM (
      SELECT other, count(*) AS facts FROM (
        SELECT dst AS other FROM fact WHERE src = ?1 AND dst <> ?1
        UNION ALL SELECT src FROM fact WHERE dst = ?1 AND src <> ?1) sides GROUP BY other) ends
    JOIN entity n ON n.id = ends.other WHERE ${isNotNote(db, 'n.id')} ORDER BY ends.facts DESC, n.id LIMIT ?2`
  return (await db.all(sql, id, limit)).map(neighbourOf)
}

const LOW = 'CASE WHEN f.src < f.dst THEN f.src ELSE f.dst END'
const HIGH = 'CASE WHEN f.src < f.dst THEN f.dst ELSE f.src END'

/** Pairs of entities that facts connect, the strongest first; without `asOf` only by facts that have not expired. */
export const listWeightedLinks = async (
  { db }: StoreContext,
  groups: Groups,
  filter: FactFilter,
  limit: number,
): Promise<WeightedLink[]> => {
  const scope = inGroups(db, 'f.group_id', groups)
  const wanted = passesFilter(db, 'f', filter)
  const current = filter.asOf === undefined ? 'f.expired_at IS NULL' : 'true'
  return db.all<WeightedLink>(
    `SELECT ${LOW} AS "from", ${HIGH} AS "to", count(*) AS facts FROM fact f
      WHERE ${scope.sql} AND ${wanted.sql} AND ${current} AND f.src <> f.dst
        AND ${isNotNote(db, 'f.src')} AND ${isNotNote(db, 'f.dst')}
      GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2 LIMIT ?`,
    ...scope.values,
    ...wanted.values,
    limit,
  )
}

/** How many entities there are, without the Notes. */
export const countEntities = async ({ db }: StoreContext, groups: Groups): Promise<number> => {
  const scope = inGroups(db, 'n.group_id', groups)
  const sql = `SELECT count(*) AS n FROM entity n WHERE ${scope.sql} AND ${isNotNote(db, 'n.id')}`
  return (await db.get<{ n: number }>(sql, ...scope.values))?.n ?? 0
}
