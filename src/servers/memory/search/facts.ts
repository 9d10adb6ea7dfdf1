import { fuse, interleave, type Overlap, overlapWith } from '../../../text/rank.ts'
import { isValidAt } from '../fact-validity.ts'
import type { Doc, Entity, Fact } from '../model.ts'
import type { FactFilter } from '../store.ts'
import { nearestRows, rankPassages, type Search } from './passages.ts'
import { distinct, neighbourhoodOf, newerFirst, type RankedStatement, sortByDistance } from './ranking.ts'

export interface FactSearch extends Search {
  readonly limit: number
  readonly filter?: FactFilter | undefined
  /** Facts near this entity come first. */
  readonly center?: number | undefined
}

const HUB = 200 // an entity with more facts than this does not narrow a search
const MOST_LINKED = 8
const FEWEST_PASSAGES = 50

const hasDates = ({ names: _, ...bounds }: FactFilter = {}): boolean =>
  Object.values(bounds).some(bound => bound !== undefined)

const isBetween = (at: number | undefined, after: number | undefined, before: number | undefined): boolean =>
  (after === undefined || (at !== undefined && at >= after)) &&
  (before === undefined || (at !== undefined && at <= before))

const passes = (fact: Fact, filter: FactFilter = {}): boolean =>
  (!filter.names?.length || filter.names.includes(fact.name)) &&
  isBetween(fact.validAt, filter.validAfter, filter.validBefore) &&
  isBetween(fact.invalidAt, filter.invalidAfter, filter.invalidBefore) &&
  (filter.asOf === undefined || isValidAt(fact, filter.asOf))

const wantsPast = ({ question, filter }: FactSearch): boolean => question.isAboutPast || hasDates(filter)

/** The factor on the fused score of a fact. */
const boostOf = (fact: Fact, search: FactSearch, linked: ReadonlySet<number>): number => {
  const { boosts } = search.weights
  const isPast =
    fact.expiredAt !== undefined || (fact.invalidAt !== undefined && fact.invalidAt <= search.question.askedAt)
  const expired = isPast && !wantsPast(search) ? boosts.expired : 1
  const isAboutLinked = fact.origin !== 'rule' && (linked.has(fact.sourceId) || linked.has(fact.targetId))
  return expired * (isAboutLinked ? boosts.linked : 1)
}

/** The facts of the passages in their order; within a passage, the facts that overlap most with the query first. */
const factsOfPassages = async (search: FactSearch, docs: readonly Doc[], overlap: Overlap): Promise<Fact[]> => {
  const found = await search.store.factsOfDocs(
    docs.map(({ id }) => id),
    search.filter,
  )
  const places = new Map(docs.map(({ id }, place) => [id, place]))
  const ranked = found
    .map(fact => ({ fact, place: places.get(fact.docId ?? -1) ?? docs.length, share: overlap(fact.fact) }))
    .toSorted((a, b) => a.place - b.place || b.share - a.share || b.fact.fact.length - a.fact.fact.length)
    .map(({ fact }) => fact)
  return distinct(ranked)
}

/** Facts up to a few hops from the entities that the query names, except hubs. */
const factsAround = async (search: FactSearch, linked: readonly Entity[], overlap: Overlap): Promise<Fact[]> => {
  const { store, weights, filter } = search
  const starts: number[] = []
  for (const { id } of linked.slice(0, MOST_LINKED))
    if ((await store.neighbours([id], HUB)).length < HUB) starts.push(id)
  const { distances, steps } = await neighbourhoodOf(store, starts, weights.hops, weights.candidates)
  const ids = [...new Set(steps.map(({ factId }) => factId))].slice(0, weights.candidates)
  const facts = ids.length === 0 ? [] : await store.factsById(ids)
  const hopsTo = ({ sourceId, targetId }: Fact) =>
    Math.min(distances.get(sourceId) ?? weights.hops, distances.get(targetId) ?? weights.hops)
  return facts
    .filter(fact => passes(fact, filter))
    .map(fact => ({ fact, hops: hopsTo(fact), share: overlap(fact.fact) }))
    .toSorted((a, b) => b.share - a.share || a.hops - b.hops || (b.fact.validAt ?? 0) - (a.fact.validAt ?? 0))
    .map(({ fact }) => fact)
}

