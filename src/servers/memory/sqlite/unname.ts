import type { SqlValue } from '../../../stores/sqlite.ts'
import { newUuid } from '../ids.ts'
import type { Forget, Groups } from '../store.ts'
import type { Context } from './context.ts'
import { namingOf } from './forget-targets.ts'
import { inGroups } from './rows.ts'

type Names = (text: string) => boolean

/** What is left of a column whose text may not stay. */
const BLANKS: readonly { readonly table: string; readonly column: string; readonly blank: SqlValue }[] = [
  { table: 'entity', column: 'attributes', blank: '{}' },
  { table: 'fact', column: 'attributes', blank: '{}' },
  { table: 'episode', column: 'meta', blank: '{}' },
  { table: 'episode', column: 'error', blank: null },
  { table: 'job', column: 'payload', blank: '{}' },
  { table: 'job', column: 'error', blank: null },
  { table: 'saga', column: 'summary', blank: '' },
]

const found = ({ db }: Context, table: string, column: string, groups: Groups, names: Names): number[] => {
  const scope = inGroups('group_id', groups)
  const sql = `SELECT id, ${column} AS text FROM ${table} WHERE coalesce(${column}, '') NOT IN ('', '{}') AND ${scope.sql}`
  const rows = db.all<{ id: number; text: string }>(sql, ...scope.values)
  return rows.filter(({ text }) => names(text)).map(({ id }) => id)
}

const blankSummary = ({ db }: Context, id: number): void => {
  db.run("UPDATE entity SET summary = '' WHERE id = ?", id)
  db.run("UPDATE entity_fts SET summary = '' WHERE rowid = ?", id)
}

/** The episodes of a saga that is called by the subject stay a conversation, under a name that says nothing. */
const dissolve = ({ db, now }: Context, saga: number): void => {
  const row = db.get<{ group_id: string }>('SELECT group_id FROM saga WHERE id = ?', saga)
  const chain = `${row?.group_id}/${newUuid(now())}`
  db.run('UPDATE doc SET chain = ? WHERE episode_id IN (SELECT id FROM episode WHERE saga_id = ?)', chain, saga)
  db.run('UPDATE episode SET chain = ? WHERE saga_id = ?', chain, saga)
  db.run('DELETE FROM saga WHERE id = ?', saga)
}

/** Takes a forgotten subject's name out of whatever stays: notes on other things, communities, sagas, waiting work. */
export const unname = (context: Context, { name, groups }: Extract<Forget, { kind: 'subject' }>): void => {
  const names = namingOf(name)
  for (const { table, column, blank } of BLANKS)
    for (const id of found(context, table, column, groups, names))
      context.db.run(`UPDATE ${table} SET ${column} = ? WHERE id = ?`, blank, id)
  for (const id of found(context, 'entity', 'summary', groups, names)) blankSummary(context, id)
  for (const id of found(context, 'saga', 'name', groups, names)) dissolve(context, id)
  for (const id of found(context, 'community', "name || ' ' || summary", groups, names))
    context.db.run('DELETE FROM community WHERE id = ?', id)
}
