import { perDialect } from '../../../stores/dialect.ts'
import { idOf, type Sql, type SqlRow, type SqlValue } from '../../../stores/sql.ts'
import type { Doc, Entity, Episode, Fact, Job, Saga } from '../model.ts'
import type { FactFilter, Groups } from '../store.ts'
import { NOTE } from '../text/names.ts'

/** A condition of a statement with its values. */
export interface Condition {
  readonly sql: string
  readonly values: readonly SqlValue[]
}

export const ALWAYS: Condition = { sql: 'true', values: [] }

/** The condition that a row is in one of the groups. */
export const inGroups = ({ dialect }: Sql, column: string, groups: Groups): Condition => {
  if (groups === 'all') return ALWAYS
  // An equation can use an index in order.
  if (groups.length === 1) return { sql: `${column} = ?`, values: [groups[0] ?? ''] }
  return { sql: dialect.inList(column), values: [groups] }
}

// `#` is the alias of the table.
const BOUNDS = [
  ['validAfter', '#.valid_at >= ?'],
  ['validBefore', '#.valid_at <= ?'],
  ['invalidAfter', '#.invalid_at >= ?'],
  ['invalidBefore', '#.invalid_at <= ?'],
  ['asOf', '(#.valid_at IS NULL OR #.valid_at <= ?)'],
  ['asOf', '(#.invalid_at IS NULL OR #.invalid_at > ?)'],
] as const

/** The condition that a fact passes a filter. */
export const passesFilter = ({ dialect }: Sql, alias: string, filter: FactFilter = {}): Condition => {
  const conditions = BOUNDS.flatMap(([key, sql]) => {
    const at = filter[key]
    return at === undefined ? [] : [{ sql: sql.replaceAll('#', alias), value: at as SqlValue }]
  })
  if (filter.names?.length) conditions.push({ sql: dialect.inList(`${alias}.name`), value: filter.names })
  if (conditions.length === 0) return ALWAYS
  return { sql: conditions.map(({ sql }) => sql).join(' AND '), values: conditions.map(({ value }) => value) }
}

/** The condition that an entity is not its group's Note, which every sentence without an entity points to. */
export const isNotNote = ({ dialect }: Sql, id: string): string =>
  `NOT EXISTS (SELECT 1 FROM entity note WHERE note.id = ${id} AND ${dialect.contains('note.labels', `'"${NOTE}"'`)})`

/** Reads the ids that a statement finds. */
export const readIds = async (db: Sql, sql: string, ...values: readonly SqlValue[]): Promise<number[]> =>
  (await db.all<{ id: number }>(sql, ...values)).map(({ id }) => id)

/** A row to insert, by column. */
export type NewRow = Readonly<Record<string, SqlValue>>

/** Inserts a row, and returns its id. */
export const insertRow = async (db: Sql, table: string, row: NewRow): Promise<number> => {
  const columns = Object.keys(row)
  const sql = `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`
  return idOf(await db.insert(sql, ...Object.values(row)))
}

/** Makes a row a record: NULL is undefined, and the named columns are JSON. In place, because searches read many rows. */
export const recordReader =
  <Row>(...jsonColumns: readonly string[]) =>
  (row: SqlRow): Row => {
    const record = row as Record<string, unknown>
    for (const name in record) if (record[name] === null) record[name] = undefined
    for (const name of jsonColumns) record[name] = JSON.parse(String(record[name]))
    return record as Row
  }

/** Records in the order of the keys they were asked for; missing ones are left out. */
export const inOrderOf = <Key, Row>(keys: readonly Key[], rows: readonly Row[], keyOf: (row: Row) => Key): Row[] => {
  const found = new Map(rows.map(row => [keyOf(row), row]))
  return keys.flatMap(key => found.get(key) ?? [])
}

const selectEpisodes = (
  content: string,
): string => `SELECT e.id, e.uuid, e.group_id AS "group", e.name, ${content}, e.source,
  e.source_description AS "sourceDescription", e.actor, e.created_at AS "createdAt", e.valid_at AS "validAt", saga.name AS saga,
  before.uuid AS previous, e.meta, e.state, e.error FROM episode e
  LEFT JOIN saga ON saga.id = e.saga_id LEFT JOIN episode before ON before.id = e.prev_id`

/** Selects episodes with the names of their saga and previous episode. */
export const SELECT_EPISODES = selectEpisodes('e.content')

/** An episode with the beginning of its text only, and the length of all of it. */
export type EpisodeHead = Episode & { readonly characters: number }

const HEAD_CHARACTERS = 600

/** The same without long texts, for lists. */
export const SELECT_EPISODE_HEADS = selectEpisodes(
  `substr(e.content, 1, ${HEAD_CHARACTERS}) AS content, length(e.content) AS characters`,
)

export const episodeOf = recordReader<Episode>('meta')
export const episodeHeadOf = recordReader<EpisodeHead>('meta')

/** Selects passages with what they need of their episode. */
export const SELECT_DOCS = `SELECT d.id, d.episode_id AS "episodeId", e.uuid AS episode, d.group_id AS "group", d.kind, d.ord,
  d.text, d.actor, d.prev, d.next, d.dt, e.valid_at AS "validAt", e.name AS "episodeName",
  e.source_description AS "sourceDescription" FROM doc d JOIN episode e ON e.id = d.episode_id`

export const docOf = recordReader<Doc>()

/** The columns of an entity in a SELECT; `n` is the alias of the table. */
export const ENTITY_COLUMNS = `n.id, n.uuid, n.group_id AS "group", n.name, n.labels, n.summary, n.attributes,
  n.created_at AS "createdAt"`

export const entityReader = <More = unknown>() => recordReader<Entity & More>('labels', 'attributes')
export const entityOf = entityReader()

/** Selects facts with the uuids of their entities, episodes and successor. */
export const selectFacts = perDialect(
  dialect => `SELECT f.id, f.uuid, f.group_id AS "group", f.src AS "sourceId", f.dst AS "targetId", s.uuid AS source,
  t.uuid AS target, f.name, f.fact, f.valid_at AS "validAt", f.valid_gran AS granularity, f.invalid_at AS "invalidAt",
  f.created_at AS "createdAt", f.expired_at AS "expiredAt", f.reference_time AS "referenceTime", f.attributes, f.origin,
  f.confidence, n.uuid AS "supersededBy", (SELECT ${dialect.jsonArrayOf('e.uuid', 'fe.ord')} FROM fact_episode fe
    JOIN episode e ON e.id = fe.episode_id WHERE fe.fact_id = f.id) AS episodes, f.doc_id AS "docId"
  FROM fact f JOIN entity s ON s.id = f.src JOIN entity t ON t.id = f.dst LEFT JOIN fact n ON n.id = f.superseded_by`,
)

export const factOf = recordReader<Fact>('attributes', 'episodes')

/** Selects jobs with the uuid of their episode. */
export const SELECT_JOBS = `SELECT j.id, j.group_id AS "group", e.uuid AS episode, j.kind, j.state, j.attempts,
  j.next_at AS "nextAt", j.lease_owner AS "leaseOwner", j.lease_until AS "leaseUntil", j.error, j.payload,
  j.created_at AS "createdAt" FROM job j LEFT JOIN episode e ON e.id = j.episode_id`

export const jobOf = recordReader<Job>('payload')

export const SAGA_COLUMNS = `uuid, group_id AS "group", name, summary, created_at AS "createdAt", summarised_to AS "summarisedTo"`

export const sagaOf = recordReader<Saga>()
