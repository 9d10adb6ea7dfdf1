import type { SqlValue } from '../../../stores/sqlite.ts'
import { dot, rowOf } from '../q8.ts'
import type { Groups, NewVector, Unembedded, VectorKind } from '../store.ts'
import type { Context } from './context.ts'
import { inGroups } from './rows.ts'

const TABLES: Readonly<Record<VectorKind, string>> = { doc: 'doc', fact: 'fact', entity: 'entity' }

/** Keeps embeddings; one of a row that is gone meanwhile is left out. */
export const putVectors = ({ db }: Context, vectors: readonly NewVector[]): void => {
  for (const vector of vectors)
    db.run(
      `INSERT INTO vec (kind, row_id, model, group_id, dim, scale, q8)
        SELECT ?, id, ?, group_id, ?, ?, ? FROM ${TABLES[vector.kind]} WHERE id = ?
        ON CONFLICT DO UPDATE SET dim = excluded.dim, scale = excluded.scale, q8 = excluded.q8`,
      ...rowOf(vector),
    )
}

/** A question for the nearest rows. */
export interface NearestQuery {
  readonly kind: VectorKind
  readonly model: string
  readonly vector: Float32Array
  readonly groups: Groups
  readonly limit: number
}

/** The rows whose embeddings point the same way, by cosine; vectors of another length are of another model and left out. */
export const nearest = ({ db }: Context, query: NearestQuery): { rowId: number; score: number }[] => {
  const length = Math.hypot(...query.vector) || 1
  const scope = inGroups('group_id', query.groups)
  const rows = db.all<{ row_id: number; scale: number; q8: Uint8Array }>(
    `SELECT row_id, scale, q8 FROM vec WHERE kind = ? AND model = ? AND dim = ? AND ${scope.sql}`,
    query.kind,
    query.model,
    query.vector.length,
    ...scope.values,
  )
  return rows
    .map(({ row_id, scale, q8 }) => ({ rowId: row_id, score: dot(query.vector, q8, scale) / length }))
    .toSorted((a, b) => b.score - a.score)
    .slice(0, query.limit)
}

// A rule's fact quotes its passage, whose embedding finds it.
const UNEMBEDDED: Readonly<Record<VectorKind, string>> = {
  doc: `SELECT id, group_id, CASE WHEN actor IS NULL THEN text ELSE actor || ': ' || text END AS text FROM doc r WHERE 1`,
  fact: `SELECT id, group_id, fact AS text FROM fact r WHERE NOT (origin = 'rule' AND doc_id IS NOT NULL)`,
  entity: `SELECT id, group_id, trim(name || char(10) || summary) AS text FROM entity r WHERE 1`,
}

/** Rows that have no embedding of this model yet, oldest first. */
export const unembedded = (
  { db }: Context,
  kind: VectorKind,
  model: string,
  limit: number,
  among?: readonly number[],
): Unembedded[] => {
  const named = among === undefined ? '' : 'AND id IN (SELECT value FROM json_each(?))'
  const values: SqlValue[] = [...(among === undefined ? [] : [JSON.stringify(among)]), kind, model, limit]
  return db
    .all<{ id: number; group_id: string; text: string }>(
      `${UNEMBEDDED[kind]} ${named} AND NOT EXISTS (SELECT 1 FROM vec v WHERE v.kind = ? AND v.row_id = r.id AND v.model = ?)
        ORDER BY id LIMIT ?`,
      ...values,
    )
    .map(({ id, group_id, text }) => ({ rowId: id, group: group_id, text }))
}

/** Drops the embeddings of every other model; returns how many. */
export const dropVectorsExcept = ({ db }: Context, model: string): number =>
  db.run('DELETE FROM vec WHERE model <> ?', model).changes
