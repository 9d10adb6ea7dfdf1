import { closeContradicted, type Span, supersede } from '../fact-validity.ts'
import { newUuid, normHash } from '../ids.ts'
import type { Fact, Instant, NewFact } from '../model.ts'
import type { Teller, Told } from '../sqlite/facts.ts'
import { factOf } from '../sqlite/rows.ts'
import { StoreError } from '../store.ts'
import { dateWords } from '../text/dates.ts'
import { indexText } from '../text/query.ts'
import type { Context } from './context.ts'
import { resolveRef } from './entities.ts'
import { index } from './indexing.ts'
import { FACTS, idIn } from './rows.ts'

interface Known extends Span {
  readonly id: number
  readonly confidence: number
}

interface SpanRow {
  readonly id: number
  readonly valid_at: number | null
  readonly invalid_at: number | null
  readonly expired_at: number | null
  readonly confidence: number
}

const SPANS = 'SELECT id, valid_at, invalid_at, expired_at, confidence FROM fact'

const knownOf = ({ id, valid_at, invalid_at, expired_at, confidence }: SpanRow): Known => ({
  id,
  validAt: valid_at ?? undefined,
  invalidAt: invalid_at ?? undefined,
  expiredAt: expired_at ?? undefined,
  confidence,
})

const setSpan = async ({ db }: Context, id: number, span: Span, supersededBy?: number): Promise<void> => {
  await db.run(
    // Not before it was learnt, whatever the clock says now.
    `UPDATE fact SET invalid_at = ?1, expired_at = CASE WHEN ?2::bigint IS NOT NULL THEN greatest(?2::bigint, created_at) END,
      superseded_by = coalesce(?3, superseded_by) WHERE id = ?4`,
    span.invalidAt ?? null,
    span.expiredAt ?? null,
    supersededBy ?? null,
    id,
  )
}

const named = async ({ db }: Context, group: string, uuid: string, role: string): Promise<Known> => {
  const row = await db.get<SpanRow>(`${SPANS} WHERE uuid = ? AND group_id = ?`, uuid, group)
  if (row) return knownOf(row)
  throw new StoreError('invalid', `There is no fact ${uuid} in group ${group} for ${role}. Nothing was stored.`)
}

const allNamed = async (context: Context, group: string, uuids: readonly string[], role: string): Promise<Known[]> => {
  const known: Known[] = []
  for (const uuid of new Set(uuids)) known.push(await named(context, group, uuid, role))
  return known
}

const linkEpisode = async ({ db }: Context, fact: number, teller: Teller, doc: number | undefined): Promise<void> => {
  if (teller.episode === undefined) return
  await db.run(
    `INSERT INTO fact_episode (fact_id, episode_id, doc_id, ord)
      VALUES (?1, ?2, ?3, (SELECT coalesce(max(ord) + 1, 0) FROM fact_episode WHERE fact_id = ?1))
      ON CONFLICT DO NOTHING`,
    fact,
    teller.episode,
    doc ?? null,
  )
}

/** The same words between the same ends, told before and still true at the new one's time; without one, at `told`. */
const findSame = async ({ db }: Context, hash: Uint8Array, fact: NewFact, told: Instant): Promise<Known | undefined> =>
  (await db.all<SpanRow>(`${SPANS} WHERE norm_hash = ? ORDER BY id`, hash))
    .map(knownOf)
    .find(
      known =>
        !(known.invalidAt !== undefined && known.invalidAt <= (fact.validAt ?? told)) &&
        !(known.validAt !== undefined && fact.invalidAt !== undefined && fact.invalidAt <= known.validAt),
    )

/** A fact told again is believed more, and ends when the new telling says so. */
const confirm = async (context: Context, known: Known, fact: NewFact): Promise<void> => {
  if (fact.confidence > known.confidence)
    await context.db.run('UPDATE fact SET confidence = ? WHERE id = ?', fact.confidence, known.id)
  if (fact.invalidAt !== undefined && known.invalidAt === undefined)
    await setSpan(context, known.id, {
      ...known,
      invalidAt: fact.invalidAt,
      expiredAt: known.expiredAt ?? context.now(),
    })
}

const contradictedBy = async (
  context: Context,
  group: string,
  fact: NewFact,
  ends: readonly [number, number],
): Promise<Known[]> => {
  const stated = await allNamed(context, group, fact.contradicts ?? [], 'contradicts')
  if (!fact.singleValued) return stated
  const sql = `${SPANS} WHERE src = ? AND name = ? AND dst <> ? ORDER BY id`
  const rivals = (await context.db.all<SpanRow>(sql, ends[0], fact.name, ends[1])).map(knownOf)
  return [...new Map([...stated, ...rivals].map(known => [known.id, known])).values()]
}

const refuseTaken = async ({ db }: Context, uuid: string): Promise<void> => {
  if (await db.get('SELECT 1 AS there FROM fact WHERE uuid = ?', uuid))
    throw new StoreError('invalid', `There is a fact ${uuid} already. Leave its uuid out, or delete the old one first.`)
}

const INSERT = `INSERT INTO fact (uuid, group_id, src, dst, name, fact, norm_hash, doc_id, valid_at, valid_gran, invalid_at,
  created_at, expired_at, reference_time, attributes, origin, confidence)
  VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17) RETURNING id, doc_id`

