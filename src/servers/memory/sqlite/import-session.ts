import { StoreError } from '../store.ts'
import type { Context } from './context.ts'
import type { Line } from './import-line.ts'

/** What earlier lines became here: rows by the uuids they had there, and what can only be tied up at the end. */
export interface Session {
  readonly context: Context
  readonly entities: Map<string, number>
  readonly episodes: Map<string, number>
  readonly loose: (() => void)[]
}

/** The row of a uuid, if it is there. */
export const idOf = ({ context: { db } }: Session, table: string, uuid: string): number | undefined =>
  db.get<{ id: number }>(`SELECT id FROM ${table} WHERE uuid = ?`, uuid)?.id

/** The entity a line points to, which an earlier line must have. */
export const entityIn = (session: Session, line: Line, uuid: unknown): number => {
  const id = session.entities.get(String(uuid))
  if (id === undefined)
    throw new StoreError('invalid', `Line ${line.number} names the entity ${uuid}, which no line before it has.`)
  return id
}
