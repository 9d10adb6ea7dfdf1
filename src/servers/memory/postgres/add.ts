import { checkFacts } from '../fact-validity.ts'
import { isOfGroup } from '../group-jobs.ts'
import { contentHash, newUuid } from '../ids.ts'
import type { Enrichment, NewEpisode } from '../model.ts'
import type { Teller } from '../sqlite/facts.ts'
import { episodeOf } from '../sqlite/rows.ts'
import { type Added, type By, type Lease, StoreError } from '../store.ts'
import { type Context, holdGroups, writeAudit } from './context.ts'
import { addDocs, removeDocs } from './docs.ts'
import { lookUp, readEntities, resolveEntity } from './entities.ts'
import { readFacts, tellFact } from './facts.ts'
import { addJob, closeJob } from './jobs.ts'
import { dropOrphans, unlinkFacts, unsummarise } from './remove.ts'
import { EPISODES, idIn } from './rows.ts'
import { placeInSaga } from './sagas.ts'

type Found = Omit<Enrichment, 'docs'>
type Learnt = Omit<Added, 'episode' | 'outcome'>

const readEpisode = async ({ db }: Context, id: number): Promise<Added['episode']> => {
  const row = await db.get(`${EPISODES} WHERE e.id = ?`, id)
  if (!row) throw new StoreError('missing', `There is no episode ${id}.`)
  return episodeOf(row)
}

const namesIn = ({ entities, facts }: Found): string[] => [
  ...entities.flatMap(({ name, aliases = [] }) => [name, ...aliases]),
  ...facts.flatMap(({ source, target }) => [source, target].flatMap(ref => ('name' in ref ? [ref.name] : []))),
]

