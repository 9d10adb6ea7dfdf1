import type { InsertTarget, Sql, SqlRow } from '../../../stores/sql.ts'
import type { Entity, Instant } from '../model.ts'
import type { By, Groups } from '../store.ts'
import type { Engine, TextIndex } from './engine.ts'

/** What every operation of the store works with, within one transaction. */
export interface StoreContext {
  readonly db: Sql
  readonly engine: Engine
  readonly index: TextIndex
  readonly now: () => Instant
  /** Entity ids by group and normalised name, as read so far; valid because the groups are locked. */
  readonly names: Map<string, number | undefined>
  /** Entities by id, as read so far. */
  readonly entities: Map<number, Entity>
  readonly lockedGroups: Set<string>
}

/** The context of a new transaction. */
export const createContext = (db: Sql, engine: Engine, now: () => Instant): StoreContext => ({
  db,
  engine,
  index: engine.createIndex(db),
  now,
  names: new Map(),
  entities: new Map(),
  lockedGroups: new Set(),
})

const GROUP_LOCKS: InsertTarget = { table: 'group_lock', columns: { group_id: 'text' }, ignoresConflicts: true }

/** Waits for other writers of these groups and keeps them out until the transaction ends. */
export const lockGroups = async ({ db, lockedGroups }: StoreContext, groups: Groups): Promise<void> => {
  if (!db.dialect.locksRows) return
  const known = async () =>
    (await db.all<{ group_id: string }>('SELECT group_id FROM group_lock')).map(row => row.group_id)
  const wanted = [...new Set(groups === 'all' ? await known() : groups)].filter(group => !lockedGroups.has(group))
  if (wanted.length === 0) return
  // Always in the same order, so that two transactions never wait for each other.
  wanted.sort()
  const lock = () =>
    db.run(`SELECT 1 FROM group_lock WHERE ${db.dialect.inList('group_id')} ORDER BY group_id FOR UPDATE`, wanted)
  if ((await lock()) < wanted.length) {
    await db.insertAll(
      GROUP_LOCKS,
      wanted.map(group => [group]),
    )
    await lock()
  }
  for (const group of wanted) lockedGroups.add(group)
}

/** Finds a row by uuid, locks its group, and reads it again. */
export const readLocked = async <Row = SqlRow>(
  context: StoreContext,
  sql: string,
  uuid: string,
): Promise<Row | undefined> => {
  const found = await context.db.get(sql, uuid)
  if (found && context.db.dialect.locksRows) {
    await lockGroups(context, [String(found.group)])
    return context.db.get<Row>(sql, uuid)
  }
  return found as Row | undefined
}

/** Records who did what to which ids, never their texts. */
export const writeAudit = async (
  { db, now }: StoreContext,
  op: string,
  ids: readonly string[],
  by: By = {},
): Promise<void> => {
  const sql = 'INSERT INTO audit (at, actor, op, ids) VALUES (?, ?, ?, ?)'
  await db.run(sql, now(), by.actor ?? null, op, JSON.stringify(ids))
}

/** Changes the JSON value of a key; concurrent changes wait for each other. */
export const amend = async (
  { db }: StoreContext,
  key: string,
  change: (known: unknown) => unknown,
): Promise<unknown> => {
  // A row to lock, also if there was none.
  await db.run("INSERT INTO meta (key, value) VALUES (?, '') ON CONFLICT DO NOTHING", key)
  const row = await db.get<{ value: string }>(`SELECT value FROM meta WHERE key = ?${db.dialect.forUpdate}`, key)
  const known: unknown = row?.value ? JSON.parse(row.value) : undefined
  const value = change(known)
  const isKept = value === known || value === undefined
  if (!isKept) await db.run('UPDATE meta SET value = ? WHERE key = ?', JSON.stringify(value), key)
  else if (known === undefined) await db.run('DELETE FROM meta WHERE key = ?', key)
  return isKept ? known : value
}
