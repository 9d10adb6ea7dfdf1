import { type By, type Groups, StoreError } from '../store.ts'
import { type Context, writeAudit } from './context.ts'
import { removeDocs } from './docs.ts'
import { inGroups } from './rows.ts'

/** A fact and the entities it joins. */
export interface Ends {
  readonly id: number
  readonly src: number
  readonly dst: number
}

/** Removes a fact for good; returns the entities it joined. */
export const eraseFact = ({ db }: Context, { id, src, dst }: Ends): readonly number[] => {
  db.run('DELETE FROM fact_fts WHERE rowid = ?', id)
  db.run("DELETE FROM vec WHERE kind = 'fact' AND row_id = ?", id)
  db.run('DELETE FROM fact WHERE id = ?', id)
  // The summary of a community may quote it.
  const joined = 'SELECT community_id FROM community_member WHERE entity_id = ?'
  db.run(`UPDATE community SET summary = '' WHERE id IN (${joined} INTERSECT ${joined})`, src, dst)
  return [src, dst]
}

/** Gives an episode's facts to the next episode that told them; facts that nobody else told go. Returns the entities of those. */
export const unlinkFacts = (context: Context, episode: number): readonly number[] => {
  const { db } = context
  const facts = db.all<Ends>(
    'SELECT f.id, f.src, f.dst FROM fact_episode fe JOIN fact f ON f.id = fe.fact_id WHERE fe.episode_id = ?',
    episode,
  )
  return facts.flatMap(fact => {
    db.run('DELETE FROM fact_episode WHERE fact_id = ? AND episode_id = ?', fact.id, episode)
    const heir = db.get<{ doc_id: number | null; valid_at: number }>(
      `SELECT fe.doc_id, e.valid_at FROM fact_episode fe JOIN episode e ON e.id = fe.episode_id
        WHERE fe.fact_id = ? ORDER BY fe.ord LIMIT 1`,
      fact.id,
    )
    if (!heir) return eraseFact(context, fact)
    db.run('UPDATE fact SET doc_id = ?, reference_time = ? WHERE id = ?', heir.doc_id, heir.valid_at, fact.id)
    return []
  })
}

/** Removes an entity for good; its facts must be gone. */
export const eraseEntity = ({ db }: Context, id: number): void => {
  // A community is called by its members' names.
  db.run('DELETE FROM community WHERE id IN (SELECT community_id FROM community_member WHERE entity_id = ?)', id)
  db.run('DELETE FROM entity_fts WHERE rowid = ?', id)
  db.run("DELETE FROM vec WHERE kind = 'entity' AND row_id = ?", id)
  db.run('DELETE FROM entity WHERE id = ?', id)
}

const ORPHANS = `SELECT id FROM entity WHERE id IN (SELECT value FROM json_each(?))
  AND NOT EXISTS (SELECT 1 FROM mention WHERE entity_id = entity.id)
  AND NOT EXISTS (SELECT 1 FROM fact WHERE src = entity.id) AND NOT EXISTS (SELECT 1 FROM fact WHERE dst = entity.id)`

/** Removes those of the entities that no episode mentions and no fact joins any more. Returns their ids. */
export const dropOrphans = (context: Context, ids: readonly number[]): number[] => {
  if (ids.length === 0) return []
  const orphans = context.db.all<{ id: number }>(ORPHANS, JSON.stringify([...new Set(ids)])).map(row => row.id)
  for (const id of orphans) eraseEntity(context, id)
  return orphans
}

/** The summary of a saga quotes its episodes; when one goes or changes, it has to be written anew. */
export const unsummarise = ({ db }: Context, episode: number): void => {
  db.run(
    "UPDATE saga SET summary = '', summarised_to = 0 WHERE id = (SELECT saga_id FROM episode WHERE id = ?)",
    episode,
  )
}

