import { perDialect } from '../../../stores/dialect.ts'
import type { Sql, SqlRow, SqlValue } from '../../../stores/sql.ts'
import type {
  Attributes,
  Doc,
  DocKind,
  Entity,
  Episode,
  EpisodeState,
  Fact,
  Granularity,
  Job,
  JobKind,
  JobState,
  Origin,
  Saga,
  Source,
} from '../model.ts'
import type { FactFilter, Groups } from '../store.ts'
import { NOTE } from '../text/names.ts'

type Cell = SqlRow[string] | undefined

const text = (value: Cell): string => String(value ?? '')
const optionalText = (value: Cell): string | undefined => (value == null ? undefined : String(value))
const number = (value: Cell): number => Number(value ?? 0)
const optionalNumber = (value: Cell): number | undefined => (value == null ? undefined : Number(value))
const json = <Value>(value: Cell, absent: Value): Value =>
  typeof value === 'string' ? (JSON.parse(value) as Value) : absent

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
  `NOT EXISTS (SELECT 1 FROM entity n WHERE n.id = ${id} AND ${dialect.contains('n.labels', `'"${NOTE}"'`)})`

/** Reads the ids that a statement finds. */
export const readIds = async (db: Sql, sql: string, ...values: readonly SqlValue[]): Promise<number[]> =>
  (await db.all<{ id: number }>(sql, ...values)).map(({ id }) => id)

/** Selects episodes with the names of their saga and previous episode. */
export const SELECT_EPISODES = `SELECT e.*, saga.name AS saga, before.uuid AS previous FROM episode e
  LEFT JOIN saga ON saga.id = e.saga_id LEFT JOIN episode before ON before.id = e.prev_id`

export const episodeOf = (row: SqlRow): Episode => ({
  id: number(row.id),
  uuid: text(row.uuid),
  group: text(row.group_id),
  name: text(row.name),
  content: text(row.content),
  source: text(row.source) as Source,
  sourceDescription: text(row.source_description),
  actor: optionalText(row.actor),
  createdAt: number(row.created_at),
  validAt: number(row.valid_at),
  saga: optionalText(row.saga),
  previous: optionalText(row.previous),
  meta: json<Attributes>(row.meta, {}),
  state: text(row.state) as EpisodeState,
  error: optionalText(row.error),
})

/** Selects passages with what they need of their episode. */
export const SELECT_DOCS = `SELECT d.*, e.uuid AS episode, e.valid_at, e.name AS episode_name, e.source_description
  FROM doc d JOIN episode e ON e.id = d.episode_id`

export const docOf = (row: SqlRow): Doc => ({
  id: number(row.id),
  episodeId: number(row.episode_id),
  episode: text(row.episode),
  group: text(row.group_id),
  kind: text(row.kind) as DocKind,
  ord: number(row.ord),
  text: text(row.text),
  actor: optionalText(row.actor),
  prev: text(row.prev),
  next: text(row.next),
  dt: text(row.dt),
  validAt: number(row.valid_at),
  episodeName: text(row.episode_name),
  sourceDescription: text(row.source_description),
})

export const entityOf = (row: SqlRow): Entity => ({
  id: number(row.id),
  uuid: text(row.uuid),
  group: text(row.group_id),
  name: text(row.name),
  labels: json<string[]>(row.labels, []),
  summary: text(row.summary),
  attributes: json<Attributes>(row.attributes, {}),
  createdAt: number(row.created_at),
})

/** Selects facts with the uuids of their entities, episodes and successor. */
export const selectFacts = perDialect(
  dialect => `SELECT f.*, s.uuid AS source, t.uuid AS target,
  n.uuid AS superseding, (SELECT ${dialect.jsonArrayOf('e.uuid', 'fe.ord')} FROM fact_episode fe
    JOIN episode e ON e.id = fe.episode_id WHERE fe.fact_id = f.id) AS episodes
  FROM fact f JOIN entity s ON s.id = f.src JOIN entity t ON t.id = f.dst LEFT JOIN fact n ON n.id = f.superseded_by`,
)

export const factOf = (row: SqlRow): Fact => ({
  id: number(row.id),
  uuid: text(row.uuid),
  group: text(row.group_id),
  sourceId: number(row.src),
  targetId: number(row.dst),
  source: text(row.source),
  target: text(row.target),
  name: text(row.name),
  fact: text(row.fact),
  validAt: optionalNumber(row.valid_at),
  granularity: optionalText(row.valid_gran) as Granularity | undefined,
  invalidAt: optionalNumber(row.invalid_at),
  createdAt: number(row.created_at),
  expiredAt: optionalNumber(row.expired_at),
  referenceTime: optionalNumber(row.reference_time),
  attributes: json<Attributes>(row.attributes, {}),
  origin: text(row.origin) as Origin,
  confidence: Number(row.confidence),
  supersededBy: optionalText(row.superseding),
  episodes: json<string[]>(row.episodes, []),
  docId: optionalNumber(row.doc_id),
})

/** Selects jobs with the uuid of their episode. */
export const SELECT_JOBS = 'SELECT j.*, e.uuid AS episode FROM job j LEFT JOIN episode e ON e.id = j.episode_id'

export const jobOf = (row: SqlRow): Job => ({
  id: number(row.id),
  group: text(row.group_id),
  episode: optionalText(row.episode),
  kind: text(row.kind) as JobKind,
  state: text(row.state) as JobState,
  attempts: number(row.attempts),
  nextAt: number(row.next_at),
  leaseOwner: optionalText(row.lease_owner),
  leaseUntil: optionalNumber(row.lease_until),
  error: optionalText(row.error),
  payload: json<Attributes>(row.payload, {}),
  createdAt: number(row.created_at),
})

export const sagaOf = (row: SqlRow): Saga => ({
  uuid: text(row.uuid),
  group: text(row.group_id),
  name: text(row.name),
  summary: text(row.summary),
  createdAt: number(row.created_at),
  summarisedTo: number(row.summarised_to),
})
