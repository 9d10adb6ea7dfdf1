import type { InsertTarget } from '../../../stores/sql.ts'
import { checkFacts } from '../fact-validity.ts'
import { contentHash, newUuid } from '../ids.ts'
import type { Enrichment, Episode, NewEpisode } from '../model.ts'
import { type Added, type By, type Lease, StoreError } from '../store.ts'
import { lockGroups, readLocked, type StoreContext, writeAudit } from './context.ts'
import { addDocs, removeDocs } from './docs.ts'
import { readCachedEntities, readNames, resolveEntity } from './entities.ts'
import { type FactSource, linkNewFacts, readFacts, storeFact } from './facts.ts'
import { addJob, finishJob, isOfGroup } from './jobs.ts'
import { dropOrphans, unlinkFacts, unsummariseSaga } from './remove.ts'
import { episodeOf, insertRow, readIds, SELECT_EPISODES } from './rows.ts'
import { placeInSaga } from './sagas.ts'

type Found = Omit<Enrichment, 'docs'>
type AddedGraph = Omit<Added, 'episode' | 'outcome'>

const EPISODE_BY_ID = `${SELECT_EPISODES} WHERE e.id = ?`

const readEpisode = async ({ db }: StoreContext, id: number): Promise<Episode> => {
  const row = await db.get(EPISODE_BY_ID, id)
  if (!row) throw new StoreError('missing', `There is no episode ${id}.`)
  return episodeOf(row)
}

const namesIn = ({ entities, facts }: Found): string[] => [
  ...entities.flatMap(({ name, aliases = [] }) => [name, ...aliases]),
  ...facts.flatMap(({ source, target }) => [source, target].flatMap(ref => ('name' in ref ? [ref.name] : []))),
]

const MENTIONS: InsertTarget = {
  table: 'mention',
  columns: { episode_id: 'integer', entity_id: 'integer' },
  ignoresConflicts: true,
}

/** Records that an episode mentions entities. */
export const addMentions = async ({ db }: StoreContext, episode: number, entities: Iterable<number>): Promise<void> => {
  const rows = [...entities].map(entity => [episode, entity])
  if (rows.length > 0) await db.insertAll(MENTIONS, rows)
}

/** Stores entities and facts; the entities first, so that their labels and aliases apply to the ends of the facts. */
const addGraph = async (context: StoreContext, source: FactSource, found: Found): Promise<AddedGraph> => {
  checkFacts(found.facts)
  await readNames(context, source.group, namesIn(found))
  const resolved = { byUuid: new Map<string, number>(), byName: new Map<string, number>() }
  const mentioned = new Set<number>()
  for (const entity of found.entities) {
    const id = await resolveEntity(context, source.group, entity)
    if (entity.uuid !== undefined) resolved.byUuid.set(entity.uuid, id)
    resolved.byName.set(entity.name, id)
    mentioned.add(id)
  }
  const batch = { ...source, resolved, unlinked: new Map<number, number | undefined>() }
  const facts: number[] = []
  const [ends, closed] = [new Set<number>(), new Set<number>()]
  for (const fact of found.facts) {
    const stored = await storeFact(context, batch, fact)
    facts.push(stored.id)
    for (const id of stored.closed) closed.add(id)
    for (const id of stored.ends) ends.add(id)
    // The ends of a rule's fact are among the entities if they are worth a mention.
    if (fact.origin !== 'rule') for (const id of stored.ends) mentioned.add(id)
  }
  await linkNewFacts(context, batch)
  if (source.episode !== undefined) await addMentions(context, source.episode, mentioned)
  return {
    entities: await readCachedEntities(context, [...new Set([...mentioned, ...ends])]),
    facts: await readFacts(context, facts),
    closed: (await readFacts(context, [...closed])).map(({ uuid }) => uuid),
  }
}

const findSame = async ({ db }: StoreContext, episode: NewEpisode, hash: Uint8Array): Promise<number | undefined> => {
  const sql = 'SELECT id FROM episode WHERE group_id = ? AND valid_at = ? AND content_hash = ?'
  return (await db.get<{ id: number }>(sql, episode.group, episode.validAt, hash))?.id
}

const findByUuid = async ({ db }: StoreContext, episode: NewEpisode): Promise<number | undefined> => {
  if (episode.uuid === undefined) return undefined
  const sql = 'SELECT id, group_id FROM episode WHERE uuid = ?'
  const known = await db.get<{ id: number; group_id: string }>(sql, episode.uuid)
  if (known && known.group_id !== episode.group)
    throw new StoreError('invalid', `The episode ${episode.uuid} belongs to another group. Use another uuid.`)
  return known?.id
}

/** Removes everything that belongs to an episode but its row, so that its position stays. Returns the entities concerned. */
const emptyEpisode = async (context: StoreContext, id: number): Promise<readonly number[]> => {
  const { db } = context
  const unlinked = await unlinkFacts(context, id)
  await removeDocs(context, id)
  await unsummariseSaga(context, id)
  const mentioned = await readIds(db, 'DELETE FROM mention WHERE episode_id = ? RETURNING entity_id AS id', id)
  await db.run('DELETE FROM job WHERE episode_id = ?', id)
  return [...unlinked, ...mentioned]
}

