import type { PostgresValue } from '../../../stores/postgres.ts'
import type { FactFilter, Groups } from '../store.ts'

/** A condition with its values. */
export interface Condition {
  readonly sql: string
  readonly values: readonly PostgresValue[]
}

/** The condition that is always met. */
const ALWAYS: Condition = { sql: 'true', values: [] }

/** The condition that a row is of one of the groups. */
export const inGroups = (column: string, groups: Groups): Condition => {
  if (groups === 'all') return ALWAYS
  if (groups.length === 1) return { sql: `${column} = ?`, values: [groups[0] ?? ''] }
  return { sql: `${column} = ANY (?)`, values: [groups] }
}

const BOUNDS = [
  ['validAfter', 'valid_at >= ?'],
  ['validBefore', 'valid_at <= ?'],
  ['invalidAfter', 'invalid_at >= ?'],
  ['invalidBefore', 'invalid_at <= ?'],
] as const

/** The condition that a fact passes a filter. */
export const passing = (alias: string, filter: FactFilter = {}): Condition => {
  const bounds = BOUNDS.flatMap(([key, sql]) => {
    const at = filter[key]
    return at === undefined ? [] : [{ sql: `${alias}.${sql}`, value: at as PostgresValue }]
  })
  const names = filter.names?.length ? [{ sql: `${alias}.name = ANY (?)`, value: filter.names as PostgresValue }] : []
  const all = [...bounds, ...names]
  return all.length === 0 ? ALWAYS : { sql: all.map(one => one.sql).join(' AND '), values: all.map(one => one.value) }
}

/** Reads episodes with the names of what they belong to. */
export const EPISODES = `SELECT e.*, saga.name AS saga, before.uuid AS previous FROM episode e
  LEFT JOIN saga ON saga.id = e.saga_id LEFT JOIN episode before ON before.id = e.prev_id`

/** Reads passages with what is known of their episode. */
export const DOCS = `SELECT d.*, e.uuid AS episode, e.valid_at, e.name AS episode_name, e.source_description
  FROM doc d JOIN episode e ON e.id = d.episode_id`

/** Reads facts with the uuids of everything they point to. */
export const FACTS = `SELECT f.*, s.uuid AS source, t.uuid AS target, n.uuid AS superseding,
  to_json(ARRAY(SELECT e.uuid FROM fact_episode fe JOIN episode e ON e.id = fe.episode_id
    WHERE fe.fact_id = f.id ORDER BY fe.ord))::text AS episodes
  FROM fact f JOIN entity s ON s.id = f.src JOIN entity t ON t.id = f.dst LEFT JOIN fact n ON n.id = f.superseded_by`

/** Reads jobs with the uuid of their episode. */
export const JOBS = `SELECT j.*, e.uuid AS episode FROM job j LEFT JOIN episode e ON e.id = j.episode_id`

/** The id a statement that inserts one row gave it; it ends in RETURNING id. */
export const idIn = (row: { readonly id: number } | undefined): number => {
  if (row === undefined) throw new Error('nothing was inserted')
  return row.id
}
