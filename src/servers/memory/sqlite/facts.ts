import type { SqlRow } from '../../../stores/sqlite.ts'
import { closeContradicted, type Span, supersede } from '../fact-validity.ts'
import { newUuid, normHash } from '../ids.ts'
import type { Fact, Instant, NewFact } from '../model.ts'
import { StoreError } from '../store.ts'
import { dateWords } from '../text/dates.ts'
import { indexText } from '../text/query.ts'
import type { Context } from './context.ts'
import { resolveRef } from './entities.ts'
import { FACTS, factOf } from './rows.ts'

/** Where new facts come from: the group, and the episode with its passages if one told them. */
export interface Teller {
  readonly group: string
  readonly episode: number | undefined
  readonly docs: readonly number[]
  readonly referenceTime: Instant | undefined
  /** Entities handed in under a uuid of the caller's own, by that uuid. */
  readonly called?: ReadonlyMap<string, number>
  /** Names resolved before in the same telling. */
  readonly named?: Map<string, number>
}

/** What became of one fact: its row, whether it is new, and the facts it ended. */
export interface Told {
  readonly id: number
  readonly isNew: boolean
  readonly ends: readonly [number, number]
  readonly closed: readonly number[]
}

interface Known extends Span {
  readonly id: number
  readonly confidence: number
}

const SPANS = 'SELECT id, valid_at, invalid_at, expired_at, confidence FROM fact'

const knownOf = (row: SqlRow): Known => ({
  id: Number(row.id),
  validAt: row.valid_at === null ? undefined : Number(row.valid_at),
  invalidAt: row.invalid_at === null ? undefined : Number(row.invalid_at),
  expiredAt: row.expired_at === null ? undefined : Number(row.expired_at),
  confidence: Number(row.confidence),
})

const setSpan = ({ db }: Context, id: number, span: Span, supersededBy?: number): void => {
  db.run(
    // Not before it was learnt, whatever the clock says now.
    'UPDATE fact SET invalid_at = ?, expired_at = max(?, created_at), superseded_by = coalesce(?, superseded_by) WHERE id = ?',
    span.invalidAt ?? null,
    span.expiredAt ?? null,
    supersededBy ?? null,
    id,
  )
}

const named = ({ db }: Context, group: string, uuid: string, role: string): Known => {
  const row = db.get(`${SPANS} WHERE uuid = ? AND group_id = ?`, uuid, group)
  if (row) return knownOf(row)
  throw new StoreError('invalid', `There is no fact ${uuid} in group ${group} for ${role}. Nothing was stored.`)
}

const linkEpisode = ({ db }: Context, fact: number, teller: Teller, doc: number | undefined): void => {
  if (teller.episode === undefined) return
  db.run(
    `INSERT INTO fact_episode (fact_id, episode_id, doc_id, ord)
      VALUES (?1, ?2, ?3, (SELECT coalesce(max(ord) + 1, 0) FROM fact_episode WHERE fact_id = ?1))
      ON CONFLICT DO NOTHING`,
    fact,
    teller.episode,
    doc ?? null,
  )
}

/** The same words between the same ends, told before and still true at the new one's time; without one, at `told`. */
const findSame = ({ db }: Context, hash: Uint8Array, fact: NewFact, told: Instant): Known | undefined =>
  db
    .all(`${SPANS} WHERE norm_hash = ?`, hash)
    .map(knownOf)
    .find(
      known =>
        !(known.invalidAt !== undefined && known.invalidAt <= (fact.validAt ?? told)) &&
        !(known.validAt !== undefined && fact.invalidAt !== undefined && fact.invalidAt <= known.validAt),
    )

/** A fact told again is believed more, and ends when the new telling says so. */
const confirm = (context: Context, known: Known, fact: NewFact): void => {
  if (fact.confidence > known.confidence)
    context.db.run('UPDATE fact SET confidence = ? WHERE id = ?', fact.confidence, known.id)
  if (fact.invalidAt !== undefined && known.invalidAt === undefined)
    setSpan(context, known.id, { ...known, invalidAt: fact.invalidAt, expiredAt: known.expiredAt ?? context.now() })
}

const contradictedBy = (context: Context, group: string, fact: NewFact, ends: readonly [number, number]): Known[] => {
  const stated = (fact.contradicts ?? []).map(uuid => named(context, group, uuid, 'contradicts'))
  if (!fact.singleValued) return stated
  const rivals = context.db
    .all(`${SPANS} WHERE src = ? AND name = ? AND dst <> ?`, ends[0], fact.name, ends[1])
    .map(knownOf)
  return [...new Map([...stated, ...rivals].map(known => [known.id, known])).values()]
}

