import { statSync } from 'node:fs'
import type { JobState } from '../model.ts'
import type { GroupStats, StoreStats } from '../store.ts'
import type { Context } from './context.ts'

const GROUPS = `SELECT g.group_id AS "group",
  (SELECT count(*) FROM episode WHERE group_id = g.group_id) AS episodes,
  (SELECT count(*) FROM entity WHERE group_id = g.group_id) AS entities,
  (SELECT count(*) FROM fact WHERE group_id = g.group_id) AS facts,
  (SELECT count(*) FROM fact WHERE group_id = g.group_id AND expired_at IS NOT NULL) AS expired
  FROM (SELECT group_id FROM episode UNION SELECT group_id FROM entity) g ORDER BY 1`

const countOf = ({ db }: Context, table: string): number =>
  db.get<{ n: number }>(`SELECT count(*) AS n FROM ${table}`)?.n ?? 0

const sizeOf = (path: string): number =>
  ['', '-wal'].reduce((sum, end) => sum + (statSync(`${path}${end}`, { throwIfNoEntry: false })?.size ?? 0), 0)

/** Counts of everything there is. */
export const readStats = (context: Context): StoreStats => {
  const { db } = context
  const jobs: Record<JobState, number> = { waiting: 0, leased: 0, failed: 0 }
  for (const { state, n } of db.all<{ state: JobState; n: number }>(
    'SELECT state, count(*) AS n FROM job GROUP BY state',
  ))
    jobs[state] = n
  const times = db.get<{ first: number | null; last: number | null }>(
    'SELECT min(valid_at) AS first, max(valid_at) AS last FROM episode',
  )
  return {
    driver: db.driver,
    version: Number(Object.values(db.get('PRAGMA user_version') ?? {})[0] ?? 0),
    bytes: sizeOf(db.path),
    groups: db.all<GroupStats>(GROUPS).map(row => ({ ...row })),
    docs: countOf(context, 'doc'),
    sagas: countOf(context, 'saga'),
    communities: countOf(context, 'community'),
    vectors: countOf(context, 'vec'),
    jobs,
    firstAt: times?.first ?? undefined,
    lastAt: times?.last ?? undefined,
  }
}
