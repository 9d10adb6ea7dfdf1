import type { SqlRow, SqlValue } from '../../../stores/sqlite.ts'
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
import type { Groups } from '../store.ts'

const text = (value: SqlValue | undefined): string => String(value ?? '')
const maybeText = (value: SqlValue | undefined): string | undefined => (value == null ? undefined : String(value))
const count = (value: SqlValue | undefined): number => Number(value ?? 0)
const maybeCount = (value: SqlValue | undefined): number | undefined => (value == null ? undefined : Number(value))
const json = <Value>(value: SqlValue | undefined, absent: Value): Value =>
  typeof value === 'string' ? (JSON.parse(value) as Value) : absent

/** The condition that a row is of one of the groups, with its values; one group can use an index in order. */
export const inGroups = (column: string, groups: Groups): { readonly sql: string; readonly values: SqlValue[] } => {
  if (groups === 'all') return { sql: '1', values: [] }
  if (groups.length === 1) return { sql: `${column} = ?`, values: [groups[0] ?? ''] }
  return { sql: `${column} IN (SELECT value FROM json_each(?))`, values: [JSON.stringify(groups)] }
}

/** Reads episodes with the names of what they belong to. */
export const EPISODES = `SELECT e.*, saga.name AS saga, before.uuid AS previous FROM episode e
  LEFT JOIN saga ON saga.id = e.saga_id LEFT JOIN episode before ON before.id = e.prev_id`

export const episodeOf = (row: SqlRow): Episode => ({
  id: count(row.id),
  uuid: text(row.uuid),
  group: text(row.group_id),
  name: text(row.name),
  content: text(row.content),
  source: text(row.source) as Source,
  sourceDescription: text(row.source_description),
  actor: maybeText(row.actor),
  createdAt: count(row.created_at),
  validAt: count(row.valid_at),
  saga: maybeText(row.saga),
  previous: maybeText(row.previous),
  meta: json<Attributes>(row.meta, {}),
  state: text(row.state) as EpisodeState,
  error: maybeText(row.error),
})

/** Reads passages with what is known of their episode. */
export const DOCS = `SELECT d.*, e.uuid AS episode, e.valid_at, e.name AS episode_name, e.source_description
  FROM doc d JOIN episode e ON e.id = d.episode_id`

export const docOf = (row: SqlRow): Doc => ({
  id: count(row.id),
  episodeId: count(row.episode_id),
  episode: text(row.episode),
  group: text(row.group_id),
  kind: text(row.kind) as DocKind,
  ord: count(row.ord),
  text: text(row.text),
  actor: maybeText(row.actor),
  prev: text(row.prev),
  next: text(row.next),
  dt: text(row.dt),
  validAt: count(row.valid_at),
  episodeName: text(row.episode_name),
  sourceDescription: text(row.source_description),
})

export const entityOf = (row: SqlRow): Entity => ({
  id: count(row.id),
  uuid: text(row.uuid),
  group: text(row.group_id),
  name: text(row.name),
  labels: json<string[]>(row.labels, []),
  summary: text(row.summary),
  attributes: json<Attributes>(row.attributes, {}),
  createdAt: count(row.created_at),
})

/** Reads facts with the uuids of everything they point to. */
export const FACTS = `SELECT f.*, s.uuid AS source, t.uuid AS target, n.uuid AS superseding,
  (SELECT json_group_array(e.uuid ORDER BY fe.ord) FROM fact_episode fe JOIN episode e ON e.id = fe.episode_id
    WHERE fe.fact_id = f.id) AS episodes
  FROM fact f JOIN entity s ON s.id = f.src JOIN entity t ON t.id = f.dst LEFT JOIN fact n ON n.id = f.superseded_by`

export const factOf = (row: SqlRow): Fact => ({
  id: count(row.id),
  uuid: text(row.uuid),
  group: text(row.group_id),
  sourceId: count(row.src),
  targetId: count(row.dst),
  source: text(row.source),
  target: text(row.target),
  name: text(row.name),
  fact: text(row.fact),
  validAt: maybeCount(row.valid_at),
  granularity: maybeText(row.valid_gran) as Granularity | undefined,
  invalidAt: maybeCount(row.invalid_at),
  createdAt: count(row.created_at),
  expiredAt: maybeCount(row.expired_at),
  referenceTime: maybeCount(row.reference_time),
  attributes: json<Attributes>(row.attributes, {}),
  origin: text(row.origin) as Origin,
  confidence: Number(row.confidence),
  supersededBy: maybeText(row.superseding),
  episodes: json<string[]>(row.episodes, []),
  docId: maybeCount(row.doc_id),
})

/** Reads jobs with the uuid of their episode. */
export const JOBS = `SELECT j.*, e.uuid AS episode FROM job j LEFT JOIN episode e ON e.id = j.episode_id`

export const jobOf = (row: SqlRow): Job => ({
  id: count(row.id),
  group: text(row.group_id),
  episode: maybeText(row.episode),
  kind: text(row.kind) as JobKind,
  state: text(row.state) as JobState,
  attempts: count(row.attempts),
  nextAt: count(row.next_at),
  leaseOwner: maybeText(row.lease_owner),
  leaseUntil: maybeCount(row.lease_until),
  error: maybeText(row.error),
  payload: json<Attributes>(row.payload, {}),
  createdAt: count(row.created_at),
})

export const sagaOf = (row: SqlRow): Saga => ({
  uuid: text(row.uuid),
  group: text(row.group_id),
  name: text(row.name),
  summary: text(row.summary),
  createdAt: count(row.created_at),
  summarisedTo: count(row.summarised_to),
})