const inTurn = async <Item, Result>(
  items: readonly Item[],
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> => {
  const results: Result[] = []
  for (const item of items) results.push(await work(item))
  return results
}

/** Entities first, so that the labels and aliases given there hold for the ends of the facts. */
const learn = async (context: Context, teller: Teller, found: Found): Promise<Learnt> => {
  checkFacts(found.facts)
  await lookUp(context, teller.group, namesIn(found))
  const ids = await inTurn(found.entities, entity => resolveEntity(context, teller.group, entity))
  const entities = new Set(ids)
  const called = new Map(
    found.entities.flatMap(({ uuid }, at) => (uuid === undefined ? [] : [[uuid, ids[at] ?? 0] as const])),
  )
  const named = new Map(found.entities.map(({ name }, at) => [name, ids[at] ?? 0]))
  const told = await inTurn(found.facts, fact => tellFact(context, { ...teller, called, named }, fact))
  // Both ends of what was stated are mentioned; a rule's ends are among the entities where they are worth it.
  for (const [at, { ends }] of told.entries())
    if (found.facts[at]?.origin !== 'rule') for (const end of ends) entities.add(end)
  if (teller.episode !== undefined && entities.size > 0)
    await context.db.run(
      'INSERT INTO mention (episode_id, entity_id) SELECT ?::bigint, id FROM unnest(?::bigint[]) id ON CONFLICT DO NOTHING',
      teller.episode,
      [...entities],
    )
  const closed = await readFacts(context, [...new Set(told.flatMap(one => one.closed))])
  return {
    entities: await readEntities(context, [...new Set([...entities, ...told.flatMap(one => one.ends)])]),
    facts: await readFacts(context, [...new Set(told.map(one => one.id))]),
    closed: closed.map(fact => fact.uuid),
  }
}

const findSame = async ({ db }: Context, episode: NewEpisode, hash: Uint8Array): Promise<number | undefined> => {
  const sql = 'SELECT id FROM episode WHERE group_id = ? AND valid_at = ? AND content_hash = ?'
  return (await db.get<{ id: number }>(sql, episode.group, episode.validAt, hash))?.id
}

const findUuid = async ({ db }: Context, episode: NewEpisode): Promise<number | undefined> => {
  if (episode.uuid === undefined) return undefined
  const sql = 'SELECT id, group_id FROM episode WHERE uuid = ?'
  const known = await db.get<{ id: number; group_id: string }>(sql, episode.uuid)
  if (known && known.group_id !== episode.group)
    throw new StoreError('invalid', `The episode ${episode.uuid} belongs to another group. Use another uuid.`)
  return known?.id
}

/** Takes everything that hung on an episode away, but keeps its row and with it its place among the others. */
const empty = async (context: Context, id: number): Promise<readonly number[]> => {
  const { db } = context
  const touched = await unlinkFacts(context, id)
  await removeDocs(context, id)
  await unsummarise(context, id)
  const mentioned = await db.all<{ entity_id: number }>(
    'DELETE FROM mention WHERE episode_id = ? RETURNING entity_id',
    id,
  )
  await db.run('DELETE FROM job WHERE episode_id = ?', id)
  return [...touched, ...mentioned.map(row => row.entity_id)]
}

const values = async (context: Context, episode: NewEpisode, hash: Uint8Array, isPending: boolean) =>
  [
    episode.name,
    episode.content,
    episode.source,
    episode.sourceDescription,
    episode.actor ?? null,
    episode.validAt,
    hash,
    chainOf(episode) ?? null,
    JSON.stringify(episode.meta ?? {}),
    isPending ? 'pending' : 'ready',
    ...(await placeInSaga(context, episode)),
  ] as const

const chainOf = ({ group, chain }: NewEpisode): string | undefined =>
  chain === undefined ? undefined : `${group}/${chain}`

const insert = async (context: Context, episode: NewEpisode, hash: Uint8Array, isPending: boolean): Promise<number> =>
  idIn(
    await context.db.get<{ id: number }>(
      `INSERT INTO episode (name, content, source, source_description, actor, valid_at, content_hash, chain, meta, state,
        saga_id, prev_id, uuid, group_id, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
      ...(await values(context, episode, hash, isPending)),
      episode.uuid ?? newUuid(context.now()),
      episode.group,
      context.now(),
    ),
  )

const replace = async (context: Context, id: number, episode: NewEpisode, hash: Uint8Array, isPending: boolean) => {
  await context.db.run(
    `UPDATE episode SET name = ?, content = ?, source = ?, source_description = ?, actor = ?, valid_at = ?,
      content_hash = ?, chain = ?, meta = ?, state = ?, saga_id = ?, prev_id = ?, error = NULL WHERE id = ?`,
    ...(await values(context, episode, hash, isPending)),
    id,
  )
  return id
}

const docIdsOf = async ({ db }: Context, episode: number): Promise<number[]> =>
  (await db.all<{ id: number }>('SELECT id FROM doc WHERE episode_id = ? ORDER BY ord', episode)).map(doc => doc.id)

/** The same episode told again stays as it is; what is stated beside it may be new. */
const toldAgain = async (context: Context, id: number, { entities, facts }: Found): Promise<Added> => {
  const episode = await readEpisode(context, id)
  const docs = await docIdsOf(context, id)
  const teller = { group: episode.group, episode: id, docs, referenceTime: episode.validAt }
  const stated = { entities, facts: facts.filter(fact => fact.origin !== 'rule') }
  return { episode, outcome: 'same', ...(await learn(context, teller, stated)), entities: [] }
}

const refuseTwice = async (context: Context, same: number): Promise<never> => {
  const { uuid } = await readEpisode(context, same)
  throw new StoreError('invalid', `This very episode is stored already as ${uuid}. Use that uuid, or leave it out.`)
}

/** Stores an episode with all that is known of it. */
export const addEpisode = async (
  context: Context,
  episode: NewEpisode,
  enrichment: Enrichment,
  by?: By,
): Promise<Added> => {
  await holdGroups(context, [episode.group])
  const hash = contentHash(episode)
  const known = await findUuid(context, episode)
  const same = await findSame(context, episode, hash)
  if (same !== undefined && same !== known)
    return episode.uuid === undefined ? toldAgain(context, same, enrichment) : refuseTwice(context, same)
  const { jobs = [], docs: passages } = enrichment
  const isPending = jobs.some(({ kind }) => !isOfGroup(kind))
  const touched = known === undefined ? [] : await empty(context, known)
  const id =
    known === undefined
      ? await insert(context, episode, hash, isPending)
      : await replace(context, known, episode, hash, isPending)
  const docs = await addDocs(context, { id, group: episode.group, chain: chainOf(episode) }, passages)
  const teller = { group: episode.group, episode: id, docs, referenceTime: episode.validAt }
  const learnt = await learn(context, teller, enrichment)
  for (const job of jobs) await addJob(context, episode.group, job, id)
  await dropOrphans(context, touched)
  const stored = await readEpisode(context, id)
  if (known !== undefined) await writeAudit(context, 'replace episode', [stored.uuid], by)
  return { episode: stored, outcome: known === undefined ? 'created' : 'replaced', ...learnt }
}

const heldEpisode = async (context: Context, uuid: string): Promise<Added['episode']> => {
  const read = async () => context.db.get(`${EPISODES} WHERE e.uuid = ?`, uuid)
  const seen = await read()
  if (seen) await holdGroups(context, [String(seen.group_id)])
  const row = seen && (await read())
  if (!row) throw new StoreError('missing', `There is no episode ${uuid}; it was deleted meanwhile.`)
  return episodeOf(row)
}

/** Adds what background work found about a stored episode, and ends that work in the same transaction. */
export const enrichEpisode = async (context: Context, uuid: string, found: Found, lease?: Lease): Promise<Added> => {
  const { id, group, validAt } = await heldEpisode(context, uuid)
  if (lease && !(await closeJob(context, lease)))
    throw new StoreError('missing', 'The lease of this job is over; somebody else has it or did it. Drop the result.')
  const teller = { group, episode: id, docs: await docIdsOf(context, id), referenceTime: validAt }
  const learnt = await learn(context, teller, found)
  for (const job of found.jobs ?? []) await addJob(context, group, job, id)
  return { episode: await readEpisode(context, id), outcome: 'replaced', ...learnt }
}

/** Stores facts that no episode told. */
export const addLooseFacts = async (
  context: Context,
  group: string,
  found: Pick<Enrichment, 'entities' | 'facts'>,
): Promise<Learnt> => {
  await holdGroups(context, [group])
  return learn(context, { group, episode: undefined, docs: [], referenceTime: undefined }, found)
}
