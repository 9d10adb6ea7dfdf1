import type { Sqlite } from '../../../stores/sqlite.ts'
import type { Instant } from '../model.ts'
import type { By } from '../store.ts'

/** What every part of the store works with. */
export interface Context {
  readonly db: Sqlite
  readonly now: () => Instant
}

/** Notes who did what to which ids, never what they said. */
export const writeAudit = ({ db, now }: Context, op: string, ids: readonly string[], by: By = {}): void => {
  db.run('INSERT INTO audit (at, actor, op, ids) VALUES (?, ?, ?, ?)', now(), by.actor ?? null, op, JSON.stringify(ids))
}
