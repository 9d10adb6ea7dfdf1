import type { Context } from './context.ts'
import { groupScope, indexRow, tenantScope } from './index-row.ts'
import type { IndexKind } from './schema.ts'

/** A row to be indexed: its texts in the order of the index's columns. */
export interface Indexed {
  readonly id: number
  readonly group: string
  readonly texts: readonly string[]
}

/** Puts rows into a full-text index. */
export const index = async (context: Context, kind: IndexKind, rows: readonly Indexed[]): Promise<void> => {
  if (rows.length === 0) return
  const { db, tenant, tally } = context
  const made = rows.map(({ group, texts }) => indexRow(kind, texts, [tenantScope(tenant), groupScope(tenant, group)]))
  for (const row of made) tally.add(kind, row)
  await db.run(
    `INSERT INTO ${kind}_fts (id, tsv, len) SELECT id, tsv::tsvector, len
      FROM unnest(?::bigint[], ?::text[], ?::integer[]) r (id, tsv, len)`,
    rows.map(({ id }) => id),
    made.map(({ tsv }) => tsv),
    made.map(({ len }) => len),
  )
}

/** Takes rows out of a full-text index. */
export const unindex = async ({ db, tally }: Context, kind: IndexKind, ids: readonly number[]): Promise<void> => {
  if (ids.length === 0) return
  const sql = `DELETE FROM ${kind}_fts WHERE id = ANY (?) RETURNING tsv::text AS tsv, len`
  for (const row of await db.all<{ tsv: string; len: number }>(sql, ids)) tally.remove(kind, row)
}
