import type { Doc, Entity, Fact } from '../model.ts'
import type { FactFilter } from '../store.ts'
import { surroundingsOf } from './distance.ts'
import { fuse, spread } from './fuse.ts'
import { type Overlap, overlapWith } from './overlap.ts'
import { type Search, searchPassages } from './passages.ts'

/** A search for facts. */
export interface FactSearch extends Search {
  readonly limit: number
  readonly filter?: FactFilter | undefined
  /** Facts near this entity come first. */
  readonly center?: number | undefined
}

const CENTER_HOPS = 4
const HUB = 200 // an entity with more facts than this says nothing by being named

const MOST_LINKED = 8
const FEWEST_PASSAGES = 50

const isDated = (filter: FactFilter | undefined): boolean =>
  filter !== undefined &&
  [filter.validAfter, filter.validBefore, filter.invalidAfter, filter.invalidBefore].some(bound => bound !== undefined)

const within = (at: number | undefined, after: number | undefined, before: number | undefined): boolean =>
  (after === undefined || (at !== undefined && at >= after)) &&
  (before === undefined || (at !== undefined && at <= before))

const passes = (fact: Fact, filter: FactFilter = {}): boolean =>
  (!filter.names?.length || filter.names.includes(fact.name)) &&
  within(fact.validAt, filter.validAfter, filter.validBefore) &&
  within(fact.invalidAt, filter.invalidAfter, filter.invalidBefore)

/** What a fact's worth is multiplied with, whichever list it came by. */
const boostOf = (fact: Fact, { question, filter, weights }: FactSearch, linked: ReadonlySet<number>): number => {
  const { boosts } = weights
  const isPast = fact.expiredAt !== undefined || fact.invalidAt !== undefined
  const wantsPast = question.isAboutPast || isDated(filter)
  const expired = isPast && !wantsPast ? boosts.expired : 1
  const isAboutLinked = fact.origin !== 'rule' && (linked.has(fact.sourceId) || linked.has(fact.targetId))
  return expired * (isAboutLinked ? boosts.linked : 1)
}

/** Every fact once, where it stands first: one that was told in two passages comes with the better. */
const once = (facts: readonly Fact[]): Fact[] => {
  const seen = new Map<number, Fact>()
  for (const fact of facts) if (!seen.has(fact.id)) seen.set(fact.id, fact)
  return [...seen.values()]
}

/** The facts read from these passages in the passages' order, of each passage the ones nearest to the query first. */
const readFrom = async (search: FactSearch, docs: readonly Doc[], overlap: Overlap): Promise<Fact[]> => {
  const found = await search.store.factsOfDocs(
    docs.map(({ id }) => id),
    search.filter,
  )
  const places = new Map(docs.map(({ id }, place) => [id, place]))
  const ranked = found
    .map(fact => ({ fact, place: places.get(fact.docId ?? -1) ?? docs.length, share: overlap(fact.fact) }))
    .toSorted((a, b) => a.place - b.place || b.share - a.share || b.fact.fact.length - a.fact.fact.length)
    .map(({ fact }) => fact)
  return once(ranked)
}

