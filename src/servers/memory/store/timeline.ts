import type { Fact, Instant } from '../model.ts'
import type { Groups } from '../store.ts'
import type { StoreContext } from './context.ts'
import {
  type EpisodeHead,
  episodeHeadOf,
  factOf,
  inGroups,
  passesFilter,
  SELECT_EPISODE_HEADS,
  selectFacts,
} from './rows.ts'

/** A place in a list that is sorted by time, the latest first. */
export interface TimePlace {
  readonly at: Instant
  readonly id: number // a row
}

/** A page of rows by time, the latest first. */
export interface TimeQuery {
  readonly groups: Groups
  readonly limit: number
  readonly asOf?: Instant | undefined // episodes until then, facts that were true then
  readonly after?: TimePlace | undefined // the last row of the page before
}

const isLater = (at: string, id: string): string => `(${at} < ? OR (${at} = ? AND ${id} < ?))`

const placeValues = ({ after }: TimeQuery): readonly number[] => (after ? [after.at, after.at, after.id] : [])

/** Episodes by the time they happened. */
export const readEpisodePage = async ({ db }: StoreContext, query: TimeQuery): Promise<EpisodeHead[]> => {
  const scope = inGroups(db, 'e.group_id', query.groups)
  const conditions = [
    scope.sql,
    ...(query.asOf === undefined ? [] : ['e.valid_at <= ?']),
    ...(query.after ? [isLater('e.valid_at', 'e.id')] : []),
  ]
  const values = [...scope.values, ...(query.asOf === undefined ? [] : [query.asOf]), ...placeValues(query)]
  const sql = `${SELECT_EPISODE_HEADS} WHERE ${conditions.join(' AND ')} ORDER BY e.valid_at DESC, e.id DESC LIMIT ?`
  return (await db.all(sql, ...values, query.limit)).map(episodeHeadOf)
}

/** When a fact became true, or was learnt if that is unknown. */
export const factTime = ({ validAt, createdAt }: Fact): Instant => validAt ?? createdAt

const FACT_TIME = 'coalesce(f.valid_at, f.created_at)'

/** Facts by the time they became true. */
export const readFactPage = async ({ db }: StoreContext, query: TimeQuery): Promise<Fact[]> => {
  const scope = inGroups(db, 'f.group_id', query.groups)
  const wanted = passesFilter(db, 'f', query.asOf === undefined ? {} : { asOf: query.asOf })
  const conditions = [scope.sql, wanted.sql, ...(query.after ? [isLater(FACT_TIME, 'f.id')] : [])]
  const order = `ORDER BY ${FACT_TIME} DESC, f.id DESC`
  // They are chosen first, so that only their episodes are looked up.
  const chosen = `SELECT f.id FROM fact f WHERE ${conditions.join(' AND ')} ${order} LIMIT ?`
  const sql = `${selectFacts(db)} WHERE f.id IN (${chosen}) ${order}`
  return (await db.all(sql, ...scope.values, ...wanted.values, ...placeValues(query), query.limit)).map(factOf)
}
