import { type Dialect, perDialect } from '../dialect.ts'
import type { Sql } from '../sql.ts'
import { stateTables } from './state-schema.ts'
import type { RecordKind } from './state-store.ts'

/** A row of the table of records. `home` is empty if no replica holds it. */
export interface RecordRow {
  readonly kind: RecordKind
  readonly id: string // a hash of the kind and the id
  readonly home: string
  readonly epoch: number
  readonly expires: number
  readonly body: Uint8Array // sealed
}

/** Which row a statement changes, if it is still that of this home and epoch. */
export type RecordFence = Pick<RecordRow, 'id' | 'home' | 'epoch'>

const statement = (build: (tables: ReturnType<typeof stateTables>, dialect: Dialect) => string) =>
  perDialect(dialect => build(stateTables({ dialect }), dialect))

const COLUMNS = 'kind, id, home, epoch, expires, body'

const INSERT = statement(
  ({ record }) => `INSERT INTO ${record} (${COLUMNS}) VALUES (?, ?, ?, 1, ?, ?) ON CONFLICT (id) DO NOTHING`,
)
const INSERT_OR_REPLACE = statement(
  ({ record }) => `INSERT INTO ${record} (${COLUMNS}) VALUES (?, ?, ?, 1, ?, ?)
ON CONFLICT (id) DO UPDATE SET home = excluded.home, epoch = ${record}.epoch + 1, expires = excluded.expires, body = excluded.body
WHERE ${record}.expires <= ? RETURNING epoch`,
)
// Only while its home is a member: after a missed lease, another one may have taken and removed the record.
const RESTORE = statement(
  ({ record, member }) => `INSERT INTO ${record} (${COLUMNS})
SELECT ?1, ?2, ?3, ?4, ?5, ?6 WHERE EXISTS (SELECT 1 FROM ${member} WHERE replica = ?3)
ON CONFLICT (id) DO UPDATE SET expires = excluded.expires, body = excluded.body
WHERE ${record}.epoch = excluded.epoch AND ${record}.home = excluded.home`,
)
const FIND = statement(({ record }) => `SELECT ${COLUMNS} FROM ${record} WHERE id = ? AND expires > ?`)
const LIST = statement(({ record }) => `SELECT ${COLUMNS} FROM ${record} WHERE kind = ? AND expires > ? LIMIT ?`)
const FENCE = 'WHERE id = ? AND home = ? AND epoch = ?'
const UPDATE = statement(({ record }) => `UPDATE ${record} SET body = ?, expires = ? ${FENCE}`)
const CLAIM = statement(
  ({ record, member }) => `UPDATE ${record} SET home = ?, epoch = epoch + 1 ${FENCE}
AND NOT EXISTS (SELECT 1 FROM ${member} WHERE replica = ${record}.home)`,
)
// Without the epoch: it cannot fail because another replica takes the record at the same moment.
const TAKE_HOMELESS = statement(
  ({ record }) =>
    `UPDATE ${record} SET epoch = epoch + 1 WHERE id = ? AND home = '' AND expires > ? RETURNING ${COLUMNS}`,
)
const DELETE = statement(({ record }) => `DELETE FROM ${record} ${FENCE}`)
const EXPIRED = statement(
  ({ record, member }) => `SELECT ${COLUMNS} FROM ${record} WHERE kind = ?1 AND expires <= ?2
AND (home = ?3 OR NOT EXISTS (SELECT 1 FROM ${member} WHERE replica = ${record}.home)) ORDER BY expires LIMIT ?4`,
)
// Steps from home to home in the index: almost all records have a live one, and are not looked at.
const ORPHANED = statement(
  ({ record, member }) => `WITH RECURSIVE homes (home) AS (
SELECT min(home) FROM ${record} WHERE kind = ?1
UNION ALL SELECT (SELECT min(r.home) FROM ${record} AS r WHERE r.kind = ?1 AND r.home > homes.home) FROM homes WHERE home IS NOT NULL
) SELECT ${COLUMNS} FROM ${record} WHERE kind = ?1 AND expires > ?2
AND home IN (SELECT home FROM homes WHERE home IS NOT NULL AND home NOT IN (SELECT replica FROM ${member})) LIMIT ?3`,
)
const RELEASE = statement(({ record }) => `UPDATE ${record} SET home = '' WHERE home = ?`)
const OWNED = statement(
  ({ record }, dialect) => `SELECT id, epoch FROM ${record} WHERE ${dialect.inList('id')} AND home = ?`,
)