/** Facts up to a few hops from the entities a query names, unless these know too many. */
const reachedFrom = async (search: FactSearch, linked: readonly Entity[], overlap: Overlap): Promise<Fact[]> => {
  const { store, weights, filter } = search
  const close: number[] = []
  for (const { id } of linked.slice(0, MOST_LINKED))
    if ((await store.neighbours([id], HUB)).length < HUB) close.push(id)
  const { distances, steps } = await surroundingsOf(store, close, weights.hops, weights.candidates)
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
const likeQuery = async (search: FactSearch): Promise<Fact[]> => {
  const { store, groups, embedding, weights, filter } = search
  if (!embedding) return []
  const rows = await store.nearest({ kind: 'fact', ...embedding, groups, limit: weights.candidates })
  const facts = await store.factsById(rows.map(({ rowId }) => rowId))
  const places = new Map(rows.map(({ rowId }, place) => [rowId, place]))
  const inOrder = facts.toSorted((a, b) => (places.get(a.id) ?? 0) - (places.get(b.id) ?? 0))
  return inOrder.filter(fact => passes(fact, filter))
}

/** Facts of the time a filter asks for that hold something of the query, should full text have looked elsewhere. */
const inTime = async (search: FactSearch, overlap: Overlap): Promise<Fact[]> => {
  const { store, groups, question, filter, weights } = search
  if (!filter || !isDated(filter)) return []
  const facts = await store.factsByTime(groups, weights.candidates, filter)
  if (question.terms.length === 0) return [...facts]
  return facts
    .map(fact => ({ fact, share: overlap(fact.fact) }))
    .filter(({ share }) => share > 0)
    .toSorted((a, b) => b.share - a.share)
    .map(({ fact }) => fact)
}

/** Near the centre first; among equally near ones the order stays. */
const aroundCenter = async (store: Search['store'], facts: readonly Fact[], center: number): Promise<Fact[]> => {
  const { distances } = await surroundingsOf(store, [center], CENTER_HOPS)
  const far = CENTER_HOPS + 1
  const hopsTo = ({ sourceId, targetId }: Fact) =>
    Math.min(distances.get(sourceId) ?? far, distances.get(targetId) ?? far)
  return facts.toSorted((a, b) => hopsTo(a) - hopsTo(b))
}

const sourceOf = (fact: Fact): unknown => fact.docId

/** What one way of finding yields, best first, and how much that counts. */
interface FactList {
  readonly facts: readonly Fact[]
  readonly weight: number
}

const listsOf = async (search: FactSearch, linked: readonly Entity[]): Promise<readonly FactList[]> => {
  const { store, groups, question, weights, filter } = search
  const { terms } = question
  const { candidates: limit, fusion } = weights
  const passages = await searchPassages(search)
  // A filter may leave little of the best passages.
  const docs =
    isDated(filter) || filter?.names?.length ? passages : passages.slice(0, Math.max(FEWEST_PASSAGES, search.limit * 3))
  const overlap = overlapWith(
    terms,
    docs.map(({ text }) => text),
  )
  const read = await readFrom(search, docs, overlap)
  const given =
    terms.length === 0 ? [] : await store.searchFacts({ terms, groups, limit, weights: weights.facts }, filter)
  return [
    { facts: spread(read, sourceOf, limit), weight: fusion.passages },
    { facts: given, weight: fusion.given },
    { facts: await reachedFrom(search, linked, overlap), weight: fusion.graph },
    { facts: await inTime(search, overlap), weight: fusion.graph },
    { facts: await likeQuery(search), weight: fusion.vectors },
  ]
}

/** The facts that answer a query best, best first, spread over what they were read from. */
export const searchFacts = async (search: FactSearch): Promise<Fact[]> => {
  const { store, groups, question, weights, limit, center } = search
  const linked = question.names.length === 0 ? [] : await store.entitiesNamed(question.names, groups)
  const lists = await listsOf(search, linked)
  const facts = new Map(once(lists.flatMap(list => list.facts)).map(fact => [fact.id, fact]))
  const ranked = lists.map(({ facts: found, weight }) => ({ keys: found.map(({ id }) => id), weight }))
  const fused = fuse(ranked, weights.fusion.constant)
  const ids = new Set(linked.map(({ id }) => id))
  const scored = [...fused].flatMap(([id, score]) => {
    const fact = facts.get(id)
    return fact ? [{ fact, score: score * boostOf(fact, search, ids) }] : []
  })
  const best = spread(
    scored.toSorted((a, b) => b.score - a.score).map(({ fact }) => fact),
    sourceOf,
    weights.candidates,
  )
  const ordered = center === undefined ? best : await aroundCenter(store, best, center)
  return ordered.slice(0, limit)
}
