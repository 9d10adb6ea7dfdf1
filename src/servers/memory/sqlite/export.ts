import { setImmediate as breathe } from 'node:timers/promises'
import { openSqlite, type Sqlite, type SqlRow } from '../../../stores/sqlite.ts'
import { HEADER, LINE_TYPES, type LineType, lineOf, type RowsOf, SAME_ROWS } from '../export-lines.ts'
import type { Groups } from '../store.ts'
import { inGroups } from './rows.ts'

const ROWS: RowsOf = {
  ...SAME_ROWS,
  entity: `SELECT r.*, (SELECT json_group_array(a.name ORDER BY a.norm) FROM alias a WHERE a.entity_id = r.id
    AND a.name <> r.name) AS aliases FROM entity r`,
  episode: `SELECT r.*, s.name AS saga, b.uuid AS previous,
    (SELECT json_group_array(json_array(d.kind, d.text, d.index_text, d.actor, d.dt) ORDER BY d.ord)
      FROM doc d WHERE d.episode_id = r.id) AS docs,
    (SELECT json_group_array(n.uuid ORDER BY n.id) FROM mention m JOIN entity n ON n.id = m.entity_id
      WHERE m.episode_id = r.id) AS mentions
    FROM episode r LEFT JOIN saga s ON s.id = r.saga_id LEFT JOIN episode b ON b.id = r.prev_id`,
  fact: `SELECT r.*, s.uuid AS source, t.uuid AS target, n.uuid AS superseding,
    (SELECT json_group_array(json_array(e.uuid, d.ord) ORDER BY fe.ord) FROM fact_episode fe
      JOIN episode e ON e.id = fe.episode_id LEFT JOIN doc d ON d.id = fe.doc_id WHERE fe.fact_id = r.id) AS told
    FROM fact r JOIN entity s ON s.id = r.src JOIN entity t ON t.id = r.dst LEFT JOIN fact n ON n.id = r.superseded_by`,
  community: `SELECT r.*, (SELECT json_group_array(n.uuid ORDER BY n.id) FROM community_member m
    JOIN entity n ON n.id = m.entity_id WHERE m.community_id = r.id) AS members FROM community r`,
}

const LINES_AT_ONCE = 100 // then others get their turn

const linesOf = function* (db: Sqlite, type: LineType, groups: Groups): Generator<string> {
  const scope = inGroups('r.group_id', groups)
  for (const row of db.each<SqlRow>(`${ROWS[type]} WHERE ${scope.sql} ORDER BY r.id`, ...scope.values))
    yield lineOf(type, row)
}

/** Everything as lines of JSON, of one moment however long the reading takes; equal stores give equal lines. */
export const exportLines = async function* (path: string, groups: Groups): AsyncGenerator<string> {
  const db = await openSqlite(path, { readOnly: true })
  db.exec('BEGIN')
  try {
    yield JSON.stringify(HEADER)
    let count = 0
    for (const type of LINE_TYPES)
      for (const line of linesOf(db, type, groups)) {
        if (++count % LINES_AT_ONCE === 0) await breathe()
        yield line
      }
  } finally {
    db.exec('ROLLBACK') // A connection that closes with its view open keeps the log from being emptied.
    db.close()
  }
}
