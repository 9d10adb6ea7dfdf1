import { perDialect } from '../../../stores/dialect.ts'
import type { InsertTarget } from '../../../stores/sql.ts'
import { indexText } from '../../../text/query.ts'
import { closeContradicted, type FactTimes, supersede } from '../fact-validity.ts'
import { newUuid, normHash } from '../ids.ts'
import type { Fact, Instant, NewFact } from '../model.ts'
import { StatementError } from '../store.ts'
import { dateWords } from '../text/dates.ts'
import type { StoreContext } from './context.ts'
import { type ResolvedEntities, resolveRef } from './entities.ts'
import { factOf, inOrderOf, insertRow, recordReader, selectFacts } from './rows.ts'

/** Where new facts come from: the group, and the episode with its passages if one states them. */
export interface FactSource {
  readonly group: string
  readonly episode: number | undefined
  readonly docs: readonly number[]
  readonly referenceTime: Instant | undefined
}

/** The facts of one call while they are stored. */
export interface FactBatch extends FactSource {
  readonly resolved: ResolvedEntities
  /** New facts by id with the passage that states them, to be linked to the episode by `linkNewFacts`. */
  readonly unlinked: Map<number, number | undefined>
}

/** The result of storing one fact: its row, its entities, and the facts it closed. */
export interface StoredFact {
  readonly id: number
  readonly ends: readonly [number, number]
  readonly closed: readonly number[]
}

interface KnownFact extends FactTimes {
  readonly id: number
  readonly confidence: number
}

const SELECT_SPANS = `SELECT id, valid_at AS "validAt", invalid_at AS "invalidAt", expired_at AS "expiredAt", confidence FROM fact`

const knownOf = recordReader<KnownFact>()

// It cannot expire before it was created, whatever the clock says now.
const SET_SPAN = `UPDATE fact SET invalid_at = ?1, expired_at = CASE WHEN CAST(?2 AS BIGINT) < created_at THEN created_at
  ELSE CAST(?2 AS BIGINT) END, superseded_by = coalesce(?3, superseded_by) WHERE id = ?4`

const setSpan = async ({ db }: StoreContext, id: number, span: FactTimes, supersededBy?: number): Promise<void> => {
  await db.run(SET_SPAN, span.invalidAt ?? null, span.expiredAt ?? null, supersededBy ?? null, id)
}

const readNamed = async ({ db }: StoreContext, group: string, uuid: string, role: string): Promise<KnownFact> => {
  const row = await db.get(`${SELECT_SPANS} WHERE uuid = ? AND group_id = ?`, uuid, group)
  if (row) return knownOf(row)
  throw new StatementError(`There is no fact ${uuid} in group ${group} for ${role}. Nothing was stored.`)
}

const readAllNamed = async (
  context: StoreContext,
  group: string,
  uuids: readonly string[] | undefined,
  role: string,
) => {
  const known: KnownFact[] = []
  for (const uuid of new Set(uuids)) known.push(await readNamed(context, group, uuid, role))
  return known
}

const FACT_EPISODES: InsertTarget = {
  table: 'fact_episode',
  columns: { fact_id: 'integer', episode_id: 'integer', doc_id: 'integer', ord: 'integer' },
}

/** Links the new facts of a batch to their episode, all at once. */
export const linkNewFacts = async ({ db }: StoreContext, { episode, unlinked }: FactBatch): Promise<void> => {
  if (episode === undefined || unlinked.size === 0) return
  const rows = [...unlinked].map(([fact, doc]) => [fact, episode, doc ?? null, 0])
  unlinked.clear()
  await db.insertAll(FACT_EPISODES, rows)
}

const docOf = ({ docs }: FactSource, { doc }: NewFact): number | undefined =>
  doc === undefined ? undefined : docs[doc]