/** A saga without episodes goes, and so does work that names it. */
const dropSaga = ({ db }: Context, saga: number | null): void => {
  const sql = 'DELETE FROM saga WHERE id = ? AND NOT EXISTS (SELECT 1 FROM episode WHERE saga_id = saga.id)'
  if (saga === null || db.run(sql, saga).changes === 0) return
  const named = "s.group_id = job.group_id AND s.name = json_extract(job.payload, '$.saga')"
  db.run(`DELETE FROM job WHERE kind = 'summarise' AND NOT EXISTS (SELECT 1 FROM saga s WHERE ${named})`)
}

/** Removes an episode with what only it told; the caller holds the transaction. */
export const eraseEpisode = (context: Context, id: number): { readonly docs: number } => {
  const { db } = context
  const row = db.get<{ prev_id: number | null; saga_id: number | null }>(
    'SELECT prev_id, saga_id FROM episode WHERE id = ?',
    id,
  )
  const mentioned = db.all<{ entity_id: number }>('SELECT entity_id FROM mention WHERE episode_id = ?', id)
  const touched = unlinkFacts(context, id)
  const docs = removeDocs(context, id)
  unsummarise(context, id)
  db.run('UPDATE episode SET prev_id = ? WHERE prev_id = ?', row?.prev_id ?? null, id)
  db.run('DELETE FROM episode WHERE id = ?', id)
  dropSaga(context, row?.saga_id ?? null)
  dropOrphans(context, [...touched, ...mentioned.map(mention => mention.entity_id)])
  return { docs }
}

/** Deletes one episode. */
export const deleteEpisode = (context: Context, uuid: string, by?: By): { readonly group: string } => {
  const row = context.db.get<{ id: number; group_id: string }>('SELECT id, group_id FROM episode WHERE uuid = ?', uuid)
  if (!row) throw new StoreError('missing', `There is no episode ${uuid}.`)
  eraseEpisode(context, row.id)
  writeAudit(context, 'delete episode', [uuid], by)
  return { group: row.group_id }
}

/** Deletes one fact, and entities that only it made known. */
export const deleteFact = (context: Context, uuid: string, by?: By): { readonly group: string } => {
  const sql = 'SELECT id, src, dst, group_id FROM fact WHERE uuid = ?'
  const row = context.db.get<Ends & { group_id: string }>(sql, uuid)
  if (!row) throw new StoreError('missing', `There is no fact ${uuid}.`)
  dropOrphans(context, eraseFact(context, row))
  writeAudit(context, 'delete fact', [uuid], by)
  return { group: row.group_id }
}

// In the order in which nothing points to what is gone.
const CLEAR = (mine: string): readonly string[] => [
  `INSERT INTO doc_fts (doc_fts, rowid, text, actor, prev, next, dt)
    SELECT 'delete', i.id, i.text, i.actor, i.prev, i.next, i.dt FROM doc_index i JOIN doc ON doc.id = i.id WHERE doc.${mine}`,
  `DELETE FROM fact_fts WHERE rowid IN (SELECT id FROM fact WHERE ${mine})`,
  `DELETE FROM entity_fts WHERE rowid IN (SELECT id FROM entity WHERE ${mine})`,
  ...['vec', 'job', 'fact', 'community', 'doc', 'episode', 'entity', 'saga'].map(
    table => `DELETE FROM ${table} WHERE ${mine}`,
  ),
]

/** Removes everything of the groups; the caller holds the transaction and writes it down. */
export const eraseGroups = ({ db }: Context, groups: Groups): void => {
  const scope = inGroups('group_id', groups)
  const mine = scope.sql === '1' ? 'group_id IS NOT NULL' : scope.sql
  for (const sql of CLEAR(mine)) db.run(sql, ...scope.values)
}

/** Clears the groups. */
export const clearGroups = (context: Context, groups: Groups, by?: By): void => {
  eraseGroups(context, groups)
  writeAudit(context, 'clear', groups === 'all' ? ['all'] : groups, by)
}
