import type { Sql, SqlRow } from '../../../stores/sql.ts'
import type { Instant } from '../model.ts'
import type { By, Forget, ForgetPreview, ForgetProof } from '../store.ts'
import { type StoreContext, writeAudit } from './context.ts'
import type { ErasureCheck } from './engine.ts'
import { indexEntity } from './entities.ts'
import { type ForgetTargets, findTargets, removeName } from './forget-targets.ts'
import { dropOrphans, eraseEntities, eraseEpisode, eraseFacts, eraseGroups } from './remove.ts'
import { readIds } from './rows.ts'

/** Texts of rows by uuid. */
type Texts = ReadonlyMap<string, readonly string[]>

interface Counts {
  readonly docs: number
  readonly vectors: number
  readonly jobs: number
}

/** The erased rows with their texts. */
export interface Erased {
  readonly at: Instant
  readonly episodes: Texts
  readonly entities: Texts
  readonly facts: Texts
  readonly named: ReadonlySet<string> // uuids of what was asked for, and of what is about it
  readonly counts: Counts
}

const COUNTS = `SELECT (SELECT count(*) FROM doc) AS docs, (SELECT count(*) FROM vec) AS vectors,
  (SELECT count(*) FROM job) AS jobs`

const readCounts = async (db: Sql): Promise<Counts> =>
  (await db.get<Counts>(COUNTS)) ?? { docs: 0, vectors: 0, jobs: 0 }

const collectTexts = (rows: readonly SqlRow[]): Texts => {
  const texts = new Map<string, string[]>()
  for (const { uuid, ...columns } of rows)
    texts.set(String(uuid), [...(texts.get(String(uuid)) ?? []), ...Object.values(columns).map(String)])
  return texts
}

/** Everything that may be erased together with the targets. */
const takeInventory = async ({ db }: StoreContext, targets: ForgetTargets): Promise<Omit<Erased, 'at'>> => {
  const inList = (column: string) => db.dialect.inList(column, '?1')
  const isLinked = `f JOIN fact_episode fe ON fe.fact_id = f.id WHERE ${inList('fe.episode_id')}`
  const touched = await readIds(
    db,
    `SELECT entity_id AS id FROM mention WHERE ${inList('episode_id')}
      UNION SELECT f.src FROM fact ${isLinked} UNION SELECT f.dst FROM fact ${isLinked}`,
    targets.episodes,
  )
  const concerns = `${inList('src')} OR ${inList('dst')} OR ${db.dialect.inList('id', '?2')}`
  const connected = await readIds(
    db,
    `SELECT src AS id FROM fact WHERE ${concerns} UNION SELECT dst FROM fact WHERE ${concerns}`,
    targets.entities,
    targets.facts,
  )
  const entities = [...new Set([...touched, ...connected, ...targets.entities])]
  const facts = `SELECT uuid, fact, attributes FROM fact WHERE ${concerns}`
  const named = await db.all<{ uuid: string }>(
    `SELECT uuid FROM entity WHERE ${inList('id')} UNION SELECT uuid FROM fact WHERE ${concerns}`,
    targets.entities,
    targets.facts,
  )
  const told = `SELECT uuid, name, content, source_description FROM episode WHERE ${inList('id')}`
  const episodes = collectTexts(await db.all(told, targets.episodes))
  const names = await db.all(`SELECT uuid, name, summary, attributes FROM entity WHERE ${inList('id')}`, entities)
  const aliases = await db.all(
    `SELECT n.uuid, a.name FROM alias a JOIN entity n ON n.id = a.entity_id WHERE ${inList('n.id')}`,
    entities,
  )
  return {
    episodes,
    entities: collectTexts([...names, ...aliases]),
    facts: collectTexts(await db.all(facts, entities, targets.facts)),
    named: new Set([...episodes.keys(), ...named.map(({ uuid }) => uuid)]),
    counts: await readCounts(db),
  }
}

/** Those of the rows that are gone. */
const findGone = async ({ db }: StoreContext, table: string, before: Texts): Promise<Texts> => {
  const sql = `SELECT uuid FROM ${table} WHERE ${db.dialect.inList('uuid')}`
  const left = new Set((await db.all<{ uuid: string }>(sql, [...before.keys()])).map(({ uuid }) => uuid))
  return new Map([...before].filter(([uuid]) => !left.has(uuid)))
}

