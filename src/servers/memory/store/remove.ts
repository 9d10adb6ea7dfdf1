import { type By, type Groups, StoreError } from '../store.ts'
import { lockGroups, readLocked, type StoreContext, writeAudit } from './context.ts'
import { removeDocs } from './docs.ts'
import { inGroups, readIds } from './rows.ts'

/** Removes facts; returns the entities they connected. */
export const eraseFacts = async (context: StoreContext, ids: readonly number[]): Promise<readonly number[]> => {
  if (ids.length === 0) return []
  const { db } = context
  await context.index.remove('fact', ids)
  await db.run(`DELETE FROM vec WHERE kind = 'fact' AND ${db.dialect.inList('row_id')}`, ids)
  // The summary of a community may quote them.
  await db.run(
    `UPDATE community SET summary = '' WHERE summary <> '' AND id IN (SELECT s.community_id FROM fact f
      JOIN community_member s ON s.entity_id = f.src
      JOIN community_member t ON t.entity_id = f.dst AND t.community_id = s.community_id WHERE ${db.dialect.inList('f.id')})`,
    ids,
  )
  const sql = `DELETE FROM fact WHERE ${db.dialect.inList('id')} RETURNING src, dst`
  return (await db.all<{ src: number; dst: number }>(sql, ids)).flatMap(({ src, dst }) => [src, dst])
}

const FIRST_LINK = 'WHERE fe.fact_id = fact.id ORDER BY fe.ord LIMIT 1'

/**
 * Removes the links of an episode to its facts. A fact passes to the next episode that states it; one without any is
 * removed. Returns the entities of the removed ones.
 */
export const unlinkFacts = async (context: StoreContext, episode: number): Promise<readonly number[]> => {
  const { db } = context
  const ids = await readIds(db, 'DELETE FROM fact_episode WHERE episode_id = ? RETURNING fact_id AS id', episode)
  if (ids.length === 0) return []
  const kept = await readIds(
    db,
    `UPDATE fact SET doc_id = (SELECT fe.doc_id FROM fact_episode fe ${FIRST_LINK}), reference_time =
        (SELECT e.valid_at FROM fact_episode fe JOIN episode e ON e.id = fe.episode_id ${FIRST_LINK})
      WHERE ${db.dialect.inList('id')} AND EXISTS (SELECT 1 FROM fact_episode fe WHERE fe.fact_id = fact.id) RETURNING id`,
    ids,
  )
  const isKept = new Set(kept)
  return eraseFacts(
    context,
    ids.filter(id => !isKept.has(id)),
  )
}

/** Removes entities, whose facts must be gone. */
export const eraseEntities = async (context: StoreContext, ids: readonly number[]): Promise<void> => {
  if (ids.length === 0) return
  const { db, index, names, entities } = context
  const { inList } = db.dialect
  names.clear()
  entities.clear()
  // A community is named after its members.
  const communities = `SELECT community_id FROM community_member WHERE ${inList('entity_id')}`
  await db.run(`DELETE FROM community WHERE id IN (${communities})`, ids)
  await index.remove('entity', ids)
  await db.run(`DELETE FROM vec WHERE kind = 'entity' AND ${inList('row_id')}`, ids)
  await db.run(`DELETE FROM entity WHERE ${inList('id')}`, ids)
}

/** Removes those of the entities that no episode mentions and no fact connects any more. */
export const dropOrphans = async (context: StoreContext, ids: readonly number[]): Promise<void> => {
  if (ids.length === 0) return
  const sql = `SELECT id FROM entity WHERE ${context.db.dialect.inList('id')}
    AND NOT EXISTS (SELECT 1 FROM mention WHERE entity_id = entity.id)
    AND NOT EXISTS (SELECT 1 FROM fact WHERE src = entity.id) AND NOT EXISTS (SELECT 1 FROM fact WHERE dst = entity.id)`
  await eraseEntities(context, await readIds(context.db, sql, [...new Set(ids)]))
}

/** Clears the summary of an episode's saga, because it quotes the episode. */
export const unsummariseSaga = async ({ db }: StoreContext, episode: number): Promise<void> => {
  const saga = '(SELECT saga_id FROM episode WHERE id = ?)'
  await db.run(`UPDATE saga SET summary = '', summarised_to = 0 WHERE id = ${saga}`, episode)
}

