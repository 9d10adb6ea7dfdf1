import { type By, type Groups, StoreError } from '../store.ts'
import { type Context, holdGroups, writeAudit } from './context.ts'
import { removeDocs } from './docs.ts'
import { unindex } from './indexing.ts'
import { inGroups } from './rows.ts'

/** Removes facts for good; returns the entities they joined. */
export const eraseFacts = async (context: Context, ids: readonly number[]): Promise<readonly number[]> => {
  if (ids.length === 0) return []
  const { db } = context
  await unindex(context, 'fact', ids)
  await db.run("DELETE FROM vec WHERE kind = 'fact' AND row_id = ANY (?)", ids)
  // The summary of a community may quote them.
  await db.run(
    `UPDATE community SET summary = '' WHERE summary <> '' AND id IN (SELECT s.community_id FROM fact f
      JOIN community_member s ON s.entity_id = f.src
      JOIN community_member t ON t.entity_id = f.dst AND t.community_id = s.community_id WHERE f.id = ANY (?))`,
    ids,
  )
  const gone = await db.all<{ src: number; dst: number }>('DELETE FROM fact WHERE id = ANY (?) RETURNING src, dst', ids)
  return gone.flatMap(({ src, dst }) => [src, dst])
}

/** Gives an episode's facts to the next episode that told them; facts that nobody else told go. Returns the entities of those. */
export const unlinkFacts = async (context: Context, episode: number): Promise<readonly number[]> => {
  const { db } = context
  const told = 'DELETE FROM fact_episode WHERE episode_id = ? RETURNING fact_id'
  const ids = (await db.all<{ fact_id: number }>(told, episode)).map(row => row.fact_id)
  if (ids.length === 0) return []
  const kept = await db.all<{ id: number }>(
    `UPDATE fact f SET doc_id = heir.doc_id, reference_time = heir.valid_at
      FROM (SELECT DISTINCT ON (fe.fact_id) fe.fact_id, fe.doc_id, e.valid_at FROM fact_episode fe
        JOIN episode e ON e.id = fe.episode_id WHERE fe.fact_id = ANY (?) ORDER BY fe.fact_id, fe.ord) heir
      WHERE f.id = heir.fact_id RETURNING f.id`,
    ids,
  )
  const heirs = new Set(kept.map(({ id }) => id))
  return eraseFacts(
    context,
    ids.filter(id => !heirs.has(id)),
  )
}

/** Removes entities for good; their facts must be gone. */
export const eraseEntities = async (context: Context, ids: readonly number[]): Promise<void> => {
  if (ids.length === 0) return
  context.names.clear()
  context.entities.clear()
  // A community is called by its members' names.
  await context.db.run(
    'DELETE FROM community WHERE id IN (SELECT community_id FROM community_member WHERE entity_id = ANY (?))',
    ids,
  )
  await unindex(context, 'entity', ids)
  await context.db.run("DELETE FROM vec WHERE kind = 'entity' AND row_id = ANY (?)", ids)
  await context.db.run('DELETE FROM entity WHERE id = ANY (?)', ids)
}

const ORPHANS = `SELECT id FROM entity WHERE id = ANY (?)
  AND NOT EXISTS (SELECT 1 FROM mention WHERE entity_id = entity.id)
  AND NOT EXISTS (SELECT 1 FROM fact WHERE src = entity.id) AND NOT EXISTS (SELECT 1 FROM fact WHERE dst = entity.id)`

/** Removes those of the entities that no episode mentions and no fact joins any more. */
export const dropOrphans = async (context: Context, ids: readonly number[]): Promise<void> => {
  if (ids.length === 0) return
  const orphans = await context.db.all<{ id: number }>(ORPHANS, [...new Set(ids)])
  await eraseEntities(
    context,
    orphans.map(({ id }) => id),
  )
}

/** The summary of a saga quotes its episodes; when one goes or changes, it has to be written anew. */
export const unsummarise = async ({ db }: Context, episode: number): Promise<void> => {
  await db.run(
    "UPDATE saga SET summary = '', summarised_to = 0 WHERE id = (SELECT saga_id FROM episode WHERE id = ?)",
    episode,
  )
}

const NO_EPISODE = 'NOT EXISTS (SELECT 1 FROM episode WHERE saga_id = saga.id)'
const SUMMARISING = "SELECT id, payload FROM job WHERE kind = 'summarise' AND group_id = ?"

const sagaIn = (payload: string): unknown => (JSON.parse(payload) as { readonly saga?: unknown }).saga

