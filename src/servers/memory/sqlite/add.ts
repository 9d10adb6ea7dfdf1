import { checkFacts } from '../fact-validity.ts'
import { isOfGroup } from '../group-jobs.ts'
import { contentHash, newUuid } from '../ids.ts'
import type { Enrichment, NewEpisode } from '../model.ts'
import { type Added, type By, type Lease, StoreError } from '../store.ts'
import { type Context, writeAudit } from './context.ts'
import { addDocs, removeDocs } from './docs.ts'
import { readEntities, resolveEntity } from './entities.ts'
import { readFacts, type Teller, tellFact } from './facts.ts'
import { addJob, closeJob } from './jobs.ts'
import { dropOrphans, unlinkFacts, unsummarise } from './remove.ts'
import { EPISODES, episodeOf } from './rows.ts'
import { placeInSaga } from './sagas.ts'

type Found = Omit<Enrichment, 'docs'>
type Learnt = Omit<Added, 'episode' | 'outcome'>

const readEpisode = ({ db }: Context, id: number): Added['episode'] => {
  const row = db.get(`${EPISODES} WHERE e.id = ?`, id)
  if (!row) throw new StoreError('missing', `There is no episode ${id}.`)
  return episodeOf(row)
}

/** Entities first, so that the labels and aliases given there hold for the ends of the facts. */
const learn = (context: Context, teller: Teller, found: Found): Learnt => {
  const { db } = context
  checkFacts(found.facts)
  const resolved = found.entities.map(entity => [entity, resolveEntity(context, teller.group, entity)] as const)
  const entities = new Set(resolved.map(([, id]) => id))
  const called = new Map(resolved.flatMap(([{ uuid }, id]) => (uuid === undefined ? [] : [[uuid, id] as const])))
  const named = new Map(resolved.map(([{ name }, id]) => [name, id]))
  const told = found.facts.map(fact => ({ fact, ...tellFact(context, { ...teller, called, named }, fact) }))
  // Both ends of what was stated are mentioned; a rule's ends are among the entities where they are worth it.
  for (const { fact, ends } of told) if (fact.origin !== 'rule') for (const end of ends) entities.add(end)
  if (teller.episode !== undefined)
    for (const id of entities)
      db.run('INSERT INTO mention (episode_id, entity_id) VALUES (?, ?) ON CONFLICT DO NOTHING', teller.episode, id)
  const closed = readFacts(context, [...new Set(told.flatMap(one => one.closed))])
  return {
    entities: readEntities(context, [...new Set([...entities, ...told.flatMap(one => one.ends)])]),
    facts: readFacts(context, [...new Set(told.map(one => one.id))]),
    closed: closed.map(fact => fact.uuid),
  }
}

const findSame = ({ db }: Context, episode: NewEpisode, hash: Uint8Array): number | undefined =>
  db.get<{ id: number }>(
    'SELECT id FROM episode WHERE group_id = ? AND valid_at = ? AND content_hash = ?',
    episode.group,
    episode.validAt,
    hash,
  )?.id

const findUuid = ({ db }: Context, episode: NewEpisode): number | undefined => {
  if (episode.uuid === undefined) return undefined
  const known = db.get<{ id: number; group_id: string }>(
    'SELECT id, group_id FROM episode WHERE uuid = ?',
    episode.uuid,
  )
  if (known && known.group_id !== episode.group)
    throw new StoreError('invalid', `The episode ${episode.uuid} belongs to another group. Use another uuid.`)
  return known?.id
}

/** Takes everything that hung on an episode away, but keeps its row and with it its place among the others. */
const empty = (context: Context, id: number): readonly number[] => {
  const { db } = context
  const touched = unlinkFacts(context, id)
  removeDocs(context, id)
  unsummarise(context, id)
  const mentioned = db.all<{ entity_id: number }>('SELECT entity_id FROM mention WHERE episode_id = ?', id)
  db.run('DELETE FROM mention WHERE episode_id = ?', id)
  db.run('DELETE FROM job WHERE episode_id = ?', id)
  return [...touched, ...mentioned.map(row => row.entity_id)]
}

const values = (context: Context, episode: NewEpisode, hash: Uint8Array, isPending: boolean) =>
  [
    episode.name,
    episode.content,
    episode.source,
    episode.sourceDescription,
    episode.actor ?? null,
    episode.validAt,
    hash,
    episode.chain === undefined ? null : `${episode.group}/${episode.chain}`,
    JSON.stringify(episode.meta ?? {}),
    isPending ? 'pending' : 'ready',
    ...placeInSaga(context, episode),
  ] as const