const INSERT_TOLD = `WITH told AS (${INSERT}) INSERT INTO fact_episode (fact_id, episode_id, doc_id, ord)
  SELECT id, ?18::bigint, doc_id, 0 FROM told RETURNING fact_id AS id`

const insert = async (
  context: Context,
  teller: Teller,
  fact: NewFact,
  ends: readonly [number, number],
  hash: Uint8Array,
  span: Span,
): Promise<number> => {
  const { db, now } = context
  const doc = fact.doc === undefined ? undefined : teller.docs[fact.doc]
  if (fact.uuid !== undefined) await refuseTaken(context, fact.uuid)
  const row = await db.get<{ id: number }>(
    teller.episode === undefined ? INSERT : INSERT_TOLD,
    fact.uuid ?? newUuid(now()),
    teller.group,
    ends[0],
    ends[1],
    fact.name,
    fact.fact,
    hash,
    doc ?? null,
    span.validAt ?? null,
    fact.granularity ?? null,
    span.invalidAt ?? null,
    now(),
    span.expiredAt ?? null,
    teller.referenceTime ?? null,
    JSON.stringify(fact.attributes ?? {}),
    fact.origin,
    fact.confidence,
    ...(teller.episode === undefined ? [] : [teller.episode]),
  )
  const id = idIn(row)
  // A rule's fact quotes its passage, which is indexed already.
  if (fact.origin !== 'rule' || doc === undefined) await indexFact(context, id)
  return id
}

/** Puts a fact into the full-text index under its own words. */
export const indexFact = async (context: Context, id: number): Promise<void> => {
  const row = await context.db.get<{ fact: string; ents: string; valid_at: number | null; group_id: string }>(
    `SELECT f.fact, s.name || ' · ' || t.name AS ents, f.valid_at, f.group_id FROM fact f
      JOIN entity s ON s.id = f.src JOIN entity t ON t.id = f.dst WHERE f.id = ?`,
    id,
  )
  if (!row) return
  const dt = row.valid_at === null ? '' : dateWords(row.valid_at)
  await index(context, 'fact', [{ id, group: row.group_id, texts: [indexText(row.fact), indexText(row.ents), dt] }])
}

const endOthers = async (
  context: Context,
  group: string,
  fact: NewFact,
  id: number,
  fresh: Span,
  closed: readonly { old: Known; span: Span }[],
): Promise<number[]> => {
  for (const { old, span } of closed) await setSpan(context, old.id, span, id)
  const superseded = await allNamed(context, group, fact.supersedes ?? [], 'supersedes')
  for (const old of superseded) await setSpan(context, old.id, supersede(old, fresh, context.now()), id)
  return [...closed.map(({ old }) => old.id), ...superseded.map(old => old.id)]
}

/** What is stated without a time is stated of the time it was told at; a model may not know one. */
const dated = (teller: Teller, fact: NewFact): NewFact => {
  const { referenceTime } = teller
  if (fact.validAt !== undefined || referenceTime === undefined || fact.origin === 'llm') return fact
  return fact.invalidAt !== undefined && fact.invalidAt < referenceTime ? fact : { ...fact, validAt: referenceTime }
}

const tellAgain = async (
  context: Context,
  teller: Teller,
  fact: NewFact,
  same: Known,
  ends: readonly [number, number],
): Promise<Told> => {
  const { group } = teller
  const superseded = await allNamed(context, group, fact.supersedes ?? [], 'supersedes')
  if (superseded.some(({ id }) => id === same.id))
    throw new StoreError('invalid', `The fact "${fact.fact.slice(0, 80)}" supersedes itself. Nothing was stored.`)
  await confirm(context, same, fact)
  await linkEpisode(context, same.id, teller, fact.doc === undefined ? undefined : teller.docs[fact.doc])
  const closed = await endOthers(context, group, fact, same.id, same, [])
  return { id: same.id, isNew: false, ends, closed }
}

/** Stores one fact: known again if it was told before, otherwise new, ending whatever it contradicts or supersedes. */
export const tellFact = async (context: Context, teller: Teller, given: NewFact): Promise<Told> => {
  const fact = dated(teller, given)
  const { group } = teller
  const ends = [await resolveRef(context, teller, fact.source), await resolveRef(context, teller, fact.target)] as const
  const hash = normHash(group, ends[0], ends[1], fact.fact)
  const same =
    fact.sameAs === undefined
      ? await findSame(context, hash, fact, teller.referenceTime ?? context.now())
      : await named(context, group, fact.sameAs, 'same_as')
  if (same) return tellAgain(context, teller, fact, same, ends)
  const span = { validAt: fact.validAt, invalidAt: fact.invalidAt, expiredAt: undefined }
  const settled = closeContradicted(span, await contradictedBy(context, group, fact, ends), context.now())
  const id = await insert(context, teller, fact, ends, hash, settled.fresh)
  const closed = await endOthers(context, group, fact, id, settled.fresh, settled.closed)
  return { id, isNew: true, ends, closed }
}

/** Facts by row id, in the order asked for. */
export const readFacts = async ({ db }: Context, ids: readonly number[]): Promise<Fact[]> => {
  if (ids.length === 0) return []
  const rows = await db.all(`${FACTS} WHERE f.id = ANY (?)`, ids)
  const found = new Map(rows.map(row => [Number(row.id), factOf(row)]))
  return ids.flatMap(id => found.get(id) ?? [])
}