const chainOf = ({ group, chain }: NewEpisode): string | undefined =>
  chain === undefined ? undefined : `${group}/${chain}`

/** Inserts an episode's row, or replaces the known one. */
const putEpisode = async (
  context: StoreContext,
  known: number | undefined,
  episode: NewEpisode,
  hash: Uint8Array,
  isPending: boolean,
): Promise<number> => {
  const [saga, previous] = await placeInSaga(context, episode)
  const row = {
    name: episode.name,
    content: episode.content,
    source: episode.source,
    source_description: episode.sourceDescription,
    actor: episode.actor ?? null,
    valid_at: episode.validAt,
    content_hash: hash,
    chain: chainOf(episode) ?? null,
    meta: JSON.stringify(episode.meta ?? {}),
    state: isPending ? 'pending' : 'ready',
    error: null,
    saga_id: saga,
    prev_id: previous,
  }
  const { db, now } = context
  if (known === undefined) {
    const identity = { uuid: episode.uuid ?? newUuid(now()), group_id: episode.group, created_at: now() }
    return insertRow(db, 'episode', { ...row, ...identity })
  }
  const changes = Object.keys(row).map(column => `${column} = ?`)
  await db.run(`UPDATE episode SET ${changes.join(', ')} WHERE id = ?`, ...Object.values(row), known)
  return known
}

const sourceOf = async ({ db }: StoreContext, { id, group, validAt }: Episode): Promise<FactSource> => {
  const docs = await readIds(db, 'SELECT id FROM doc WHERE episode_id = ? ORDER BY ord', id)
  return { group, episode: id, docs, referenceTime: validAt }
}

/** The same episode again stays as it is; facts that are stated beside it may be new. */
const addAgain = async (context: StoreContext, id: number, { entities, facts }: Found): Promise<Added> => {
  const episode = await readEpisode(context, id)
  const stated = { entities, facts: facts.filter(fact => fact.origin !== 'rule') }
  const added = await addGraph(context, await sourceOf(context, episode), stated)
  return { episode, outcome: 'same', ...added, entities: [] }
}

/** Stores an episode with everything known about it. */
export const addEpisode = async (
  context: StoreContext,
  episode: NewEpisode,
  enrichment: Enrichment,
  by?: By,
): Promise<Added> => {
  const { group, validAt: referenceTime } = episode
  await lockGroups(context, [group])
  const hash = contentHash(episode)
  const known = await findByUuid(context, episode)
  const same = await findSame(context, episode, hash)
  if (same !== undefined && same !== known) {
    if (episode.uuid === undefined) return addAgain(context, same, enrichment)
    const { uuid } = await readEpisode(context, same)
    throw new StoreError('invalid', `This episode is stored already as ${uuid}. Use that uuid, or omit it.`)
  }
  const { jobs = [], docs: passages } = enrichment
  const isPending = jobs.some(({ kind }) => !isOfGroup(kind))
  const touched = known === undefined ? [] : await emptyEpisode(context, known)
  const id = await putEpisode(context, known, episode, hash, isPending)
  const docs = await addDocs(context, { id, group, chain: chainOf(episode) }, passages)
  const added = await addGraph(context, { group, episode: id, docs, referenceTime }, enrichment)
  for (const job of jobs) await addJob(context, group, job, id)
  await dropOrphans(context, touched)
  const stored = await readEpisode(context, id)
  if (known !== undefined) await writeAudit(context, 'replace episode', [stored.uuid], by)
  return { episode: stored, outcome: known === undefined ? 'created' : 'replaced', ...added }
}

/** Adds what a background job found about a stored episode, and finishes the job in the same transaction. */
export const enrichEpisode = async (
  context: StoreContext,
  uuid: string,
  found: Found,
  lease?: Lease,
): Promise<Added> => {
  const row = await readLocked(context, `${SELECT_EPISODES} WHERE e.uuid = ?`, uuid)
  if (!row) throw new StoreError('missing', `There is no episode ${uuid}; it was deleted meanwhile.`)
  if (lease && !(await finishJob(context, lease)))
    throw new StoreError('missing', 'The lease of this job has expired; another worker has the job. Drop the result.')
  const episode = episodeOf(row)
  const added = await addGraph(context, await sourceOf(context, episode), found)
  for (const job of found.jobs ?? []) await addJob(context, episode.group, job, episode.id)
  return { episode: await readEpisode(context, episode.id), outcome: 'replaced', ...added }
}

/** Stores facts without an episode. */
export const addLooseFacts = async (
  context: StoreContext,
  group: string,
  found: Pick<Enrichment, 'entities' | 'facts'>,
): Promise<AddedGraph> => {
  await lockGroups(context, [group])
  return addGraph(context, { group, episode: undefined, docs: [], referenceTime: undefined }, found)
}
