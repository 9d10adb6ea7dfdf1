import type { Statement } from '../import-statements.ts'
import type { Context } from './context.ts'

/** What earlier lines became here: rows by the uuids they had there. */
export interface Session {
  readonly context: Context
  readonly entities: Map<string, number>
  readonly episodes: Map<string, number>
}

/** The row of a uuid, if it is there. */
export const idOf = ({ context: { db } }: Session, table: string, uuid: string): number | undefined =>
  db.get<{ id: number }>(`SELECT id FROM ${table} WHERE uuid = ?`, uuid)?.id

/** Does one statement; `id` is that of the row it inserted, if it did. */
export const perform = (
  { db }: Context,
  { sql, values }: Statement,
): { readonly changes: number; readonly id: number } => db.run(sql, ...values)