const insert = (context: Context, episode: NewEpisode, hash: Uint8Array, isPending: boolean): number =>
  context.db.run(
    `INSERT INTO episode (name, content, source, source_description, actor, valid_at, content_hash, chain, meta, state,
      saga_id, prev_id, uuid, group_id, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    ...values(context, episode, hash, isPending),
    episode.uuid ?? newUuid(context.now()),
    episode.group,
    context.now(),
  ).id

const replace = (context: Context, id: number, episode: NewEpisode, hash: Uint8Array, isPending: boolean): void => {
  context.db.run(
    `UPDATE episode SET name = ?, content = ?, source = ?, source_description = ?, actor = ?, valid_at = ?,
      content_hash = ?, chain = ?, meta = ?, state = ?, saga_id = ?, prev_id = ?, error = NULL WHERE id = ?`,
    ...values(context, episode, hash, isPending),
    id,
  )
}

const docIdsOf = ({ db }: Context, episode: number): number[] =>
  db.all<{ id: number }>('SELECT id FROM doc WHERE episode_id = ? ORDER BY ord', episode).map(doc => doc.id)

/** The same episode told again stays as it is; what is stated beside it may be new. */
const toldAgain = (context: Context, id: number, { entities, facts }: Found): Added => {
  const episode = readEpisode(context, id)
  const teller = { group: episode.group, episode: id, docs: docIdsOf(context, id), referenceTime: episode.validAt }
  const stated = { entities, facts: facts.filter(fact => fact.origin !== 'rule') }
  return { episode, outcome: 'same', ...learn(context, teller, stated), entities: [] }
}

/** Stores an episode with all that is known of it; the caller holds the transaction. */
export const addEpisode = (context: Context, episode: NewEpisode, enrichment: Enrichment, by?: By): Added => {
  const hash = contentHash(episode)
  const known = findUuid(context, episode)
  const same = findSame(context, episode, hash)
  if (same !== undefined && same !== known && episode.uuid === undefined) return toldAgain(context, same, enrichment)
  if (same !== undefined && same !== known)
    throw new StoreError(
      'invalid',
      `This very episode is stored already as ${readEpisode(context, same).uuid}. Use that uuid, or leave it out.`,
    )
  const jobs = enrichment.jobs ?? []
  const touched = known === undefined ? [] : empty(context, known)
  const isPending = jobs.some(({ kind }) => !isOfGroup(kind))
  if (known !== undefined) replace(context, known, episode, hash, isPending)
  const id = known ?? insert(context, episode, hash, isPending)
  const chain = episode.chain === undefined ? undefined : `${episode.group}/${episode.chain}`
  const docs = addDocs(context, { id, group: episode.group, chain }, enrichment.docs)
  const teller = { group: episode.group, episode: id, docs, referenceTime: episode.validAt }
  const learnt = learn(context, teller, enrichment)
  for (const job of jobs) addJob(context, episode.group, job, id)
  dropOrphans(context, touched)
  const stored = readEpisode(context, id)
  if (known !== undefined) writeAudit(context, 'replace episode', [stored.uuid], by)
  return { episode: stored, outcome: known === undefined ? 'created' : 'replaced', ...learnt }
}

/** Adds what background work found about a stored episode, and ends that work in the same transaction. */
export const enrichEpisode = (context: Context, uuid: string, found: Found, lease?: Lease): Added => {
  if (lease && !closeJob(context, lease))
    throw new StoreError('missing', 'The lease of this job is over; somebody else has it or did it. Drop the result.')
  const row = context.db.get(`${EPISODES} WHERE e.uuid = ?`, uuid)
  if (!row) throw new StoreError('missing', `There is no episode ${uuid}; it was deleted meanwhile.`)
  const episode = episodeOf(row)
  const teller = {
    group: episode.group,
    episode: episode.id,
    docs: docIdsOf(context, episode.id),
    referenceTime: episode.validAt,
  }
  const learnt = learn(context, teller, found)
  for (const job of found.jobs ?? []) addJob(context, episode.group, job, episode.id)
  return { episode: readEpisode(context, episode.id), outcome: 'replaced', ...learnt }
}

/** Stores facts that no episode told. */
export const addLooseFacts = (context: Context, group: string, found: Pick<Enrichment, 'entities' | 'facts'>): Learnt =>
  learn(context, { group, episode: undefined, docs: [], referenceTime: undefined }, found)
