import { newUuid } from '../ids.ts'
import type { NewEpisode, Saga } from '../model.ts'
import { type Groups, StoreError } from '../store.ts'
import type { StoreContext } from './context.ts'
import { inGroups, insertRow, SAGA_COLUMNS, sagaOf } from './rows.ts'

/** One saga by its name, or undefined. */
export const findSaga = async ({ db }: StoreContext, group: string, name: string): Promise<Saga | undefined> => {
  const row = await db.get(`SELECT ${SAGA_COLUMNS} FROM saga WHERE group_id = ? AND name = ?`, group, name)
  return row && sagaOf(row)
}

/** Sagas in the order of their creation. */
export const listSagas = async ({ db }: StoreContext, groups: Groups): Promise<Saga[]> => {
  const scope = inGroups(db, 'group_id', groups)
  return (await db.all(`SELECT ${SAGA_COLUMNS} FROM saga WHERE ${scope.sql} ORDER BY id`, ...scope.values)).map(sagaOf)
}

const findOrCreate = async ({ db, now }: StoreContext, group: string, name: string): Promise<number> => {
  const known = await db.get<{ id: number }>('SELECT id FROM saga WHERE group_id = ? AND name = ?', group, name)
  if (known) return known.id
  return insertRow(db, 'saga', { uuid: newUuid(now()), group_id: group, name, created_at: now() })
}

const findPrevious = async ({ db }: StoreContext, saga: number, episode: NewEpisode): Promise<number | null> => {
  const { sagaPrevious, uuid, group } = episode
  if (sagaPrevious === undefined) {
    const sql = 'SELECT id FROM episode WHERE saga_id = ? AND uuid IS DISTINCT FROM ? ORDER BY id DESC LIMIT 1'
    return (await db.get<{ id: number }>(sql, saga, uuid ?? null))?.id ?? null
  }
  const sql = 'SELECT id FROM episode WHERE uuid = ? AND group_id = ?'
  const row = await db.get<{ id: number }>(sql, sagaPrevious, group)
  if (!row || sagaPrevious === uuid)
    throw new StoreError('invalid', `There is no episode ${sagaPrevious} in group ${group} that could come before it.`)
  return row.id
}

/** The ids of an episode's saga, which is created if it is new, and of the previous episode. */
export const placeInSaga = async (
  context: StoreContext,
  episode: NewEpisode,
): Promise<readonly [number | null, number | null]> => {
  if (episode.saga === undefined) return [null, null]
  const saga = await findOrCreate(context, episode.group, episode.saga)
  return [saga, await findPrevious(context, saga, episode)]
}

/** Stores a saga's summary and the last episode it covers. */
export const storeSagaSummary = async (
  { db }: StoreContext,
  group: string,
  name: string,
  summary: string,
  summarisedTo: number,
): Promise<Saga> => {
  const sql = `UPDATE saga SET summary = ?, summarised_to = ? WHERE group_id = ? AND name = ? RETURNING ${SAGA_COLUMNS}`
  const row = await db.get(sql, summary, summarisedTo, group, name)
  if (!row) throw new StoreError('missing', `There is no saga "${name}" in group ${group}.`)
  return sagaOf(row)
}
