import type { InsertTarget } from '../../../stores/sql.ts'
import type { NewDoc } from '../model.ts'
import type { StoreContext } from './context.ts'
import type { IndexedRow } from './engine.ts'

/** A place in a conversation: the episode and the passage in it. */
interface Position {
  readonly episode: number
  readonly ord: number
}

/** A passage as its neighbours index it: its text with its actor. */
interface Neighbour {
  readonly id: number
  readonly line: string
}

const SELECT_NEIGHBOURS = `SELECT id, CASE WHEN actor IS NULL THEN coalesce(index_text, text)
  ELSE actor || ': ' || coalesce(index_text, text) END AS line FROM doc`

const BEFORE = `${SELECT_NEIGHBOURS} WHERE chain = ? AND (episode_id, ord) < (?, ?)
  ORDER BY episode_id DESC, ord DESC LIMIT ?`
const AFTER = `${SELECT_NEIGHBOURS} WHERE chain = ? AND (episode_id, ord) > (?, ?) ORDER BY episode_id, ord LIMIT ?`

const lineOf = ({ actor, text, indexText }: NewDoc): string =>
  actor === undefined ? (indexText ?? text) : `${actor}: ${indexText ?? text}`

/** Passages of a conversation before a position, the nearest last. */
const readBefore = async ({ db }: StoreContext, chain: string, { episode, ord }: Position, limit: number) => {
  return (await db.all<Neighbour>(BEFORE, chain, episode, ord, limit)).toReversed()
}

const readAfter = (
  { db }: StoreContext,
  chain: string,
  { episode, ord }: Position,
  limit: number,
): Promise<Neighbour[]> => {
  return db.all<Neighbour>(AFTER, chain, episode, ord, limit)
}

const readPosition = async ({ db }: StoreContext, id: number): Promise<Position> =>
  (await db.get<Position>('SELECT episode_id AS episode, ord FROM doc WHERE id = ?', id)) ?? { episode: 0, ord: 0 }

const linesOf = (neighbours: readonly Neighbour[]): string => neighbours.map(({ line }) => line).join('\n')

interface IndexedDoc {
  readonly group: string
  readonly text: string
  readonly actor: string
  readonly prev: string
  readonly next: string
  readonly dt: string
}

const INDEXED_DOC = `SELECT group_id AS "group", coalesce(index_text, text) AS text, coalesce(actor, '') AS actor, prev, next,
  dt FROM doc WHERE id = ?`

const indexedRow = (id: number, { group, text, actor, prev, next, dt }: IndexedDoc): IndexedRow => ({
  id,
  group,
  texts: [text, actor, prev, next, dt],
})

/** Changes the texts of a passage's neighbours, and indexes it again. */
const setNeighbours = async (
  { db, index }: StoreContext,
  id: number,
  change: { readonly prev: string } | { readonly next: string },
): Promise<void> => {
  const stored = await db.get<IndexedDoc>(INDEXED_DOC, id)
  if (!stored) return
  const changed = { ...stored, ...change }
  await index.replace('doc', indexedRow(id, stored), indexedRow(id, changed))
  await db.run('UPDATE doc SET prev = ?, next = ? WHERE id = ?', changed.prev, changed.next, id)
}

const DOCS: InsertTarget = {
  table: 'doc',
  columns: {
    episode_id: 'integer',
    group_id: 'text',
    chain: 'text',
    ord: 'integer',
    kind: 'text',
    text: 'text',
    index_text: 'text',
    actor: 'text',
    prev: 'text',
    next: 'text',
    dt: 'text',
  },
  returnsIds: true,
}

/** Stores and indexes an episode's passages, each with the two before it and the one after it in the conversation. */
export const addDocs = async (
  context: StoreContext,
  episode: { readonly id: number; readonly group: string; readonly chain: string | undefined },
  docs: readonly NewDoc[],
): Promise<number[]> => {
  if (docs.length === 0) return []
  const { id: episodeId, group, chain } = episode
  const earlier = chain === undefined ? [] : await readBefore(context, chain, { episode: episodeId, ord: 0 }, 2)
  const later = chain === undefined ? [] : await readAfter(context, chain, { episode: episodeId, ord: docs.length }, 2)
  const lines = [...earlier.map(doc => doc.line), ...docs.map(lineOf), ...later.map(doc => doc.line)]
  const placed = docs.map((doc, ord) => {
    const at = earlier.length + ord
    return { ...doc, ord, prev: lines.slice(Math.max(0, at - 2), at).join('\n'), next: lines[at + 1] ?? '' }
  })
  const rows = placed.map(({ ord, kind, text, indexText, actor, prev, next, dt }) => {
    const indexed = indexText === undefined || indexText === text ? null : indexText
    return [episodeId, group, chain ?? null, ord, kind, text, indexed, actor ?? null, prev, next, dt]
  })
  const ids = await context.db.insertAll(DOCS, rows)
  const indexed = placed.map(({ text, indexText, actor, prev, next, dt, ord }) =>
    indexedRow(ids[ord] ?? 0, { group, text: indexText ?? text, actor: actor ?? '', prev, next, dt }),
  )
  await context.index.put('doc', indexed)
  const [first, last] = [docs[0], earlier.at(-1)]
  if (first && last) await setNeighbours(context, last.id, { next: lineOf(first) })
  if (chain !== undefined) await updatePrevious(context, chain, later)
  return ids
}

const updatePrevious = async (context: StoreContext, chain: string, docs: readonly Neighbour[]): Promise<void> => {
  for (const { id } of docs) {
    const before = await readBefore(context, chain, await readPosition(context, id), 2)
    await setNeighbours(context, id, { prev: linesOf(before) })
  }
}

/** Removes an episode's passages from the store and the index, and their texts from their neighbours. */
export const removeDocs = async (context: StoreContext, episode: number): Promise<void> => {
  const { db } = context
  const sql = 'SELECT id, chain FROM doc WHERE episode_id = ?'
  const docs = await db.all<{ id: number; chain: string | null }>(sql, episode)
  if (docs.length === 0) return
  const ids = docs.map(({ id }) => id)
  await context.index.remove('doc', ids)
  await db.run(`DELETE FROM vec WHERE kind = 'doc' AND ${db.dialect.inList('row_id')}`, ids)
  await db.run('DELETE FROM doc WHERE episode_id = ?', episode)
  const chain = docs[0]?.chain
  if (chain == null) return
  const [last] = await readBefore(context, chain, { episode, ord: 0 }, 1)
  if (last) {
    const after = await readAfter(context, chain, await readPosition(context, last.id), 1)
    await setNeighbours(context, last.id, { next: linesOf(after) })
  }
  await updatePrevious(context, chain, await readAfter(context, chain, { episode, ord: Number.MAX_SAFE_INTEGER }, 2))
}
