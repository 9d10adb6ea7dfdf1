import type { SqlRow } from '../../../stores/sqlite.ts'
import type { Entity, Episode, Fact, Saga } from '../model.ts'
import type { AuditRow, EpisodeQuery, Groups } from '../store.ts'
import type { Context } from './context.ts'
import { EPISODES, entityOf, episodeOf, FACTS, factOf, inGroups, sagaOf } from './rows.ts'
import { NOT_NOTE } from './search.ts'

const ORDERS: Readonly<Record<NonNullable<EpisodeQuery['order']>, string>> = {
  newest: 'e.valid_at DESC, e.id DESC',
  oldest: 'e.valid_at, e.id',
  arrival: 'e.id',
}

/** One episode, or nothing. */
export const findEpisode = ({ db }: Context, uuid: string): Episode | undefined => {
  const row = db.get(`${EPISODES} WHERE e.uuid = ?`, uuid)
  return row && episodeOf(row)
}

/** Episodes as asked for. */
export const listEpisodes = ({ db }: Context, query: EpisodeQuery): Episode[] => {
  const scope = inGroups('e.group_id', query.groups)
  const narrowed = [
    ...(query.saga === undefined ? [] : [['saga.name = ?', query.saga] as const]),
    ...(query.state === undefined ? [] : [['e.state = ?', query.state] as const]),
    ...(query.after === undefined ? [] : [['e.id > ?', query.after] as const]),
  ]
  const where = [scope.sql, ...narrowed.map(([sql]) => sql)].join(' AND ')
  const sql = `${EPISODES} WHERE ${where} ORDER BY ${ORDERS[query.order ?? 'newest']} LIMIT ?`
  const episodes: Episode[] = []
  let bytes = 0
  for (const row of db.each<SqlRow>(sql, ...scope.values, ...narrowed.map(([, value]) => value), query.limit)) {
    const episode = episodeOf(row)
    episodes.push(episode)
    bytes += episode.content.length
    if (query.mostBytes !== undefined && bytes > query.mostBytes) break
  }
  return episodes
}

/** Episodes by uuid, in the order asked for; unknown ones are left out. */
export const episodesByUuid = ({ db }: Context, uuids: readonly string[]): Episode[] => {
  const rows = db.all(`${EPISODES} WHERE e.uuid IN (SELECT value FROM json_each(?))`, JSON.stringify(uuids))
  const found = new Map(rows.map(row => [String(row.uuid), episodeOf(row)]))
  return uuids.flatMap(uuid => found.get(uuid) ?? [])
}

/** One entity, or nothing. */
export const findEntity = ({ db }: Context, uuid: string): Entity | undefined => {
  const row = db.get('SELECT * FROM entity WHERE uuid = ?', uuid)
  return row && entityOf(row)
}

/** Entities in the order they became known. */
export const listEntities = ({ db }: Context, groups: Groups, limit: number, after = 0): Entity[] => {
  const scope = inGroups('group_id', groups)
  const sql = `SELECT * FROM entity WHERE ${scope.sql} AND id > ? ORDER BY id LIMIT ?`
  return db.all(sql, ...scope.values, after, limit).map(entityOf)
}

/** One fact, or nothing. */
export const findFact = ({ db }: Context, uuid: string): Fact | undefined => {
  const row = db.get(`${FACTS} WHERE f.uuid = ?`, uuid)
  return row && factOf(row)
}

/** Facts in the order they became known. */
export const listFacts = ({ db }: Context, groups: Groups, limit: number, after = 0): Fact[] => {
  const scope = inGroups('f.group_id', groups)
  const sql = `${FACTS} WHERE ${scope.sql} AND f.id > ? ORDER BY f.id LIMIT ?`
  return db.all(sql, ...scope.values, after, limit).map(factOf)
}

/** The entities these episodes mention and the facts they told. */
export const episodeGraph = ({ db }: Context, uuids: readonly string[]): { entities: Entity[]; facts: Fact[] } => {
  const wanted = 'SELECT id FROM episode WHERE uuid IN (SELECT value FROM json_each(?))'
  const entities = `SELECT * FROM entity WHERE id IN (SELECT entity_id FROM mention WHERE episode_id IN (${wanted}))`
  const facts = `${FACTS} WHERE f.id IN (SELECT fact_id FROM fact_episode WHERE episode_id IN (${wanted}))`
  const list = JSON.stringify(uuids)
  return {
    entities: db.all(`${entities} ORDER BY id`, list).map(entityOf),
    facts: db.all(`${facts} ORDER BY f.id`, list).map(factOf),
  }
}

/** One saga by its name, or nothing. */
export const findSaga = ({ db }: Context, group: string, name: string): Saga | undefined => {
  const row = db.get('SELECT * FROM saga WHERE group_id = ? AND name = ?', group, name)
  return row && sagaOf(row)
}

/** Sagas in the order they began. */
export const listSagas = ({ db }: Context, groups: Groups): Saga[] => {
  const scope = inGroups('group_id', groups)
  return db.all(`SELECT * FROM saga WHERE ${scope.sql} ORDER BY id`, ...scope.values).map(sagaOf)
}

/** What holds between entities now, as pairs. */
export const listLinks = ({ db }: Context, groups: Groups): { group: string; from: number; to: number }[] => {
  const scope = inGroups('group_id', groups)
  return db.all<{ group: string; from: number; to: number }>(
    `SELECT group_id AS "group", src AS "from", dst AS "to" FROM fact
      WHERE ${scope.sql} AND expired_at IS NULL AND src <> dst AND ${NOT_NOTE('src')} AND ${NOT_NOTE('dst')} ORDER BY id`,
    ...scope.values,
  )
}

/** Every group something is stored in. */
export const listGroups = ({ db }: Context): string[] =>
  db
    .all<{ group_id: string }>('SELECT group_id FROM episode UNION SELECT group_id FROM entity ORDER BY group_id')
    .map(row => row.group_id)

/** The latest lines of the audit trail, newest first. */
export const listAudit = ({ db }: Context, limit: number): AuditRow[] =>
  db
    .all<{ at: number; actor: string | null; op: string; ids: string }>(
      'SELECT at, actor, op, ids FROM audit ORDER BY id DESC LIMIT ?',
      limit,
    )
    .map(({ at, actor, op, ids }) => ({ at, actor: actor ?? undefined, op, ids: JSON.parse(ids) as string[] }))
