import { POSTGRES, perDialect } from '../dialect.ts'
import type { Sql, SqlValue } from '../sql.ts'
import type { JournalSizes } from './held-records.ts'
import { READ_BYTES } from './limits.ts'
import { stateTables } from './state-schema.ts'

/** A row of the table of events, sealed. */
export interface StoredEvents {
  readonly id: string
  readonly stream: string
  readonly seq: number
  readonly revision: number
  readonly last: number
  readonly bytes: number
  readonly data: Uint8Array
}

// Of one statement: fewer round trips in PostgreSQL. SQLite has none, and would look at the values of several rows twice.
const ROWS_PER_INSERT = 32

const insertOf = perDialect(
  dialect => `INSERT INTO ${stateTables({ dialect }).event} (id, stream, seq, revision, last, at, bytes, data) VALUES `,
)
const VALUES = '(?, ?, ?, ?, ?, ?, ?, ?)'
// One text for each number of rows; drivers keep the statements they have prepared. A row may be there already: the
// connection was lost while it was written.
const insertText = (sql: Sql, rows: number): string =>
  `${insertOf(sql)}${Array(rows).fill(VALUES).join(', ')} ON CONFLICT DO NOTHING`

export const insertEvents = async (sql: Sql, events: readonly StoredEvents[]): Promise<void> => {
  const now = Date.now()
  const rows = events.map((row): SqlValue[] => {
    const { id, stream, seq, revision, last, bytes, data } = row
    return [id, stream, seq, revision, last, now, bytes, data]
  })
  if (sql.dialect !== POSTGRES) return sql.runEach(insertText(sql, 1), rows)
  for (let from = 0; from < rows.length; from += ROWS_PER_INSERT) {
    const part = rows.slice(from, from + ROWS_PER_INSERT)
    await sql.run(insertText(sql, part.length), ...part.flat())
  }
}

const DELETE = perDialect(dialect => `DELETE FROM ${stateTables({ dialect }).event} WHERE id = ? AND stream = ?`)

export const deleteStreams = (sql: Sql, streams: readonly (readonly [id: string, stream: string])[]): Promise<void> =>
  sql.runEach(DELETE(sql), streams)

const SOME = perDialect(dialect => {
  const { event } = stateTables({ dialect })
  // The first row may begin before: rows hold several events.
  return `SELECT seq, last, bytes FROM ${event} WHERE id = ?1 AND stream = ?2 AND last > ?3 AND seq >= coalesce(
(SELECT max(seq) FROM ${event} WHERE id = ?1 AND stream = ?2 AND seq <= ?3 AND revision = 0), 0) ORDER BY seq LIMIT ?4`
})
const READ = perDialect(
  dialect =>
    `SELECT seq, revision, data FROM ${stateTables({ dialect }).event} WHERE id = ? AND stream = ? AND seq BETWEEN ? AND ? ORDER BY revision, seq`,
)

/** Rows with the next events after `after`, enough for `limit` and at most about a mebibyte; those that replace others come later. */
export const readEvents = async (
  sql: Sql,
  id: string,
  stream: string,
  after: number,
  limit: number,
): Promise<Pick<StoredEvents, 'seq' | 'revision' | 'data'>[]> => {
  const found = await sql.all<{ seq: number; last: number; bytes: number }>(SOME(sql), id, stream, after, limit)
  const first = found[0]
  if (!first) return []
  let [last, bytes] = [first.last, 0]
  for (const row of found) {
    if (bytes >= READ_BYTES || (bytes > 0 && last - after >= limit)) break
    last = Math.max(last, row.last)
    bytes += row.bytes
  }
  return sql.all(READ(sql), id, stream, first.seq, last)
}

export const readSizes = async (sql: Sql, id: string): Promise<JournalSizes> => {
  const text = `SELECT stream, sum(bytes) AS bytes FROM ${stateTables(sql).event} WHERE id = ? GROUP BY stream`
  const rows = await sql.all<{ stream: string; bytes: number | string }>(text, id)
  const streams = new Map(rows.map(({ stream, bytes }) => [stream, Number(bytes)]))
  return { streams, bytes: [...streams.values()].reduce((sum, bytes) => sum + bytes, 0) }
}

/** Deletes the oldest rows of a stream, at least `excess` bytes; returns how many bytes they had. */
export const trimStream = async (sql: Sql, id: string, stream: string, excess: number): Promise<number> => {
  const { event } = stateTables(sql)
  const rows = await sql.all<{ seq: number; upto: number | string }>(
    `SELECT seq, upto FROM (SELECT seq, bytes, sum(bytes) OVER (ORDER BY seq) AS upto FROM ${event} WHERE id = ?1 AND stream = ?2) AS rows
WHERE upto - bytes < ?3 ORDER BY seq DESC LIMIT 1`,
    id,
    stream,
    excess,
  )
  const last = rows[0]
  if (!last) return 0
  await sql.run(`DELETE FROM ${event} WHERE id = ? AND stream = ? AND seq <= ?`, id, stream, last.seq)
  return Number(last.upto)
}

export const totalBytes = async (sql: Sql): Promise<number> => {
  const row = await sql.get<{ bytes: number | string | null }>(
    `SELECT sum(bytes) AS bytes FROM ${stateTables(sql).event}`,
  )
  return Number(row?.bytes ?? 0)
}

const TRIMMED_ROWS = 1000 // at once, because a process with SQLite serves nothing meanwhile

/** Deletes some of the oldest rows of all streams, at most about `excess` bytes; returns how many bytes they had. */
export const trimOldest = async (sql: Sql, excess: number): Promise<number> => {
  const { event } = stateTables(sql)
  const oldest = `SELECT at, bytes FROM ${event} ORDER BY at, bytes LIMIT ${TRIMMED_ROWS}`
  let [last, bytes] = [0, 0]
  for (const row of await sql.all<{ at: number; bytes: number }>(oldest)) {
    if (bytes >= excess) break
    last = row.at
    bytes += row.bytes
  }
  if (bytes > 0) await sql.run(`DELETE FROM ${event} WHERE at <= ?`, last)
  return bytes
}