const fenceOf = ({ id, home, epoch }: RecordFence) => [id, home, epoch] as const

/** Returns the epoch of the new record; undefined if the id is in use. An expired record is replaced. */
export const insertRecord = async (
  sql: Sql,
  row: Omit<RecordRow, 'epoch'>,
  now: number,
): Promise<number | undefined> => {
  const { kind, id, home, expires, body } = row
  // Almost every id is new, and this costs SQLite less than a statement that returns a row.
  if ((await sql.run(INSERT(sql), kind, id, home, expires, body)) > 0) return 1
  const stored = await sql.get<{ epoch: number }>(INSERT_OR_REPLACE(sql), kind, id, home, expires, body, now)
  if (stored && stored.epoch > 1) await deleteContents(sql, id)
  return stored?.epoch
}

/** Writes a record that is missing or of the same home and epoch; false if it is neither. */
export const restoreRecord = async (sql: Sql, row: RecordRow): Promise<boolean> => {
  const { kind, id, home, epoch, expires, body } = row
  return (await sql.run(RESTORE(sql), kind, id, home, epoch, expires, body)) > 0
}

export const findRecord = (sql: Sql, id: string, now: number): Promise<RecordRow | undefined> =>
  sql.get<RecordRow>(FIND(sql), id, now)

/** Records of a kind that have not expired. */
export const listRecords = (sql: Sql, kind: RecordKind, now: number, limit: number): Promise<RecordRow[]> =>
  sql.all<RecordRow>(LIST(sql), kind, now, limit)

export const updateRecord = async (sql: Sql, row: RecordRow): Promise<boolean> =>
  (await sql.run(UPDATE(sql), row.body, row.expires, ...fenceOf(row))) > 0

/** Makes `home` the home of a record whose former one is gone. Returns the new epoch; undefined if it has changed. */
export const claimRecord = async (sql: Sql, row: RecordFence, home: string): Promise<number | undefined> =>
  (await sql.run(CLAIM(sql), home, ...fenceOf(row))) > 0 ? row.epoch + 1 : undefined

/** Takes a record that never has a home, with its new epoch. */
export const takeHomeless = (sql: Sql, id: string, now: number): Promise<RecordRow | undefined> =>
  sql.get<RecordRow>(TAKE_HOMELESS(sql), id, now)

/** Removes a record with its events and messages; false if another replica holds it now. */
export const deleteRecord = async (sql: Sql, fence: RecordFence): Promise<boolean> => {
  const isDeleted = (await sql.run(DELETE(sql), ...fenceOf(fence))) > 0
  if (isDeleted) await deleteContents(sql, fence.id)
  return isDeleted
}

const deleteContents = async (sql: Sql, id: string): Promise<void> => {
  const { event, inbox } = stateTables(sql)
  await sql.run(`DELETE FROM ${event} WHERE id = ?`, id)
  await sql.run(`DELETE FROM ${inbox} WHERE id = ?`, id)
}

/** Records that have expired and have no live home, or the home `self`. */
export const findExpired = (
  sql: Sql,
  kind: RecordKind,
  now: number,
  self: string,
  limit: number,
): Promise<RecordRow[]> => sql.all<RecordRow>(EXPIRED(sql), kind, now, self, limit)

/** Records that have not expired and have no live home. */
export const findOrphaned = (sql: Sql, kind: RecordKind, now: number, limit: number): Promise<RecordRow[]> =>
  sql.all<RecordRow>(ORPHANED(sql), kind, now, limit)

export const releaseRecords = (sql: Sql, home: string): Promise<number> => sql.run(RELEASE(sql), home)

/** The epochs of those of the given records that have this home. */
export const ownedEpochs = async (sql: Sql, home: string, ids: readonly string[]): Promise<Map<string, number>> => {
  const rows = await sql.all<{ id: string; epoch: number }>(OWNED(sql), ids, home)
  return new Map(rows.map(({ id, epoch }) => [id, epoch]))
}