const sagaIn = (payload: string): unknown => (JSON.parse(payload) as { readonly saga?: unknown }).saga

/** Removes a saga that has no episodes left, and the jobs that name it. */
const dropSaga = async ({ db }: StoreContext, saga: number | null): Promise<void> => {
  if (saga === null) return
  const gone = await db.get<{ group_id: string; name: string }>(
    `DELETE FROM saga WHERE id = ? AND NOT EXISTS (SELECT 1 FROM episode WHERE saga_id = saga.id)
      RETURNING group_id, name`,
    saga,
  )
  if (!gone) return
  const jobs = "SELECT id, payload FROM job WHERE kind = 'summarise' AND group_id = ?"
  for (const { id, payload } of await db.all<{ id: number; payload: string }>(jobs, gone.group_id))
    if (sagaIn(payload) === gone.name) await db.run('DELETE FROM job WHERE id = ?', id)
}

/** Removes an episode with everything that only it states. */
export const eraseEpisode = async (context: StoreContext, id: number): Promise<void> => {
  const { db } = context
  const sql = 'SELECT prev_id, saga_id FROM episode WHERE id = ?'
  const row = await db.get<{ prev_id: number | null; saga_id: number | null }>(sql, id)
  const mentioned = await readIds(db, 'SELECT entity_id AS id FROM mention WHERE episode_id = ?', id)
  const unlinked = await unlinkFacts(context, id)
  await removeDocs(context, id)
  await unsummariseSaga(context, id)
  await db.run('UPDATE episode SET prev_id = ? WHERE prev_id = ?', row?.prev_id ?? null, id)
  await db.run('DELETE FROM episode WHERE id = ?', id)
  await dropSaga(context, row?.saga_id ?? null)
  await dropOrphans(context, [...unlinked, ...mentioned])
}

const readLockedRow = async (context: StoreContext, table: 'episode' | 'fact', uuid: string) => {
  const sql = `SELECT id, group_id AS "group" FROM ${table} WHERE uuid = ?`
  const row = await readLocked<{ id: number; group: string }>(context, sql, uuid)
  if (!row) throw new StoreError('missing', `There is no ${table} ${uuid}.`)
  return row
}

/** Deletes one episode. */
export const deleteEpisode = async (
  context: StoreContext,
  uuid: string,
  by?: By,
): Promise<{ readonly group: string }> => {
  const row = await readLockedRow(context, 'episode', uuid)
  await eraseEpisode(context, row.id)
  await writeAudit(context, 'delete episode', [uuid], by)
  return { group: row.group }
}

/** Deletes one fact, and the entities that only it connected. */
export const deleteFact = async (context: StoreContext, uuid: string, by?: By): Promise<{ readonly group: string }> => {
  const row = await readLockedRow(context, 'fact', uuid)
  await dropOrphans(context, await eraseFacts(context, [row.id]))
  await writeAudit(context, 'delete fact', [uuid], by)
  return { group: row.group }
}

// In the order in which no row refers to one that is gone.
const TABLES = ['vec', 'job', 'fact', 'community', 'doc', 'episode', 'entity', 'saga'] as const

/** Removes everything of the groups. */
export const eraseGroups = async (context: StoreContext, groups: Groups): Promise<void> => {
  const { db, index, names, entities } = context
  await lockGroups(context, groups)
  const { sql, values } = inGroups(db, 'group_id', groups)
  for (const kind of ['doc', 'fact', 'entity'] as const)
    await index.remove(kind, await readIds(db, `SELECT id FROM ${kind} WHERE ${sql}`, ...values))
  for (const table of TABLES) await db.run(`DELETE FROM ${table} WHERE ${sql}`, ...values)
  names.clear()
  entities.clear()
}

/** Clears the groups. */
export const clearGroups = async (context: StoreContext, groups: Groups, by?: By): Promise<void> => {
  await eraseGroups(context, groups)
  await writeAudit(context, 'clear', groups === 'all' ? ['all'] : groups, by)
}
