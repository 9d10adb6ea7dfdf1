import type { Sql } from '../../../stores/postgres.ts'
import { type ExportRow, HEADER, LINE_TYPES, type LineType, lineOf, type RowsOf, SAME_ROWS } from '../export-lines.ts'
import type { Groups } from '../store.ts'
import { inGroups } from './rows.ts'

const ROWS: RowsOf = {
  ...SAME_ROWS,
  entity: `SELECT r.*, ARRAY(SELECT a.name FROM alias a WHERE a.entity_id = r.id AND a.name <> r.name
    ORDER BY a.norm) AS aliases FROM entity r`,
  episode: `SELECT r.*, s.name AS saga, b.uuid AS previous,
    (SELECT coalesce(json_agg(json_build_array(d.kind, d.text, d.index_text, d.actor, d.dt) ORDER BY d.ord), '[]')
      FROM doc d WHERE d.episode_id = r.id) AS docs,
    ARRAY(SELECT n.uuid FROM mention m JOIN entity n ON n.id = m.entity_id
      WHERE m.episode_id = r.id ORDER BY n.id) AS mentions
    FROM episode r LEFT JOIN saga s ON s.id = r.saga_id LEFT JOIN episode b ON b.id = r.prev_id`,
  fact: `SELECT r.*, s.uuid AS source, t.uuid AS target, n.uuid AS superseding,
    (SELECT coalesce(json_agg(json_build_array(e.uuid, d.ord) ORDER BY fe.ord), '[]') FROM fact_episode fe
      JOIN episode e ON e.id = fe.episode_id LEFT JOIN doc d ON d.id = fe.doc_id WHERE fe.fact_id = r.id) AS told
    FROM fact r JOIN entity s ON s.id = r.src JOIN entity t ON t.id = r.dst LEFT JOIN fact n ON n.id = r.superseded_by`,
  community: `SELECT r.*, ARRAY(SELECT n.uuid FROM community_member m
    JOIN entity n ON n.id = m.entity_id WHERE m.community_id = r.id ORDER BY n.id) AS members FROM community r`,
}

const BATCH = 200 // rows on the way at once

const batchesOf = async function* (db: Sql, type: LineType, groups: Groups): AsyncGenerator<string[]> {
  const scope = inGroups('r.group_id', groups)
  const sql = `${ROWS[type]} WHERE ${scope.sql} AND r.id > ? ORDER BY r.id LIMIT ${BATCH}`
  for (let after = 0; ; ) {
    const rows = await db.all<ExportRow>(sql, ...scope.values, after)
    yield rows.map(row => lineOf(type, row))
    if (rows.length < BATCH) return
    after = Number(rows.at(-1)?.id ?? after)
  }
}

/** Everything as lines of JSON, a batch at a time; equal stores give equal lines, whichever driver they have. */
export const exportBatches = async function* (db: Sql, groups: Groups): AsyncGenerator<string[]> {
  yield [JSON.stringify(HEADER)]
  for (const type of LINE_TYPES) yield* batchesOf(db, type, groups)
}