/** Links a known fact to another episode that states it. */
const linkEpisode = async ({ db }: StoreContext, id: number, batch: FactBatch, fact: NewFact): Promise<void> => {
  if (batch.episode === undefined || batch.unlinked.has(id)) return
  await db.run(
    `INSERT INTO fact_episode (fact_id, episode_id, doc_id, ord)
      VALUES (?1, ?2, ?3, (SELECT coalesce(max(ord) + 1, 0) FROM fact_episode WHERE fact_id = ?1))
      ON CONFLICT DO NOTHING`,
    id,
    batch.episode,
    docOf(batch, fact) ?? null,
  )
}

const BY_HASH = `${SELECT_SPANS} WHERE norm_hash = ? ORDER BY id`

/** The stored fact with the same words and entities that is still valid when the new one begins, or at `statedAt`. */
const findSame = async ({ db }: StoreContext, hash: Uint8Array, fact: NewFact, statedAt: Instant) => {
  const rows = await db.all(BY_HASH, hash)
  return rows
    .map(knownOf)
    .find(
      known =>
        !(known.invalidAt !== undefined && known.invalidAt <= (fact.validAt ?? statedAt)) &&
        !(known.validAt !== undefined && fact.invalidAt !== undefined && fact.invalidAt <= known.validAt),
    )
}

/** A fact stated again gains confidence, and ends if the new statement says so. */
const confirm = async (context: StoreContext, known: KnownFact, fact: NewFact): Promise<void> => {
  if (fact.confidence > known.confidence)
    await context.db.run('UPDATE fact SET confidence = ? WHERE id = ?', fact.confidence, known.id)
  if (fact.invalidAt === undefined || known.invalidAt !== undefined) return
  const ended = fact.invalidAt <= context.now() ? context.now() : undefined
  const span = { ...known, invalidAt: fact.invalidAt, expiredAt: known.expiredAt ?? ended }
  await setSpan(context, known.id, span)
}

const readContradicted = async (
  context: StoreContext,
  group: string,
  fact: NewFact,
  ends: readonly [number, number],
): Promise<KnownFact[]> => {
  const named = await readAllNamed(context, group, fact.contradicts, 'contradicts')
  if (!fact.singleValued) return named
  const sql = `${SELECT_SPANS} WHERE src = ? AND name = ? AND dst <> ? ORDER BY id`
  const rivals = (await context.db.all(sql, ends[0], fact.name, ends[1])).map(knownOf)
  return [...new Map([...named, ...rivals].map(known => [known.id, known])).values()]
}

const insertFact = async (
  context: StoreContext,
  batch: FactBatch,
  fact: NewFact,
  ends: readonly [number, number],
  hash: Uint8Array,
  span: FactTimes,
): Promise<number> => {
  const { db, now } = context
  const doc = docOf(batch, fact)
  if (fact.uuid !== undefined && (await db.get('SELECT 1 AS taken FROM fact WHERE uuid = ?', fact.uuid)))
    throw new StatementError(`There is a fact ${fact.uuid} already. Omit the uuid, or delete the old fact first.`)
  const id = await insertRow(db, 'fact', {
    uuid: fact.uuid ?? newUuid(now()),
    group_id: batch.group,
    src: ends[0],
    dst: ends[1],
    name: fact.name,
    fact: fact.fact,
    norm_hash: hash,
    doc_id: doc ?? null,
    valid_at: span.validAt ?? null,
    valid_gran: fact.granularity ?? null,
    invalid_at: span.invalidAt ?? null,
    created_at: now(),
    expired_at: span.expiredAt ?? null,
    reference_time: batch.referenceTime ?? null,
    attributes: JSON.stringify(fact.attributes ?? {}),
    origin: fact.origin,
    confidence: fact.confidence,
  })
  // A fact that a rule found quotes its passage, which is indexed already.
  if (fact.origin !== 'rule' || doc === undefined) await indexFact(context, id)
  batch.unlinked.set(id, doc)
  return id
}