/** A saga without episodes goes, and so does work that names it. */
const dropSaga = async ({ db }: Context, saga: number | null): Promise<void> => {
  const sql = `DELETE FROM saga WHERE id = ? AND ${NO_EPISODE} RETURNING group_id, name`
  const gone = saga === null ? undefined : await db.get<{ group_id: string; name: string }>(sql, saga)
  if (!gone) return
  const jobs = await db.all<{ id: number; payload: string }>(SUMMARISING, gone.group_id)
  const ids = jobs.filter(({ payload }) => sagaIn(payload) === gone.name).map(({ id }) => id)
  if (ids.length > 0) await db.run('DELETE FROM job WHERE id = ANY (?)', ids)
}

/** Removes an episode with what only it told. */
export const eraseEpisode = async (context: Context, id: number): Promise<void> => {
  const { db } = context
  const row = await db.get<{ prev_id: number | null; saga_id: number | null }>(
    'SELECT prev_id, saga_id FROM episode WHERE id = ?',
    id,
  )
  const mentioned = await db.all<{ entity_id: number }>('SELECT entity_id FROM mention WHERE episode_id = ?', id)
  const touched = await unlinkFacts(context, id)
  await removeDocs(context, id)
  await unsummarise(context, id)
  await db.run('UPDATE episode SET prev_id = ? WHERE prev_id = ?', row?.prev_id ?? null, id)
  await db.run('DELETE FROM episode WHERE id = ?', id)
  await dropSaga(context, row?.saga_id ?? null)
  await dropOrphans(context, [...touched, ...mentioned.map(mention => mention.entity_id)])
}

/** The row of a uuid, once nobody else writes in its group. */
const heldRow = async <Row extends { readonly group_id: string }>(
  context: Context,
  sql: string,
  uuid: string,
): Promise<Row | undefined> => {
  const seen = await context.db.get<Row>(sql, uuid)
  if (!seen) return undefined
  await holdGroups(context, [seen.group_id])
  return context.db.get<Row>(sql, uuid)
}

/** Deletes one episode. */
export const deleteEpisode = async (context: Context, uuid: string, by?: By): Promise<{ readonly group: string }> => {
  const sql = 'SELECT id, group_id FROM episode WHERE uuid = ?'
  const row = await heldRow<{ id: number; group_id: string }>(context, sql, uuid)
  if (!row) throw new StoreError('missing', `There is no episode ${uuid}.`)
  await eraseEpisode(context, row.id)
  await writeAudit(context, 'delete episode', [uuid], by)
  return { group: row.group_id }
}

/** Deletes one fact, and entities that only it made known. */
export const deleteFact = async (context: Context, uuid: string, by?: By): Promise<{ readonly group: string }> => {
  const sql = 'SELECT id, group_id FROM fact WHERE uuid = ?'
  const row = await heldRow<{ id: number; group_id: string }>(context, sql, uuid)
  if (!row) throw new StoreError('missing', `There is no fact ${uuid}.`)
  await dropOrphans(context, await eraseFacts(context, [row.id]))
  await writeAudit(context, 'delete fact', [uuid], by)
  return { group: row.group_id }
}

const GROUPS = 'SELECT group_id FROM group_lock'

/** Holds the groups that are meant, all of them for `all`. */
export const holdMeant = async (context: Context, groups: Groups): Promise<void> => {
  const all = async () => (await context.db.all<{ group_id: string }>(GROUPS)).map(row => row.group_id)
  await holdGroups(context, groups === 'all' ? await all() : groups)
}

/** Removes everything of the groups; the caller writes it down. */
export const eraseGroups = async (context: Context, groups: Groups): Promise<void> => {
  await holdMeant(context, groups)
  const { sql: mine, values } = inGroups('group_id', groups)
  for (const kind of ['doc', 'fact', 'entity'] as const) {
    const rows = await context.db.all<{ id: number }>(`SELECT id FROM ${kind} WHERE ${mine}`, ...values)
    await unindex(
      context,
      kind,
      rows.map(({ id }) => id),
    )
  }
  // In the order in which nothing points to what is gone.
  for (const table of ['vec', 'job', 'fact', 'community', 'doc', 'episode', 'entity', 'saga'])
    await context.db.run(`DELETE FROM ${table} WHERE ${mine}`, ...values)
  context.names.clear()
  context.entities.clear()
}

/** Clears the groups. */
export const clearGroups = async (context: Context, groups: Groups, by?: By): Promise<void> => {
  await eraseGroups(context, groups)
  await writeAudit(context, 'clear', groups === 'all' ? ['all'] : groups, by)
}
