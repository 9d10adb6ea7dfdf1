import type { Sql } from '../../../stores/postgres.ts'
import type { Entity, Instant } from '../model.ts'
import type { By } from '../store.ts'
import { createTally, type Tally } from './tally.ts'

/** What every part of the store works with, within one transaction. */
export interface Context {
  readonly db: Sql
  readonly tenant: string
  readonly now: () => Instant
  /** What this transaction does to the counts of the indexes. */
  readonly tally: Tally
  /** Which entity a name means, as far as this transaction has asked; nobody else writes in a group we hold. */
  readonly names: Map<string, number | undefined>
  /** What is known of entities, as far as this transaction has read it. */
  readonly entities: Map<number, Entity>
  readonly held: Set<string>
}

/** The context of a new transaction. */
export const contextOf = (db: Sql, tenant: string, now: () => Instant): Context => ({
  db,
  tenant,
  now,
  tally: createTally(),
  names: new Map(),
  entities: new Map(),
  held: new Set(),
})

/** Waits until nobody else writes in these groups; they are ours until the transaction ends. */
export const holdGroups = async ({ db, held }: Context, groups: readonly string[]): Promise<void> => {
  const wanted = [...new Set(groups)].filter(group => !held.has(group)).toSorted()
  if (wanted.length === 0) return
  // Always in the same order, so that two who want several never wait for each other.
  const hold = () => db.run('SELECT 1 FROM group_lock WHERE group_id = ANY (?) ORDER BY group_id FOR UPDATE', wanted)
  const add = 'INSERT INTO group_lock (group_id) SELECT g FROM unnest(?::text[]) g ORDER BY 1 ON CONFLICT DO NOTHING'
  if ((await hold()) < wanted.length) {
    await db.run(add, wanted)
    await hold()
  }
  for (const group of wanted) held.add(group)
}

/** Notes who did what to which ids, never what they said. */
export const writeAudit = async (
  { db, now }: Context,
  op: string,
  ids: readonly string[],
  by: By = {},
): Promise<void> => {
  const sql = 'INSERT INTO audit (at, actor, op, ids) VALUES (?, ?, ?, ?)'
  await db.run(sql, now(), by.actor ?? null, op, JSON.stringify(ids))
}