/** Adds a fact to the full-text index. */
export const indexFact = async ({ db, index }: StoreContext, id: number): Promise<void> => {
  const row = await db.get<{ fact: string; ents: string; valid_at: number | null; group_id: string }>(
    `SELECT f.fact, s.name || ' · ' || t.name AS ents, f.valid_at, f.group_id FROM fact f
      JOIN entity s ON s.id = f.src JOIN entity t ON t.id = f.dst WHERE f.id = ?`,
    id,
  )
  if (!row) return
  const dt = row.valid_at === null ? '' : dateWords(row.valid_at)
  await index.put('fact', [{ id, group: row.group_id, texts: [indexText(row.fact), indexText(row.ents), dt] }])
}

/** Closes the facts that a fact names in `supersedes`; returns their ids. */
const closeSuperseded = async (context: StoreContext, id: number, span: FactTimes, old: readonly KnownFact[]) => {
  for (const known of old) await setSpan(context, known.id, supersede(known, span, context.now()), id)
  return old.map(known => known.id)
}

/** A fact without a date is valid from its episode's time on; a model's fact may have none. */
const dated = ({ referenceTime }: FactSource, fact: NewFact): NewFact => {
  if (fact.validAt !== undefined || referenceTime === undefined || fact.origin === 'llm') return fact
  return fact.invalidAt !== undefined && fact.invalidAt < referenceTime ? fact : { ...fact, validAt: referenceTime }
}

const storeAgain = async (
  context: StoreContext,
  batch: FactBatch,
  fact: NewFact,
  same: KnownFact,
): Promise<readonly number[]> => {
  const superseded = await readAllNamed(context, batch.group, fact.supersedes, 'supersedes')
  if (superseded.some(({ id }) => id === same.id))
    throw new StatementError(`The fact "${fact.fact.slice(0, 80)}" supersedes itself. Nothing was stored.`)
  await confirm(context, same, fact)
  await linkEpisode(context, same.id, batch, fact)
  return closeSuperseded(context, same.id, same, superseded)
}

/** Stores one fact: adds the episode to a fact that states the same, or a new fact that closes those it contradicts. */
export const storeFact = async (context: StoreContext, batch: FactBatch, given: NewFact): Promise<StoredFact> => {
  const fact = dated(batch, given)
  const { group, resolved } = batch
  const ends = [
    await resolveRef(context, group, fact.source, resolved),
    await resolveRef(context, group, fact.target, resolved),
  ] as const
  const hash = normHash(group, ends[0], ends[1], fact.fact)
  const same =
    fact.sameAs === undefined
      ? await findSame(context, hash, fact, batch.referenceTime ?? context.now())
      : await readNamed(context, group, fact.sameAs, 'same_as')
  if (same) return { id: same.id, ends, closed: await storeAgain(context, batch, fact, same) }
  const span = { validAt: fact.validAt, invalidAt: fact.invalidAt, expiredAt: undefined }
  const { fresh, closed } = closeContradicted(span, await readContradicted(context, group, fact, ends), context.now())
  const id = await insertFact(context, batch, fact, ends, hash, fresh)
  for (const { old, span: ended } of closed) await setSpan(context, old.id, ended, id)
  const superseded = await readAllNamed(context, group, fact.supersedes, 'supersedes')
  return {
    id,
    ends,
    closed: [...closed.map(({ old }) => old.id), ...(await closeSuperseded(context, id, fresh, superseded))],
  }
}

const BY_IDS = perDialect(dialect => `${selectFacts({ dialect })} WHERE ${dialect.inList('f.id')}`)

/** Facts by row id, in the order of the ids. */
export const readFacts = async ({ db }: StoreContext, ids: readonly number[]): Promise<Fact[]> => {
  if (ids.length === 0) return []
  return inOrderOf(ids, (await db.all(BY_IDS(db), ids)).map(factOf), ({ id }) => id)
}
