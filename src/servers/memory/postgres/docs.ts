import type { NewDoc } from '../model.ts'
import type { Context } from './context.ts'
import { index, unindex } from './indexing.ts'

/** A place in a conversation: the episode and the passage in it. */
interface Place {
  readonly episode: number
  readonly ord: number
}

/** What a passage is to its neighbours: its words as the index reads them, with who said them. */
interface Spoken extends Place {
  readonly id: number
  readonly said: string
}

const SPOKEN = `SELECT id, episode_id AS episode, ord, CASE WHEN actor IS NULL THEN coalesce(index_text, text)
  ELSE actor || ': ' || coalesce(index_text, text) END AS said FROM doc`

const said = ({ actor, text, indexText }: NewDoc): string =>
  actor === undefined ? (indexText ?? text) : `${actor}: ${indexText ?? text}`

/** Passages of a conversation before a place in it, the nearest last. */
const before = async ({ db }: Context, chain: string, { episode, ord }: Place, limit: number): Promise<Spoken[]> => {
  const rows = await db.all<Spoken>(
    `${SPOKEN} WHERE chain = ? AND (episode_id, ord) < (?, ?) ORDER BY episode_id DESC, ord DESC LIMIT ?`,
    chain,
    episode,
    ord,
    limit,
  )
  return rows.toReversed()
}

const after = ({ db }: Context, chain: string, { episode, ord }: Place, limit: number): Promise<Spoken[]> =>
  db.all<Spoken>(
    `${SPOKEN} WHERE chain = ? AND (episode_id, ord) > (?, ?) ORDER BY episode_id, ord LIMIT ?`,
    chain,
    episode,
    ord,
    limit,
  )

const join = (lines: readonly string[]): string => lines.join('\n')

interface Stored {
  readonly id: number
  readonly group_id: string
  readonly text: string
  readonly actor: string
  readonly prev: string
  readonly next: string
  readonly dt: string
}

const INDEXED = "id, group_id, coalesce(index_text, text) AS text, coalesce(actor, '') AS actor, prev, next, dt"

const indexDocs = (context: Context, docs: readonly Stored[]): Promise<void> =>
  index(
    context,
    'doc',
    docs.map(({ id, group_id, text, actor, prev, next, dt }) => ({
      id,
      group: group_id,
      texts: [text, actor, prev, next, dt],
    })),
  )

const setContext = async (context: Context, id: number, change: { prev?: string; next?: string }): Promise<void> => {
  await unindex(context, 'doc', [id])
  const rows = await context.db.all<Stored>(
    `UPDATE doc SET prev = coalesce(?::text, prev), next = coalesce(?::text, next) WHERE id = ? RETURNING ${INDEXED}`,
    change.prev ?? null,
    change.next ?? null,
    id,
  )
  await indexDocs(context, rows)
}

const INSERT = `INSERT INTO doc (episode_id, group_id, chain, ord, kind, text, index_text, actor, prev, next, dt)
  SELECT ?1::bigint, ?2::text, ?3::text, r.* FROM unnest(?4::bigint[], ?5::text[], ?6::text[], ?7::text[], ?8::text[], ?9::text[], ?10::text[], ?11::text[])
    AS r (ord, kind, text, index_text, actor, prev, next, dt) ORDER BY r.ord RETURNING ord, ${INDEXED}`

/** Stores and indexes an episode's passages, each with the two before it and the one after, across the conversation. */
export const addDocs = async (
  context: Context,
  episode: { readonly id: number; readonly group: string; readonly chain: string | undefined },
  docs: readonly NewDoc[],
): Promise<number[]> => {
  if (docs.length === 0) return []
  const { id: episodeId, group, chain } = episode
  const [start, end] = [
    { episode: episodeId, ord: 0 },
    { episode: episodeId, ord: docs.length },
  ]
  const earlier = chain === undefined ? [] : await before(context, chain, start, 2)
  const later = chain === undefined ? [] : await after(context, chain, end, 2)
  const line = [...earlier.map(doc => doc.said), ...docs.map(said), ...later.map(doc => doc.said)]
  const rows = await context.db.all<Stored & { ord: number }>(
    INSERT,
    episodeId,
    group,
    chain ?? null,
    docs.map((_, ord) => ord),
    docs.map(({ kind }) => kind),
    docs.map(({ text }) => text),
    docs.map(({ text, indexText }) => (indexText === text ? null : (indexText ?? null))),
    docs.map(({ actor }) => actor ?? null),
    docs.map((_, ord) => join(line.slice(Math.max(0, earlier.length + ord - 2), earlier.length + ord))),
    docs.map((_, ord) => line[earlier.length + ord + 1] ?? ''),
    docs.map(({ dt }) => dt),
  )
  await indexDocs(context, rows)
  const [first, last] = [docs[0], earlier.at(-1)]
  if (first && last) await setContext(context, last.id, { next: said(first) })
  if (chain !== undefined)
    for (const doc of later) await setContext(context, doc.id, { prev: await saidBefore(context, chain, doc) })
  return rows.toSorted((a, b) => a.ord - b.ord).map(({ id }) => id)
}

const saidBefore = async (context: Context, chain: string, place: Place): Promise<string> =>
  join((await before(context, chain, place, 2)).map(doc => doc.said))

/** Tells the passages around an episode who their neighbours are now. */
const reweave = async (context: Context, chain: string, episode: number): Promise<void> => {
  const [last] = await before(context, chain, { episode, ord: 0 }, 1)
  if (last)
    await setContext(context, last.id, { next: join((await after(context, chain, last, 1)).map(doc => doc.said)) })
  for (const doc of await after(context, chain, { episode, ord: Number.MAX_SAFE_INTEGER }, 2))
    await setContext(context, doc.id, { prev: await saidBefore(context, chain, doc) })
}

/** Removes an episode's passages from the store and the index, and their words from their neighbours. Returns how many. */
export const removeDocs = async (context: Context, episode: number): Promise<number> => {
  const { db } = context
  const docs = await db.all<{ id: number; chain: string | null }>(
    'SELECT id, chain FROM doc WHERE episode_id = ?',
    episode,
  )
  if (docs.length === 0) return 0
  const ids = docs.map(({ id }) => id)
  await unindex(context, 'doc', ids)
  await db.run("DELETE FROM vec WHERE kind = 'doc' AND row_id = ANY (?)", ids)
  await db.run('DELETE FROM doc WHERE id = ANY (?)', ids)
  const chain = docs[0]?.chain
  if (chain != null) await reweave(context, chain, episode)
  return docs.length
}