/** Summaries of entities and communities that stay may quote what is erased. */
const blankSummaries = async (context: StoreContext, { episodes }: ForgetTargets): Promise<void> => {
  const { db } = context
  const mentioned = `SELECT entity_id FROM mention WHERE ${db.dialect.inList('episode_id')}`
  const blank = `UPDATE entity SET summary = '' WHERE summary <> '' AND id IN (${mentioned}) RETURNING id`
  for (const id of await readIds(db, blank, episodes)) await indexEntity(context, id)
  const communities = `SELECT community_id FROM community_member WHERE entity_id IN (${mentioned})`
  await db.run(`DELETE FROM community WHERE id IN (${communities})`, episodes)
}

/** The audit log may say that groups were cleared, but not the names of forgotten ones. */
const removeGroupNames = async ({ db }: StoreContext, groups: readonly string[]): Promise<void> => {
  // Locked, because another group of the same row may be forgotten at the same time.
  const sql = `SELECT id, ids FROM audit WHERE op = 'clear' ORDER BY id${db.dialect.forUpdate}`
  for (const { id, ids } of await db.all<{ id: number; ids: string }>(sql)) {
    const cleared = JSON.parse(ids) as string[]
    const kept = cleared.filter(group => !groups.includes(group))
    if (kept.length < cleared.length) await db.run('UPDATE audit SET ids = ? WHERE id = ?', JSON.stringify(kept), id)
  }
}

const eraseTargets = async (context: StoreContext, targets: ForgetTargets): Promise<void> => {
  const { db } = context
  await blankSummaries(context, targets)
  if (targets.groups.length > 0) {
    await eraseGroups(context, targets.groups)
    return removeGroupNames(context, targets.groups)
  }
  for (const id of targets.episodes) await eraseEpisode(context, id)
  await dropOrphans(context, await eraseFacts(context, targets.facts))
  const facts = `SELECT id FROM fact WHERE ${db.dialect.inList('src', '?1')} OR ${db.dialect.inList('dst', '?1')}`
  const ends = await eraseFacts(context, await readIds(db, facts, targets.entities))
  await eraseEntities(context, targets.entities)
  await dropOrphans(context, ends)
}

/** Erases the rows, and returns what was erased. */
export const erase = async (context: StoreContext, what: Forget, by?: By): Promise<Erased> => {
  const targets = await findTargets(context, what)
  const before = await takeInventory(context, targets)
  await eraseTargets(context, targets)
  if (what.kind === 'subject') await removeName(context, what)
  const after = await readCounts(context.db)
  const erased = {
    at: context.now(),
    episodes: await findGone(context, 'episode', before.episodes),
    entities: await findGone(context, 'entity', before.entities),
    facts: await findGone(context, 'fact', before.facts),
    named: before.named,
    counts: {
      docs: before.counts.docs - after.docs,
      vectors: before.counts.vectors - after.vectors,
      jobs: before.counts.jobs - after.jobs,
    },
  }
  await writeAudit(context, `forget ${what.kind}`, [...erased.episodes.keys(), ...erased.entities.keys()], by)
  return erased
}

/** Carries the result of an erasure out of its transaction, which is rolled back. */
export class PreviewedErasure extends Error {
  readonly preview: ForgetPreview
  constructor({ episodes, entities, facts, named }: Erased) {
    super('Nothing was erased.')
    const rowsOf = (texts: Texts) => [...texts].map(([uuid, [text = '']]) => ({ uuid, text, isNamed: named.has(uuid) }))
    this.preview = { episodes: rowsOf(episodes), entities: rowsOf(entities), facts: rowsOf(facts) }
  }
}

/** Every erased text. */
export const erasedTexts = ({ episodes, facts, entities }: Erased): string[] =>
  [...episodes.values(), ...facts.values(), ...entities.values()].flat()

export const proofOf = ({ at, episodes, entities, facts, counts }: Erased, check: ErasureCheck): ForgetProof => ({
  at,
  erased: { episodes: [...episodes.keys()], entities: [...entities.keys()], facts: [...facts.keys()], ...counts },
  ...check,
})