/** Facts whose vectors are near the query's. */
const factsByVector = async (search: FactSearch): Promise<Fact[]> => {
  const rows = await nearestRows(search, 'fact')
  if (rows.length === 0) return []
  const places = new Map(rows.map((id, place) => [id, place]))
  const facts = await search.store.factsById(rows)
  const inOrder = facts.toSorted((a, b) => (places.get(a.id) ?? 0) - (places.get(b.id) ?? 0))
  return inOrder.filter(fact => passes(fact, search.filter))
}

/** Facts in the period of the filter that share a term with the query, which full-text search may have missed. */
const factsInPeriod = async (search: FactSearch, overlap: Overlap): Promise<Fact[]> => {
  const { store, groups, question, filter, weights } = search
  if (!filter || !hasDates(filter)) return []
  const facts = await store.factsByTime(groups, weights.candidates, filter)
  if (question.terms.length === 0) return [...facts]
  return facts
    .map(fact => ({ fact, share: overlap(fact.fact) }))
    .filter(({ share }) => share > 0)
    .toSorted((a, b) => b.share - a.share)
    .map(({ fact }) => fact)
}

const passageOf = (fact: Fact): unknown => fact.docId

/** A rule's fact is as new as the episode that it quotes, whatever date its sentence mentions. */
const statementOf = ({ fact: text, origin, validAt, referenceTime, createdAt }: Fact): RankedStatement =>
  origin === 'rule'
    ? { text, at: referenceTime ?? createdAt, kind: 'quoted' }
    : { text, at: validAt ?? createdAt, kind: 'stated' }

/** The results of one way of searching, best first, and their weight. */
interface FactList {
  readonly facts: readonly Fact[]
  readonly weight: number
}

const listsOf = async (search: FactSearch, linked: readonly Entity[]): Promise<readonly FactList[]> => {
  const { store, groups, question, weights, filter } = search
  const { terms } = question
  const { candidates: limit, fusion } = weights
  const passages = await rankPassages(search)
  // A filter may leave few facts of the best passages.
  const isFiltered = hasDates(filter) || filter?.names?.length
  const docs = isFiltered ? passages : passages.slice(0, Math.max(FEWEST_PASSAGES, search.limit * 3))
  const overlap = overlapWith(
    terms,
    docs.map(({ text }) => text),
  )
  const read = await factsOfPassages(search, docs, overlap)
  const given =
    terms.length === 0 ? [] : await store.searchFacts({ terms, groups, limit, weights: weights.facts }, filter)
  return [
    { facts: interleave(read, passageOf, limit), weight: fusion.passages },
    { facts: given, weight: fusion.given },
    { facts: await factsAround(search, linked, overlap), weight: fusion.graph },
    { facts: await factsInPeriod(search, overlap), weight: fusion.graph },
    { facts: await factsByVector(search), weight: fusion.vectors },
  ]
}

/** The facts that answer a query best, best first, spread over the passages that state them. */
export const searchFacts = async (search: FactSearch): Promise<readonly Fact[]> => {
  const { store, groups, question, weights, limit, center } = search
  const linked = question.names.length === 0 ? [] : await store.entitiesNamed(question.names, groups)
  const lists = await listsOf(search, linked)
  const facts = new Map(distinct(lists.flatMap(list => list.facts)).map(fact => [fact.id, fact]))
  const ranked = lists.map(({ facts: found, weight }) => ({ keys: found.map(({ id }) => id), weight }))
  const fused = fuse(ranked, weights.fusion.constant)
  const ids = new Set(linked.map(({ id }) => id))
  const scored = [...fused].flatMap(([id, score]) => {
    const fact = facts.get(id)
    return fact ? [{ fact, score: score * boostOf(fact, search, ids) }] : []
  })
  const byScore = scored.toSorted((a, b) => b.score - a.score).map(({ fact }) => fact)
  const inOrder = wantsPast(search) ? byScore : newerFirst(byScore, question.terms, statementOf)
  const best = interleave(inOrder, passageOf, weights.candidates)
  return (await sortByDistance(store, best, center, fact => [fact.sourceId, fact.targetId])).slice(0, limit)
}
