import type { Statement } from '../import-statements.ts'
import type { Context } from './context.ts'

/** What earlier lines became here: rows by the uuids they had there. */
export interface Places {
  readonly entities: Map<string, number>
  readonly episodes: Map<string, number>
}

/** The same within a transaction. */
export interface Session extends Places {
  readonly context: Context
}

/** The row of a uuid, if it is there. */
export const idOf = async ({ context: { db } }: Session, table: string, uuid: string): Promise<number | undefined> =>
  (await db.get<{ id: number }>(`SELECT id FROM ${table} WHERE uuid = ?`, uuid))?.id

/** Does one statement. */
export const perform = ({ db }: Context, { sql, values }: Statement): Promise<number> => db.run(sql, ...values)

/** Does one that inserts a row; the id is undefined when it was there. */
export const insert = async ({ db }: Context, { sql, values }: Statement): Promise<number | undefined> =>
  (await db.get<{ id: number }>(`${sql} RETURNING id`, ...values))?.id
