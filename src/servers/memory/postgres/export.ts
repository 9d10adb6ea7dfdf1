import type { Sql } from '../../../stores/postgres-driver.ts'
import { HEADER } from '../sqlite/export.ts'
import type { Groups } from '../store.ts'
import { inGroups } from './rows.ts'

type Row = Readonly<Record<string, unknown>>

const when = (value: unknown): string | null => (value === null ? null : new Date(Number(value)).toISOString())
const parsed = (value: unknown): unknown => JSON.parse(String(value))

/** One kind of line: which rows, in the order they came to be, and how each is told. The lines are those of every driver. */
interface Kind {
  readonly type: string
  readonly rows: string
  readonly line: (row: Row) => Record<string, unknown>
}

const KINDS: readonly Kind[] = [
  {
    type: 'saga',
    rows: `SELECT r.*, (SELECT e.uuid FROM episode e WHERE e.saga_id = r.id AND e.id <= r.summarised_to
      ORDER BY e.id DESC LIMIT 1) AS reaches FROM saga r`,
    line: row => ({ summary: row.summary, created_at: when(row.created_at), summarised_to: row.reaches }),
  },
  {
    type: 'entity',
    rows: `SELECT r.*, ARRAY(SELECT a.name FROM alias a WHERE a.entity_id = r.id AND a.name <> r.name
      ORDER BY a.norm) AS aliases FROM entity r`,
    line: row => ({
      labels: parsed(row.labels),
      aliases: row.aliases,
      summary: row.summary,
      attributes: parsed(row.attributes),
      created_at: when(row.created_at),
    }),
  },
  {
    type: 'episode',
    rows: `SELECT r.*, s.name AS saga, b.uuid AS previous,
      (SELECT coalesce(json_agg(json_build_array(d.kind, d.text, d.index_text, d.actor, d.dt) ORDER BY d.ord), '[]')
        FROM doc d WHERE d.episode_id = r.id) AS docs,
      ARRAY(SELECT n.uuid FROM mention m JOIN entity n ON n.id = m.entity_id
        WHERE m.episode_id = r.id ORDER BY n.id) AS mentions
      FROM episode r LEFT JOIN saga s ON s.id = r.saga_id LEFT JOIN episode b ON b.id = r.prev_id`,
    line: row => ({
      content: row.content,
      source: row.source,
      source_description: row.source_description,
      actor: row.actor,
      created_at: when(row.created_at),
      valid_at: when(row.valid_at),
      saga: row.saga,
      previous: row.previous,
      chain: row.chain === null ? null : String(row.chain).slice(String(row.group_id).length + 1),
      meta: parsed(row.meta),
      state: row.state,
      error: row.error,
      docs: row.docs,
      mentions: row.mentions,
    }),
  },
  {
    type: 'fact',
    rows: `SELECT r.*, s.uuid AS source, t.uuid AS target, n.uuid AS superseding,
      (SELECT coalesce(json_agg(json_build_array(e.uuid, d.ord) ORDER BY fe.ord), '[]') FROM fact_episode fe
        JOIN episode e ON e.id = fe.episode_id LEFT JOIN doc d ON d.id = fe.doc_id WHERE fe.fact_id = r.id) AS told
      FROM fact r JOIN entity s ON s.id = r.src JOIN entity t ON t.id = r.dst LEFT JOIN fact n ON n.id = r.superseded_by`,
    line: row => ({
      source: row.source,
      target: row.target,
      fact: row.fact,
      valid_at: when(row.valid_at),
      granularity: row.valid_gran,
      invalid_at: when(row.invalid_at),
      created_at: when(row.created_at),
      expired_at: when(row.expired_at),
      reference_time: when(row.reference_time),
      attributes: parsed(row.attributes),
      origin: row.origin,
      confidence: row.confidence,
      superseded_by: row.superseding,
      told: row.told,
    }),
  },
  {
    type: 'community',
    rows: `SELECT r.*, ARRAY(SELECT n.uuid FROM community_member m
      JOIN entity n ON n.id = m.entity_id WHERE m.community_id = r.id ORDER BY n.id) AS members FROM community r`,
    line: row => ({ summary: row.summary, created_at: when(row.created_at), members: row.members }),
  },
  {
    type: 'job',
    rows: `SELECT r.*, r.kind AS name, NULL AS uuid, e.uuid AS episode FROM job r
      LEFT JOIN episode e ON e.id = r.episode_id`,
    // Whoever holds a job here does not hold it where it is imported.
    line: row => ({
      episode: row.episode,
      state: row.state === 'failed' ? 'failed' : 'waiting',
      attempts: row.attempts,
      next_at: when(row.next_at),
      error: row.error,
      payload: parsed(row.payload),
      created_at: when(row.created_at),
    }),
  },
]

const BATCH = 200 // rows on the way at once

const lineOf = ({ type, line }: Kind, row: Row): string => {
  const { uuid, group_id: group, name } = row
  return JSON.stringify({ type, ...(uuid !== null && { uuid }), group, name, ...line(row) })
}

const batchesOf = async function* (db: Sql, kind: Kind, groups: Groups): AsyncGenerator<string[]> {
  const scope = inGroups('r.group_id', groups)
  const sql = `${kind.rows} WHERE ${scope.sql} AND r.id > ? ORDER BY r.id LIMIT ${BATCH}`
  for (let after = 0; ; ) {
    const rows = await db.all<Row>(sql, ...scope.values, after)
    yield rows.map(row => lineOf(kind, row))
    if (rows.length < BATCH) return
    after = Number(rows.at(-1)?.id ?? after)
  }
}

/** Everything as lines of JSON, a batch at a time; equal stores give equal lines, whichever driver they have. */
export const exportBatches = async function* (db: Sql, groups: Groups): AsyncGenerator<string[]> {
  yield [JSON.stringify(HEADER)]
  for (const kind of KINDS) yield* batchesOf(db, kind, groups)
}
