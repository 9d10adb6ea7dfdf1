import { randomUUID } from 'node:crypto'
import { open, rename, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setImmediate as yieldTurn } from 'node:timers/promises'
import type { Sql, SqlRow } from '../../../stores/sql.ts'
import { type Groups, StoreError } from '../store.ts'
import { inGroups } from './rows.ts'

/** The first line of every export. */
export const EXPORT_HEADER = { type: 'dragoman-memory', version: 1 } as const

/** The types of lines in the order of an export: a line refers only to lines before it. */
export const LINE_TYPES = ['saga', 'entity', 'episode', 'fact', 'community', 'job'] as const

export type LineType = (typeof LINE_TYPES)[number]

/** Selects the rows `r` of each type of line. */
const selectRows = (type: LineType, { dialect }: Sql): string => {
  const { jsonArrayOf, jsonArray } = dialect
  const selects: Readonly<Record<LineType, string>> = {
    saga: `SELECT r.*, (SELECT e.uuid FROM episode e WHERE e.saga_id = r.id AND e.id <= r.summarised_to
      ORDER BY e.id DESC LIMIT 1) AS last_summarised FROM saga r`,
    entity: `SELECT r.*, (SELECT ${jsonArrayOf('a.name', 'a.norm')} FROM alias a WHERE a.entity_id = r.id
      AND a.name <> r.name) AS aliases FROM entity r`,
    episode: `SELECT r.*, s.name AS saga, b.uuid AS previous,
      (SELECT ${jsonArrayOf(`${jsonArray}(d.kind, d.text, d.index_text, d.actor, d.dt)`, 'd.ord')}
        FROM doc d WHERE d.episode_id = r.id) AS docs,
      (SELECT ${jsonArrayOf('n.uuid', 'n.id')} FROM mention m JOIN entity n ON n.id = m.entity_id
        WHERE m.episode_id = r.id) AS mentions
      FROM episode r LEFT JOIN saga s ON s.id = r.saga_id LEFT JOIN episode b ON b.id = r.prev_id`,
    fact: `SELECT r.*, s.uuid AS source, t.uuid AS target, n.uuid AS superseding,
      (SELECT ${jsonArrayOf(`${jsonArray}(e.uuid, d.ord)`, 'fe.ord')} FROM fact_episode fe
        JOIN episode e ON e.id = fe.episode_id LEFT JOIN doc d ON d.id = fe.doc_id WHERE fe.fact_id = r.id) AS told
      FROM fact r JOIN entity s ON s.id = r.src JOIN entity t ON t.id = r.dst LEFT JOIN fact n ON n.id = r.superseded_by`,
    community: `SELECT r.*, (SELECT ${jsonArrayOf('n.uuid', 'n.id')} FROM community_member m
      JOIN entity n ON n.id = m.entity_id WHERE m.community_id = r.id) AS members FROM community r`,
    job: `SELECT r.*, r.kind AS name, NULL AS uuid, e.uuid AS episode FROM job r
      LEFT JOIN episode e ON e.id = r.episode_id`,
  }
  return selects[type]
}

const dateOf = (value: unknown): string | null => (value === null ? null : new Date(Number(value)).toISOString())
const parsed = (value: unknown): unknown => (typeof value === 'string' ? JSON.parse(value) : value)

const MEMBERS: Readonly<Record<LineType, (row: SqlRow) => Record<string, unknown>>> = {
  saga: row => ({ summary: row.summary, created_at: dateOf(row.created_at), summarised_to: row.last_summarised }),
  entity: row => ({
    labels: parsed(row.labels),
    aliases: parsed(row.aliases),
    summary: row.summary,
    attributes: parsed(row.attributes),
    created_at: dateOf(row.created_at),
  }),
  episode: row => ({
    content: row.content,
    source: row.source,
    source_description: row.source_description,
    actor: row.actor,
    created_at: dateOf(row.created_at),
    valid_at: dateOf(row.valid_at),
    saga: row.saga,
    previous: row.previous,
    chain: row.chain === null ? null : String(row.chain).slice(String(row.group_id).length + 1),
    meta: parsed(row.meta),
    state: row.state,
    error: row.error,
    docs: parsed(row.docs),
    mentions: parsed(row.mentions),
  }),
  fact: row => ({
    source: row.source,
    target: row.target,
    fact: row.fact,
    valid_at: dateOf(row.valid_at),
    granularity: row.valid_gran,
    invalid_at: dateOf(row.invalid_at),
    created_at: dateOf(row.created_at),
    expired_at: dateOf(row.expired_at),
    reference_time: dateOf(row.reference_time),
    attributes: parsed(row.attributes),
    origin: row.origin,
    confidence: row.confidence,
    superseded_by: row.superseding,
    told: parsed(row.told),
  }),
  community: row => ({ summary: row.summary, created_at: dateOf(row.created_at), members: parsed(row.members) }),
  // A lease is not valid where the job is imported.
  job: row => ({
    episode: row.episode,
    state: row.state === 'failed' ? 'failed' : 'waiting',
    attempts: row.attempts,
    next_at: dateOf(row.next_at),
    error: row.error,
    payload: parsed(row.payload),
    created_at: dateOf(row.created_at),
  }),
}

/** A row as a line of JSON; equal rows give equal lines in every engine. */
const lineOf = (type: LineType, row: SqlRow): string => {
  const { uuid, group_id: group, name } = row
  return JSON.stringify({ type, ...(uuid !== null && { uuid }), group, name, ...MEMBERS[type](row) })
}

const BATCH = 100 // rows in memory at once

/** Everything as lines of JSON. `db` is a snapshot, so that the lines are of one moment however long the reading takes. */
export const exportLines = async function* (db: Sql, groups: Groups): AsyncGenerator<string> {
  yield JSON.stringify(EXPORT_HEADER)
  // Pages are read in the order of the ids; the index of the groups would sort all rows for each page.
  const scope = inGroups(db, db.dialect.withoutIndex('r.group_id'), groups)
  for (const type of LINE_TYPES) {
    const sql = `${selectRows(type, db)} WHERE ${scope.sql} AND r.id > ? ORDER BY r.id LIMIT ${BATCH}`
    for (let after = 0, isMore = true; isMore; ) {
      const rows = await db.all(sql, ...scope.values, after)
      for (const row of rows) yield lineOf(type, row)
      after = Number(rows.at(-1)?.id ?? after)
      isMore = rows.length === BATCH
      if (isMore) await yieldTurn()
    }
  }
}

const syncToDisk = async (path: string): Promise<void> => {
  const file = await open(path, 'r')
  try {
    await file.sync()
  } finally {
    await file.close()
  }
}

/** Writes a backup with `write` under a temporary name, then renames it: a backup is complete or not there. */
export const writeBackup = async (
  path: string,
  write: (draft: string) => Promise<void>,
): Promise<{ readonly bytes: number }> => {
  const draft = `${path}.${randomUUID()}.part`
  try {
    await write(draft)
    await syncToDisk(draft)
    const { size } = await stat(draft)
    await rename(draft, path)
    await syncToDisk(dirname(path))
    return { bytes: size }
  } catch (error) {
    if (error instanceof StoreError) throw error // of the database, not of the file
    const reason = error instanceof Error ? error.message : String(error)
    const message = `No backup could be written to ${path}: ${reason}. Name a file in an existing folder.`
    throw new StoreError('invalid', message, { cause: error })
  } finally {
    await rm(draft, { force: true }).catch(() => undefined)
  }
}
