import type { Sql } from '../../../stores/sql.ts'
import type { Entity, Episode, Fact, JobState } from '../model.ts'
import type { AuditRow, CountedEntity, EpisodeQuery, GroupStats, Groups, StoreStats } from '../store.ts'
import type { StoreContext } from './context.ts'
import {
  ENTITY_COLUMNS,
  entityOf,
  entityReader,
  episodeOf,
  factOf,
  inGroups,
  inOrderOf,
  isNotNote,
  recordReader,
  SELECT_EPISODES,
  selectFacts,
} from './rows.ts'

const ORDERS: Readonly<Record<NonNullable<EpisodeQuery['order']>, string>> = {
  newest: 'e.valid_at DESC, e.id DESC',
  oldest: 'e.valid_at, e.id',
  arrival: 'e.id',
}

/** One episode, or undefined. */
export const findEpisode = async ({ db }: StoreContext, uuid: string): Promise<Episode | undefined> => {
  const row = await db.get(`${SELECT_EPISODES} WHERE e.uuid = ?`, uuid)
  return row && episodeOf(row)
}

/** Selects episodes until their bodies exceed a number of bytes; the sizes are known without reading the bodies. */
const selectWithinBytes = (where: string, order: string): string => `WITH wanted AS (
    SELECT e.id, e.valid_at, octet_length(e.content) AS bytes FROM episode e LEFT JOIN saga ON saga.id = e.saga_id
    WHERE ${where} ORDER BY ${order} LIMIT ?),
  placed AS (SELECT e.id, sum(e.bytes) OVER (ORDER BY ${order} ROWS UNBOUNDED PRECEDING) - e.bytes AS before FROM wanted e)
  ${SELECT_EPISODES} WHERE e.id IN (SELECT id FROM placed WHERE placed.before <= ?) ORDER BY ${order}`

/** The episodes that a query asks for. */
export const listEpisodes = async ({ db }: StoreContext, query: EpisodeQuery): Promise<Episode[]> => {
  const scope = inGroups(db, 'e.group_id', query.groups)
  const narrowed = [
    ...(query.saga === undefined ? [] : [['saga.name = ?', query.saga] as const]),
    ...(query.state === undefined ? [] : [['e.state = ?', query.state] as const]),
    ...(query.after === undefined ? [] : [['e.id > ?', query.after] as const]),
  ]
  const where = [scope.sql, ...narrowed.map(([sql]) => sql)].join(' AND ')
  const [order, values] = [ORDERS[query.order ?? 'newest'], [...scope.values, ...narrowed.map(([, value]) => value)]]
  const rows =
    query.mostBytes === undefined
      ? await db.all(`${SELECT_EPISODES} WHERE ${where} ORDER BY ${order} LIMIT ?`, ...values, query.limit)
      : await db.all(selectWithinBytes(where, order), ...values, query.limit, query.mostBytes)
  return rows.map(episodeOf)
}

/** Episodes by uuid, in the order of the uuids; unknown ones are left out. */
export const readEpisodes = async ({ db }: StoreContext, uuids: readonly string[]): Promise<Episode[]> => {
  const rows = await db.all(`${SELECT_EPISODES} WHERE ${db.dialect.inList('e.uuid')}`, uuids)
  return inOrderOf(uuids, rows.map(episodeOf), ({ uuid }) => uuid)
}

/** The names of episodes by uuid; unknown ones are left out. */
export const readEpisodeNames = async (
  { db }: StoreContext,
  uuids: readonly string[],
): Promise<Map<string, string>> => {
  const sql = `SELECT uuid, name FROM episode WHERE ${db.dialect.inList('uuid')}`
  return new Map((await db.all<{ uuid: string; name: string }>(sql, uuids)).map(({ uuid, name }) => [uuid, name]))
}

const COUNT_FACTS =
  '(SELECT count(*) FROM fact WHERE src = n.id) + (SELECT count(*) FROM fact WHERE dst = n.id AND src <> n.id)'

const countedEntityOf = entityReader<CountedEntity>()

/** Entities with their number of facts, the most first; among those named, or all but the Notes. */
export const listEntities = async (
  { db }: StoreContext,
  groups: Groups,
  limit: number,
  among?: readonly number[],
): Promise<CountedEntity[]> => {
  const scope = inGroups(db, 'n.group_id', groups)
  const [wanted, values] = among ? [db.dialect.inList('n.id'), [among]] : [isNotNote(db, 'n.id'), []]
  const sql = `SELECT ${ENTITY_COLUMNS}, ${COUNT_FACTS} AS facts FROM entity n WHERE ${scope.sql} AND ${wanted}
    ORDER BY facts DESC, n.id LIMIT ?`
  return (await db.all(sql, ...scope.values, ...values, limit)).map(countedEntityOf)
}

