import { newUuid } from '../ids.ts'
import type { NewEpisode, Saga } from '../model.ts'
import { StoreError } from '../store.ts'
import type { Context } from './context.ts'
import { sagaOf } from './rows.ts'

const findOrMake = ({ db, now }: Context, group: string, name: string): number => {
  const known = db.get<{ id: number }>('SELECT id FROM saga WHERE group_id = ? AND name = ?', group, name)
  if (known) return known.id
  return db.run(
    'INSERT INTO saga (uuid, group_id, name, created_at) VALUES (?, ?, ?, ?)',
    newUuid(now()),
    group,
    name,
    now(),
  ).id
}

const previousIn = ({ db }: Context, saga: number, episode: NewEpisode): number | null => {
  const { sagaPrevious, uuid, group } = episode
  if (sagaPrevious === undefined)
    return (
      db.get<{ id: number }>(
        'SELECT id FROM episode WHERE saga_id = ? AND uuid IS NOT ? ORDER BY id DESC LIMIT 1',
        saga,
        uuid ?? null,
      )?.id ?? null
    )
  const row = db.get<{ id: number }>('SELECT id FROM episode WHERE uuid = ? AND group_id = ?', sagaPrevious, group)
  if (!row || sagaPrevious === uuid)
    throw new StoreError('invalid', `There is no episode ${sagaPrevious} in group ${group} that could come before it.`)
  return row.id
}

/** The saga an episode belongs to, made when it is new, and the episode before it; nothing without one. */
export const placeInSaga = (context: Context, episode: NewEpisode): readonly [number | null, number | null] => {
  if (episode.saga === undefined) return [null, null]
  const saga = findOrMake(context, episode.group, episode.saga)
  return [saga, previousIn(context, saga, episode)]
}

/** Keeps a saga's summary and how far it reaches. */
export const summarise = ({ db }: Context, group: string, name: string, summary: string, to: number): Saga => {
  const changed = db.run(
    'UPDATE saga SET summary = ?, summarised_to = ? WHERE group_id = ? AND name = ?',
    summary,
    to,
    group,
    name,
  )
  const row = db.get('SELECT * FROM saga WHERE group_id = ? AND name = ?', group, name)
  if (changed.changes === 0 || !row) throw new StoreError('missing', `There is no saga "${name}" in group ${group}.`)
  return sagaOf(row)
}