const insert = (
  context: Context,
  teller: Teller,
  fact: NewFact,
  ends: readonly [number, number],
  hash: Uint8Array,
  span: Span,
): number => {
  const { db, now } = context
  const doc = fact.doc === undefined ? undefined : teller.docs[fact.doc]
  const uuid = fact.uuid ?? newUuid(now())
  if (fact.uuid !== undefined && db.get('SELECT 1 FROM fact WHERE uuid = ?', uuid))
    throw new StoreError('invalid', `There is a fact ${uuid} already. Leave its uuid out, or delete the old one first.`)
  const { id } = db.run(
    `INSERT INTO fact (uuid, group_id, src, dst, name, fact, norm_hash, doc_id, valid_at, valid_gran, invalid_at,
      created_at, expired_at, reference_time, attributes, origin, confidence)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    uuid,
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
  )
  // A rule's fact quotes its passage, which is indexed already.
  if (fact.origin !== 'rule' || doc === undefined) indexFact(context, id)
  linkEpisode(context, id, teller, doc)
  return id
}

/** Puts a fact into the full-text index under its own words. */
export const indexFact = ({ db }: Context, id: number): void => {
  const row = db.get<{ fact: string; ents: string; valid_at: number | null }>(
    `SELECT f.fact, s.name || ' · ' || t.name AS ents, f.valid_at FROM fact f
      JOIN entity s ON s.id = f.src JOIN entity t ON t.id = f.dst WHERE f.id = ?`,
    id,
  )
  if (!row) return
  db.run(
    'INSERT INTO fact_fts (rowid, fact, ents, dt) VALUES (?, ?, ?, ?)',
    id,
    indexText(row.fact),
    indexText(row.ents),
    row.valid_at === null ? '' : dateWords(row.valid_at),
  )
}

const endOthers = (
  context: Context,
  group: string,
  fact: NewFact,
  id: number,
  fresh: Span,
  closed: readonly { old: Known; span: Span }[],
): number[] => {
  for (const { old, span } of closed) setSpan(context, old.id, span, id)
  const superseded = [...new Set(fact.supersedes ?? [])].map(uuid => named(context, group, uuid, 'supersedes'))
  for (const old of superseded) setSpan(context, old.id, supersede(old, fresh, context.now()), id)
  return [...closed.map(({ old }) => old.id), ...superseded.map(old => old.id)]
}

/** What is stated without a time is stated of the time it was told at; a model may not know one. */
const dated = (teller: Teller, fact: NewFact): NewFact => {
  const { referenceTime } = teller
  if (fact.validAt !== undefined || referenceTime === undefined || fact.origin === 'llm') return fact
  return fact.invalidAt !== undefined && fact.invalidAt < referenceTime ? fact : { ...fact, validAt: referenceTime }
}

/** Stores one fact: known again if it was told before, otherwise new, ending whatever it contradicts or supersedes. */
export const tellFact = (context: Context, teller: Teller, given: NewFact): Told => {
  const fact = dated(teller, given)
  const { group } = teller
  const ends = [resolveRef(context, teller, fact.source), resolveRef(context, teller, fact.target)] as const
  const hash = normHash(group, ends[0], ends[1], fact.fact)
  const told = teller.referenceTime ?? context.now()
  const same =
    fact.sameAs === undefined ? findSame(context, hash, fact, told) : named(context, group, fact.sameAs, 'same_as')
  if (same) {
    if ((fact.supersedes ?? []).some(uuid => named(context, group, uuid, 'supersedes').id === same.id))
      throw new StoreError('invalid', `The fact "${fact.fact.slice(0, 80)}" supersedes itself. Nothing was stored.`)
    confirm(context, same, fact)
    linkEpisode(context, same.id, teller, fact.doc === undefined ? undefined : teller.docs[fact.doc])
    const closed = endOthers(context, group, fact, same.id, same, [])
    return { id: same.id, isNew: false, ends, closed }
  }
  const span = { validAt: fact.validAt, invalidAt: fact.invalidAt, expiredAt: undefined }
  const settled = closeContradicted(span, contradictedBy(context, group, fact, ends), context.now())
  const id = insert(context, teller, fact, ends, hash, settled.fresh)
  return { id, isNew: true, ends, closed: endOthers(context, group, fact, id, settled.fresh, settled.closed) }
}

/** Facts by row id, in the order asked for. */
export const readFacts = ({ db }: Context, ids: readonly number[]): Fact[] => {
  if (ids.length === 0) return []
  const rows = db.all(`${FACTS} WHERE f.id IN (SELECT value FROM json_each(?))`, JSON.stringify(ids))
  const found = new Map(rows.map(row => [Number(row.id), factOf(row)]))
  return ids.flatMap(id => found.get(id) ?? [])
}