/** One fact, or undefined. */
export const findFact = async ({ db }: StoreContext, uuid: string): Promise<Fact | undefined> => {
  const row = await db.get(`${selectFacts(db)} WHERE f.uuid = ?`, uuid)
  return row && factOf(row)
}

/** Facts in the order of their creation. */
export const listFacts = async ({ db }: StoreContext, groups: Groups, limit: number, after = 0): Promise<Fact[]> => {
  const scope = inGroups(db, 'f.group_id', groups)
  const sql = `${selectFacts(db)} WHERE ${scope.sql} AND f.id > ? ORDER BY f.id LIMIT ?`
  return (await db.all(sql, ...scope.values, after, limit)).map(factOf)
}

/** The entities that these episodes mention and the facts they state. */
export const readEpisodeGraph = async (
  { db }: StoreContext,
  uuids: readonly string[],
): Promise<{ entities: Entity[]; facts: Fact[] }> => {
  const wanted = `SELECT id FROM episode WHERE ${db.dialect.inList('uuid')}`
  const entities = `SELECT ${ENTITY_COLUMNS} FROM entity n
    WHERE n.id IN (SELECT entity_id FROM mention WHERE episode_id IN (${wanted}))`
  const facts = `${selectFacts(db)} WHERE f.id IN (SELECT fact_id FROM fact_episode WHERE episode_id IN (${wanted}))`
  return {
    entities: (await db.all(`${entities} ORDER BY n.id`, uuids)).map(entityOf),
    facts: (await db.all(`${facts} ORDER BY f.id`, uuids)).map(factOf),
  }
}

/** Two entities that a fact connects, and their group. */
export interface GroupLink {
  readonly group: string
  readonly from: number
  readonly to: number
}

/** The facts that are valid now, as pairs of entities. */
export const listLinks = async ({ db }: StoreContext, groups: Groups): Promise<GroupLink[]> => {
  const scope = inGroups(db, 'group_id', groups)
  return db.all<GroupLink>(
    `SELECT group_id AS "group", src AS "from", dst AS "to" FROM fact WHERE ${scope.sql} AND expired_at IS NULL
      AND src <> dst AND ${isNotNote(db, 'src')} AND ${isNotNote(db, 'dst')} ORDER BY id`,
    ...scope.values,
  )
}

const SELECT_GROUPS = 'SELECT group_id FROM episode UNION SELECT group_id FROM entity'

/** Every group that has episodes or entities. */
export const listGroups = async ({ db }: StoreContext): Promise<string[]> =>
  (await db.all<{ group_id: string }>(`${SELECT_GROUPS} ORDER BY group_id`)).map(row => row.group_id)

const auditRowOf = recordReader<AuditRow>('ids')

/** The latest entries of the audit log, newest first. */
export const listAudit = async ({ db }: StoreContext, limit: number): Promise<AuditRow[]> => {
  const sql = 'SELECT at, actor, op, ids FROM audit ORDER BY id DESC LIMIT ?'
  return (await db.all(sql, limit)).map(auditRowOf)
}

/** The entities without the Notes, as the graph and lists count them. */
const groupStatsOf = (db: Sql): string => `SELECT g.group_id AS "group",
  (SELECT count(*) FROM episode WHERE group_id = g.group_id) AS episodes,
  (SELECT count(*) FROM entity n WHERE n.group_id = g.group_id AND ${isNotNote(db, 'n.id')}) AS entities,
  (SELECT count(*) FROM fact WHERE group_id = g.group_id) AS facts,
  (SELECT count(*) FROM fact WHERE group_id = g.group_id AND expired_at IS NOT NULL) AS expired
  FROM (${SELECT_GROUPS}) g ORDER BY 1`

const COUNTS = `SELECT (SELECT count(*) FROM doc) AS docs, (SELECT count(*) FROM saga) AS sagas,
  (SELECT count(*) FROM community) AS communities, (SELECT count(*) FROM vec) AS vectors,
  (SELECT min(valid_at) FROM episode) AS "firstAt", (SELECT max(valid_at) FROM episode) AS "lastAt"`

const countsOf = recordReader<Pick<StoreStats, 'docs' | 'sagas' | 'communities' | 'vectors' | 'firstAt' | 'lastAt'>>()

/** Counts of everything in the store. */
export const readStats = async ({ db, engine }: StoreContext): Promise<StoreStats> => {
  const jobs: Record<JobState, number> = { waiting: 0, leased: 0, failed: 0 }
  const states = 'SELECT state, count(*) AS n FROM job GROUP BY state'
  for (const { state, n } of await db.all<{ state: JobState; n: number }>(states)) jobs[state] = n
  return {
    driver: engine.database.driver,
    version: engine.schemaVersion,
    bytes: await engine.sizeOf(db),
    groups: (await db.all<GroupStats>(groupStatsOf(db))).map(row => ({ ...row })),
    ...countsOf((await db.get(COUNTS)) ?? {}),
    jobs,
  }
}
