import { newUuid } from '../ids.ts'
import { namingOf } from '../sqlite/forget-targets.ts'
import type { Forget, Groups } from '../store.ts'
import type { Context } from './context.ts'
import { indexEntity } from './entities.ts'
import { inGroups } from './rows.ts'

type Names = (text: string) => boolean

/** What is left of a column whose text may not stay. */
const BLANKS: readonly { readonly table: string; readonly column: string; readonly blank: string | null }[] = [
  { table: 'entity', column: 'attributes', blank: '{}' },
  { table: 'fact', column: 'attributes', blank: '{}' },
  { table: 'episode', column: 'meta', blank: '{}' },
  { table: 'episode', column: 'error', blank: null },
  { table: 'job', column: 'payload', blank: '{}' },
  { table: 'job', column: 'error', blank: null },
  { table: 'saga', column: 'summary', blank: '' },
]

const found = async (
  { db }: Context,
  table: string,
  column: string,
  groups: Groups,
  names: Names,
): Promise<number[]> => {
  const scope = inGroups('group_id', groups)
  const sql = `SELECT id, ${column} AS text FROM ${table} WHERE coalesce(${column}, '') NOT IN ('', '{}') AND ${scope.sql}`
  const rows = await db.all<{ id: number; text: string }>(sql, ...scope.values)
  return rows.filter(({ text }) => names(text)).map(({ id }) => id)
}

/** The episodes of a saga that is called by the subject stay a conversation, under a name that says nothing. */
const dissolve = async ({ db, now }: Context, saga: number): Promise<void> => {
  const row = await db.get<{ group_id: string }>('SELECT group_id FROM saga WHERE id = ?', saga)
  const chain = `${row?.group_id}/${newUuid(now())}`
  await db.run('UPDATE doc SET chain = ? WHERE episode_id IN (SELECT id FROM episode WHERE saga_id = ?)', chain, saga)
  await db.run('UPDATE episode SET chain = ? WHERE saga_id = ?', chain, saga)
  await db.run('DELETE FROM saga WHERE id = ?', saga)
}

/** Takes a forgotten subject's name out of whatever stays: notes on other things, communities, sagas, waiting work. */
export const unname = async (
  context: Context,
  { name, groups }: Extract<Forget, { kind: 'subject' }>,
): Promise<void> => {
  const { db } = context
  const names = namingOf(name)
  for (const { table, column, blank } of BLANKS) {
    const ids = await found(context, table, column, groups, names)
    if (ids.length > 0) await db.run(`UPDATE ${table} SET ${column} = ? WHERE id = ANY (?)`, blank, ids)
  }
  for (const id of await found(context, 'entity', 'summary', groups, names)) {
    await db.run("UPDATE entity SET summary = '' WHERE id = ?", id)
    await indexEntity(context, id)
  }
  for (const id of await found(context, 'saga', 'name', groups, names)) await dissolve(context, id)
  const communities = await found(context, 'community', "name || ' ' || summary", groups, names)
  await db.run('DELETE FROM community WHERE id = ANY (?)', communities)
}
