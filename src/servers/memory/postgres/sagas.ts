import { newUuid } from '../ids.ts'
import type { NewEpisode, Saga } from '../model.ts'
import { sagaOf } from '../sqlite/rows.ts'
import { StoreError } from '../store.ts'
import type { Context } from './context.ts'
import { idIn } from './rows.ts'

const findOrMake = async ({ db, now }: Context, group: string, name: string): Promise<number> => {
  const known = await db.get<{ id: number }>('SELECT id FROM saga WHERE group_id = ? AND name = ?', group, name)
  if (known) return known.id
  const sql = 'INSERT INTO saga (uuid, group_id, name, created_at) VALUES (?, ?, ?, ?) RETURNING id'
  return idIn(await db.get<{ id: number }>(sql, newUuid(now()), group, name, now()))
}

const previousIn = async ({ db }: Context, saga: number, episode: NewEpisode): Promise<number | null> => {
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

/** The saga an episode belongs to, made when it is new, and the episode before it; nothing without one. */
export const placeInSaga = async (
  context: Context,
  episode: NewEpisode,
): Promise<readonly [number | null, number | null]> => {
  if (episode.saga === undefined) return [null, null]
  const saga = await findOrMake(context, episode.group, episode.saga)
  return [saga, await previousIn(context, saga, episode)]
}

/** Keeps a saga's summary and how far it reaches. */
export const summarise = async (
  { db }: Context,
  group: string,
  name: string,
  summary: string,
  to: number,
): Promise<Saga> => {
  const sql = 'UPDATE saga SET summary = ?, summarised_to = ? WHERE group_id = ? AND name = ? RETURNING *'
  const row = await db.get(sql, summary, to, group, name)
  if (!row) throw new StoreError('missing', `There is no saga "${name}" in group ${group}.`)
  return sagaOf(row)
}
