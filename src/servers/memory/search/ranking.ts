import type { QueryTerm } from '../../../text/query.ts'
import { containsTerm, stemsAmong } from '../../../text/rank.ts'
import { isStopWord, wordsOf } from '../../../text/words.ts'
import type { Instant } from '../model.ts'
import type { MemoryStore, Step } from '../store.ts'

const MOST_COMPARED = 30
const FEWEST_SHARED = 2 // words, and half of the longer statement

/** What `newerFirst` reads of an item. */
export interface RankedStatement {
  readonly text: string
  readonly at: Instant
  readonly kind: string // only statements of one kind are compared
}

/** Whether statements have most of their words in common. */
const isAlike = (one: ReadonlySet<string>, other: ReadonlySet<string>): boolean => {
  const shared = [...one].filter(word => other.has(word)).length
  return shared >= FEWEST_SHARED && shared * 2 >= Math.max(one.size, other.size)
}

/**
 * Of statements about the same thing, the newer takes the place of the older: they match the same words of the query
 * and have most of their words in common.
 */
export const newerFirst = <Item>(
  items: readonly Item[],
  terms: readonly QueryTerm[],
  statementOf: (item: Item) => RankedStatement,
): Item[] => {
  const prefixes = new Set(terms.map(({ stem }) => stem.slice(0, 2)))
  const rivals = new Map<string, { readonly place: number; readonly at: Instant; readonly text: string }[]>()
  for (const [place, item] of items.slice(0, MOST_COMPARED).entries()) {
    const { text, at, kind } = statementOf(item)
    const stems = stemsAmong(text, prefixes)
    const matched = terms.filter(term => containsTerm(text, stems, term)).map(({ stem }) => stem)
    if (matched.length < Math.min(FEWEST_SHARED, terms.length)) continue
    const key = [kind, ...matched].join(' ')
    rivals.set(key, [...(rivals.get(key) ?? []), { place, at, text }])
  }
  const sorted = [...items]
  for (const found of rivals.values()) {
    const clusters: { readonly words: ReadonlySet<string>; readonly members: typeof found }[] = []
    for (const member of found.length > 1 ? found : []) {
      const words = new Set(wordsOf(member.text).filter(word => !isStopWord(word)))
      const cluster = clusters.find(known => isAlike(known.words, words))
      if (cluster) cluster.members.push(member)
      else clusters.push({ words, members: [member] })
    }
    for (const { members } of clusters) {
      const newest = members.toSorted((a, b) => b.at - a.at)
      for (const [rank, { place }] of members.entries()) sorted[place] = items[newest[rank]?.place ?? place] as Item
    }
  }
  return sorted
}

const MOST_NODES = 5_000
const MOST_STEPS = 20_000 // read per hop
const CENTER_HOPS = 4

/** The entities around some others. */
export interface Neighbourhood {
  readonly distances: ReadonlyMap<number, number> // entity → hops from the nearest start
  readonly steps: readonly Step[] // nearest first
}

/** Walks along facts in both directions, up to `hops` away. */
export const neighbourhoodOf = async (
  store: Pick<MemoryStore, 'neighbours'>,
  from: readonly number[],
  hops: number,
  most = MOST_STEPS,
): Promise<Neighbourhood> => {
  const distances = new Map(from.map(id => [id, 0]))
  const steps: Step[] = []
  let frontier = [...from]
  for (let hop = 1; hop <= hops && frontier.length > 0 && distances.size < MOST_NODES; hop++) {
    const next = await store.neighbours(frontier, most)
    frontier = []
    for (const step of next) {
      steps.push(step)
      if (distances.has(step.to) || distances.size >= MOST_NODES) continue
      distances.set(step.to, hop)
      frontier.push(step.to)
    }
  }
  return { distances, steps }
}

/** Sorts items by the distance of their entities from the center; equally near ones keep their order. */
export const sortByDistance = async <Item>(
  store: Pick<MemoryStore, 'neighbours'>,
  items: readonly Item[],
  center: number | undefined,
  entitiesOf: (item: Item) => readonly number[],
): Promise<readonly Item[]> => {
  if (center === undefined) return items
  const { distances } = await neighbourhoodOf(store, [center], CENTER_HOPS)
  const hopsTo = (item: Item): number => Math.min(...entitiesOf(item).map(id => distances.get(id) ?? CENTER_HOPS + 1))
  return items.toSorted((a, b) => hopsTo(a) - hopsTo(b))
}

/** Each item once, at its first place. */
export const distinct = <Item extends { readonly id: number }>(items: readonly Item[]): Item[] => {
  const seen = new Map<number, Item>()
  for (const item of items) if (!seen.has(item.id)) seen.set(item.id, item)
  return [...seen.values()]
}
