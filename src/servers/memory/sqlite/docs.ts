import type { NewDoc } from '../model.ts'
import type { Context } from './context.ts'

/** What a passage is to its neighbours: its words as the index reads them, with who said them. */
interface Spoken {
  readonly id: number
  readonly said: string
}

const SPOKEN = `SELECT id, CASE WHEN actor IS NULL THEN coalesce(index_text, text)
  ELSE actor || ': ' || coalesce(index_text, text) END AS said FROM doc`

const said = ({ actor, text, indexText }: NewDoc): string =>
  actor === undefined ? (indexText ?? text) : `${actor}: ${indexText ?? text}`

const unindex = ({ db }: Context, id: number): void => {
  db.run(
    `INSERT INTO doc_fts (doc_fts, rowid, text, actor, prev, next, dt)
      SELECT 'delete', id, text, actor, prev, next, dt FROM doc_index WHERE id = ?`,
    id,
  )
}

const index = ({ db }: Context, id: number): void => {
  db.run(
    'INSERT INTO doc_fts (rowid, text, actor, prev, next, dt) SELECT id, text, actor, prev, next, dt FROM doc_index WHERE id = ?',
    id,
  )
}

/** Passages of the same conversation before a place in it, the nearest last. */
const before = ({ db }: Context, chain: string | undefined, episode: number, ord: number, limit: number): Spoken[] =>
  db
    .all<Spoken>(
      `${SPOKEN} WHERE ${chain === undefined ? 'episode_id' : 'chain'} = ? AND (episode_id, ord) < (?, ?)
        ORDER BY episode_id DESC, ord DESC LIMIT ?`,
      chain ?? episode,
      episode,
      ord,
      limit,
    )
    .toReversed()

const after = ({ db }: Context, chain: string | undefined, episode: number, ord: number, limit: number): Spoken[] =>
  db.all<Spoken>(
    `${SPOKEN} WHERE ${chain === undefined ? 'episode_id' : 'chain'} = ? AND (episode_id, ord) > (?, ?)
      ORDER BY episode_id, ord LIMIT ?`,
    chain ?? episode,
    episode,
    ord,
    limit,
  )

const join = (lines: readonly string[]): string => lines.join('\n')

const setContext = (context: Context, id: number, prev: string | undefined, next: string | undefined): void => {
  unindex(context, id)
  context.db.run(
    'UPDATE doc SET prev = coalesce(?, prev), next = coalesce(?, next) WHERE id = ?',
    prev ?? null,
    next ?? null,
    id,
  )
  index(context, id)
}

/** Stores and indexes an episode's passages, each with the two before it and the one after, across the conversation. */
export const addDocs = (
  context: Context,
  episode: { readonly id: number; readonly group: string; readonly chain: string | undefined },
  docs: readonly NewDoc[],
): number[] => {
  const { id: episodeId, group, chain } = episode
  const earlier = chain === undefined ? [] : before(context, chain, episodeId, 0, 2)
  const later = chain === undefined ? [] : after(context, chain, episodeId, docs.length, 2)
  const line = [...earlier.map(doc => doc.said), ...docs.map(said), ...later.map(doc => doc.said)]
  const ids = docs.map((doc, ord) => {
    const place = earlier.length + ord
    const { id } = context.db.run(
      `INSERT INTO doc (episode_id, group_id, chain, ord, kind, text, index_text, actor, prev, next, dt)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      episodeId,
      group,
      chain ?? null,
      ord,
      doc.kind,
      doc.text,
      doc.indexText === doc.text ? null : (doc.indexText ?? null),
      doc.actor ?? null,
      join(line.slice(Math.max(0, place - 2), place)),
      line[place + 1] ?? '',
      doc.dt,
    )
    index(context, id)
    return id
  })
  const [first, last] = [docs[0], earlier.at(-1)]
  if (first && last) setContext(context, last.id, undefined, said(first))
  if (chain !== undefined) for (const { id } of later) setContext(context, id, prevOf(context, chain, id), undefined)
  return ids
}

/** Tells the passages around an episode who their neighbours are now. */
const reweave = (context: Context, chain: string, episode: number): void => {
  const last = before(context, chain, episode, 0, 1)[0]
  if (last) setContext(context, last.id, undefined, nextOf(context, chain, last.id))
  for (const doc of after(context, chain, episode, Number.MAX_SAFE_INTEGER, 2))
    setContext(context, doc.id, prevOf(context, chain, doc.id), undefined)
}

const placeOf = ({ db }: Context, id: number): { episode_id: number; ord: number } =>
  db.get<{ episode_id: number; ord: number }>('SELECT episode_id, ord FROM doc WHERE id = ?', id) ?? {
    episode_id: 0,
    ord: 0,
  }

const nextOf = (context: Context, chain: string, id: number): string => {
  const { episode_id, ord } = placeOf(context, id)
  return join(after(context, chain, episode_id, ord, 1).map(doc => doc.said))
}

const prevOf = (context: Context, chain: string, id: number): string => {
  const { episode_id, ord } = placeOf(context, id)
  return join(before(context, chain, episode_id, ord, 2).map(doc => doc.said))
}

/** Removes an episode's passages from the store and the index, and their words from their neighbours. Returns how many. */
export const removeDocs = (context: Context, episode: number): number => {
  const { db } = context
  const chain = db.get<{ chain: string | null }>('SELECT chain FROM doc WHERE episode_id = ?', episode)?.chain
  const mine = 'SELECT id FROM doc WHERE episode_id = ?'
  db.run(
    `INSERT INTO doc_fts (doc_fts, rowid, text, actor, prev, next, dt)
      SELECT 'delete', id, text, actor, prev, next, dt FROM doc_index WHERE id IN (${mine})`,
    episode,
  )
  db.run(`DELETE FROM vec WHERE kind = 'doc' AND row_id IN (${mine})`, episode)
  const { changes } = db.run('DELETE FROM doc WHERE episode_id = ?', episode)
  if (chain != null) reweave(context, chain, episode)
  return changes
}
