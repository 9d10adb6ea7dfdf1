import { dot, rowOf } from '../q8.ts'
import type { NearestQuery } from '../sqlite/vectors.ts'
import type { NewVector, Unembedded, VectorKind } from '../store.ts'
import type { Context } from './context.ts'
import { inGroups } from './rows.ts'

/** Keeps embeddings; one of a row that is gone meanwhile is left out. */
export const putVectors = async ({ db }: Context, vectors: readonly NewVector[]): Promise<void> => {
  for (const vector of vectors)
    await db.run(
      `INSERT INTO vec (kind, row_id, model, group_id, dim, scale, q8)
        SELECT ?::text, id, ?::text, group_id, ?::integer, ?::float8, ?::bytea FROM ${vector.kind} WHERE id = ?
        ON CONFLICT (tenant, kind, row_id, model)
        DO UPDATE SET dim = excluded.dim, scale = excluded.scale, q8 = excluded.q8`,
      ...rowOf(vector),
    )
}

interface Row {
  readonly row_id: number
  readonly scale: number
  readonly q8: Uint8Array
}

const BATCH = 4_000 // vectors in memory at once

/** The rows whose embeddings point the same way, by cosine; vectors of another length are of another model and left out. */
export const nearest = async ({ db }: Context, query: NearestQuery): Promise<{ rowId: number; score: number }[]> => {
  const length = Math.hypot(...query.vector) || 1
  const scope = inGroups('group_id', query.groups)
  const sql = `SELECT row_id, scale, q8 FROM vec WHERE kind = ? AND model = ? AND dim = ? AND ${scope.sql} AND row_id > ?
    ORDER BY row_id LIMIT ${BATCH}`
  let best: { rowId: number; score: number }[] = []
  for (let after = 0; ; ) {
    const rows = await db.all<Row>(sql, query.kind, query.model, query.vector.length, ...scope.values, after)
    const found = rows.map(({ row_id, scale, q8 }) => ({
      rowId: row_id,
      score: dot(query.vector, q8, scale) / length,
    }))
    best = [...best, ...found].toSorted((a, b) => b.score - a.score).slice(0, query.limit)
    if (rows.length < BATCH) return best
    after = rows.at(-1)?.row_id ?? after
  }
}

// A rule's fact quotes its passage, whose embedding finds it.
const UNEMBEDDED: Readonly<Record<VectorKind, string>> = {
  doc: `SELECT id, group_id, CASE WHEN actor IS NULL THEN text ELSE actor || ': ' || text END AS text FROM doc r WHERE true`,
  fact: `SELECT id, group_id, fact AS text FROM fact r WHERE NOT (origin = 'rule' AND doc_id IS NOT NULL)`,
  entity: `SELECT id, group_id, trim(name || chr(10) || summary) AS text FROM entity r WHERE true`,
}

/** Rows that have no embedding of this model yet, oldest first. */
export const unembedded = async (
  { db }: Context,
  kind: VectorKind,
  model: string,
  limit: number,
  among?: readonly number[],
): Promise<Unembedded[]> => {
  const named = among === undefined ? '' : 'AND id = ANY (?)'
  const sql = `${UNEMBEDDED[kind]} ${named} AND NOT EXISTS (SELECT 1 FROM vec v WHERE v.kind = ? AND v.row_id = r.id AND v.model = ?)
    ORDER BY id LIMIT ?`
  const rows = await db.all<{ id: number; group_id: string; text: string }>(
    sql,
    ...(among === undefined ? [] : [among]),
    kind,
    model,
    limit,
  )
  return rows.map(({ id, group_id, text }) => ({ rowId: id, group: group_id, text }))
}

/** Drops the embeddings of every other model; returns how many. */
export const dropVectorsExcept = ({ db }: Context, model: string): Promise<number> =>
  db.run('DELETE FROM vec WHERE model <> ?', model)
