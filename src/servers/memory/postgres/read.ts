import type { Entity, Episode, Fact, Saga } from '../model.ts'
import { entityOf, episodeOf, factOf, sagaOf } from '../sqlite/rows.ts'
import type { AuditRow, EpisodeQuery, Groups } from '../store.ts'
import type { Context } from './context.ts'
import { EPISODES, FACTS, inGroups } from './rows.ts'
import { NOT_NOTE } from './search.ts'

const ORDERS: Readonly<Record<NonNullable<EpisodeQuery['order']>, string>> = {
  newest: 'e.valid_at DESC, e.id DESC',
  oldest: 'e.valid_at, e.id',
  arrival: 'e.id',
}

/** One episode, or nothing. */
export const findEpisode = async ({ db }: Context, uuid: string): Promise<Episode | undefined> => {
  const row = await db.get(`${EPISODES} WHERE e.uuid = ?`, uuid)
  return row && episodeOf(row)
}

/** The same until the bodies before one are larger than asked for; their sizes are known without reading them. */
const withinBytes = (where: string, order: string): string => `WITH wanted AS (
    SELECT e.id, e.valid_at, octet_length(e.content) AS bytes FROM episode e LEFT JOIN saga ON saga.id = e.saga_id
    WHERE ${where} ORDER BY ${order} LIMIT ?),
  placed AS (SELECT e.id, sum(e.bytes) OVER (ORDER BY ${order} ROWS UNBOUNDED PRECEDING) - e.bytes AS before FROM wanted e)
  ${EPISODES} WHERE e.id IN (SELECT id FROM placed WHERE placed.before <= ?) ORDER BY ${order}`

/** Episodes as asked for. */
export const listEpisodes = async ({ db }: Context, query: EpisodeQuery): Promise<Episode[]> => {
  const scope = inGroups('e.group_id', query.groups)
  const narrowed = [
    ...(query.saga === undefined ? [] : [['saga.name = ?', query.saga] as const]),
    ...(query.state === undefined ? [] : [['e.state = ?', query.state] as const]),
    ...(query.after === undefined ? [] : [['e.id > ?', query.after] as const]),
  ]
  const where = [scope.sql, ...narrowed.map(([sql]) => sql)].join(' AND ')
  const [order, values] = [ORDERS[query.order ?? 'newest'], [...scope.values, ...narrowed.map(([, value]) => value)]]
  if (query.mostBytes === undefined)
    return (await db.all(`${EPISODES} WHERE ${where} ORDER BY ${order} LIMIT ?`, ...values, query.limit)).map(episodeOf)
  return (await db.all(withinBytes(where, order), ...values, query.limit, query.mostBytes)).map(episodeOf)
}

/** Episodes by uuid, in the order asked for; unknown ones are left out. */
export const episodesByUuid = async ({ db }: Context, uuids: readonly string[]): Promise<Episode[]> => {
  const rows = await db.all(`${EPISODES} WHERE e.uuid = ANY (?)`, uuids)
  const found = new Map(rows.map(row => [String(row.uuid), episodeOf(row)]))
  return uuids.flatMap(uuid => found.get(uuid) ?? [])
}

/** One entity, or nothing. */
export const findEntity = async ({ db }: Context, uuid: string): Promise<Entity | undefined> => {
  const row = await db.get('SELECT * FROM entity WHERE uuid = ?', uuid)
  return row && entityOf(row)
}

/** Entities in the order they became known. */
export const listEntities = async ({ db }: Context, groups: Groups, limit: number, after = 0): Promise<Entity[]> => {
  const scope = inGroups('group_id', groups)
  const sql = `SELECT * FROM entity WHERE ${scope.sql} AND id > ? ORDER BY id LIMIT ?`
  return (await db.all(sql, ...scope.values, after, limit)).map(entityOf)
}

/** One fact, or nothing. */
export const findFact = async ({ db }: Context, uuid: string): Promise<Fact | undefined> => {
  const row = await db.get(`${FACTS} WHERE f.uuid = ?`, uuid)
  return row && factOf(row)
}

/** Facts in the order they became known. */
export const listFacts = async ({ db }: Context, groups: Groups, limit: number, after = 0): Promise<Fact[]> => {
  const scope = inGroups('f.group_id', groups)
  const sql = `${FACTS} WHERE ${scope.sql} AND f.id > ? ORDER BY f.id LIMIT ?`
  return (await db.all(sql, ...scope.values, after, limit)).map(factOf)
}

/** The entities these episodes mention and the facts they told. */
export const episodeGraph = async (
  { db }: Context,
  uuids: readonly string[],
): Promise<{ entities: Entity[]; facts: Fact[] }> => {
  const wanted = 'SELECT id FROM episode WHERE uuid = ANY (?)'
  const entities = `SELECT * FROM entity WHERE id IN (SELECT entity_id FROM mention WHERE episode_id IN (${wanted}))`
  const facts = `${FACTS} WHERE f.id IN (SELECT fact_id FROM fact_episode WHERE episode_id IN (${wanted}))`
  return {
    entities: (await db.all(`${entities} ORDER BY id`, uuids)).map(entityOf),
    facts: (await db.all(`${facts} ORDER BY f.id`, uuids)).map(factOf),
  }
}

/** One saga by its name, or nothing. */
export const findSaga = async ({ db }: Context, group: string, name: string): Promise<Saga | undefined> => {
  const row = await db.get('SELECT * FROM saga WHERE group_id = ? AND name = ?', group, name)
  return row && sagaOf(row)
}

/** Sagas in the order they began. */
export const listSagas = async ({ db }: Context, groups: Groups): Promise<Saga[]> => {
  const scope = inGroups('group_id', groups)
  return (await db.all(`SELECT * FROM saga WHERE ${scope.sql} ORDER BY id`, ...scope.values)).map(sagaOf)
}

/** What holds between entities now, as pairs. */
export const listLinks = async (
  { db }: Context,
  groups: Groups,
): Promise<{ group: string; from: number; to: number }[]> => {
  const scope = inGroups('group_id', groups)
  return db.all<{ group: string; from: number; to: number }>(
    `SELECT group_id AS "group", src AS "from", dst AS "to" FROM fact
      WHERE ${scope.sql} AND expired_at IS NULL AND src <> dst AND ${NOT_NOTE('src')} AND ${NOT_NOTE('dst')} ORDER BY id`,
    ...scope.values,
  )
}

/** Every group something is stored in. */
export const listGroups = async ({ db }: Context): Promise<string[]> => {
  const sql = 'SELECT group_id FROM episode UNION SELECT group_id FROM entity ORDER BY group_id'
  return (await db.all<{ group_id: string }>(sql)).map(row => row.group_id)
}

/** The latest lines of the audit trail, newest first. */
export const listAudit = async ({ db }: Context, limit: number): Promise<AuditRow[]> => {
  const sql = 'SELECT at, actor, op, ids FROM audit ORDER BY id DESC LIMIT ?'
  const rows = await db.all<{ at: number; actor: string | null; op: string; ids: string }>(sql, limit)
  return rows.map(({ at, actor, op, ids }) => ({
    at,
    actor: actor ?? undefined,
    op,
    ids: JSON.parse(ids) as string[],
  }))
}
