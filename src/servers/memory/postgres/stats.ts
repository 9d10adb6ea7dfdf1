import type { JobState } from '../model.ts'
import type { GroupStats, StoreStats } from '../store.ts'
import type { Context } from './context.ts'
import { MIGRATIONS } from './schema.ts'

const GROUPS = `SELECT g.group_id AS "group",
  (SELECT count(*) FROM episode WHERE group_id = g.group_id) AS episodes,
  (SELECT count(*) FROM entity WHERE group_id = g.group_id) AS entities,
  (SELECT count(*) FROM fact WHERE group_id = g.group_id) AS facts,
  (SELECT count(*) FROM fact WHERE group_id = g.group_id AND expired_at IS NOT NULL) AS expired
  FROM (SELECT group_id FROM episode UNION SELECT group_id FROM entity) g ORDER BY 1`

// The tables hold every tenant's rows, so their size says nothing; these are the bytes of this tenant's texts.
const SIZES = `SELECT coalesce((SELECT sum(pg_column_size(episode.*)) FROM episode), 0)::bigint
  + coalesce((SELECT sum(pg_column_size(doc.*)) FROM doc), 0)::bigint
  + coalesce((SELECT sum(pg_column_size(fact.*)) FROM fact), 0)::bigint AS bytes`

const COUNTS = `SELECT (SELECT count(*) FROM doc) AS docs, (SELECT count(*) FROM saga) AS sagas,
  (SELECT count(*) FROM community) AS communities, (SELECT count(*) FROM vec) AS vectors,
  (SELECT min(valid_at) FROM episode) AS first, (SELECT max(valid_at) FROM episode) AS last`

interface Counts {
  readonly docs: number
  readonly sagas: number
  readonly communities: number
  readonly vectors: number
  readonly first: number | null
  readonly last: number | null
}

/** Counts of everything there is. */
export const readStats = async ({ db }: Context): Promise<StoreStats> => {
  const jobs: Record<JobState, number> = { waiting: 0, leased: 0, failed: 0 }
  const states = 'SELECT state, count(*) AS n FROM job GROUP BY state'
  for (const { state, n } of await db.all<{ state: JobState; n: number }>(states)) jobs[state] = n
  const counts = await db.get<Counts>(COUNTS)
  return {
    driver: 'pg',
    version: MIGRATIONS.length,
    bytes: (await db.get<{ bytes: number }>(SIZES))?.bytes ?? 0,
    groups: await db.all<GroupStats>(GROUPS),
    docs: counts?.docs ?? 0,
    sagas: counts?.sagas ?? 0,
    communities: counts?.communities ?? 0,
    vectors: counts?.vectors ?? 0,
    jobs,
    firstAt: counts?.first ?? undefined,
    lastAt: counts?.last ?? undefined,
  }
}
