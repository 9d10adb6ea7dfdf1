import { type QueryTerm, queryTerms } from '../../text/query.ts'
import { rarity } from '../../text/rank.ts'
import type { Json } from '../../wire/json/json.ts'
import type { ListItem, MergedList } from '../catalog/merged-list.ts'
import type { Member } from '../member.ts'
import { fuseRankings, type RankByMeaning, type ToolMeaning, toolMeaning } from './tool-meaning.ts'
import { serverTerms, type TextTerms, termId, toolTerms, weightOf } from './tool-terms.ts'

interface SearchOptions {
  readonly limit: number
  /** What a server says about itself. */
  readonly about: (member: Member) => string | undefined
}

/** What a search has found. */
export type FoundTools =
  | { readonly kind: 'tools'; readonly items: readonly ListItem[]; readonly matching: number } // the best first
  | { readonly kind: 'overview'; readonly servers: readonly SearchedServer[]; readonly isForQuery: boolean } // nothing was asked for, or found

/** A server in an overview. */
export interface SearchedServer {
  readonly member: Member
  readonly tools: number
  readonly instructions: string | undefined
}

const BUSY_MS = 10 // the longest time in which the event loop is not released
const SATURATION = 1.5 // a word that counts twice as much raises the score by less
const releaseEventLoop = (): Promise<void> => new Promise(resolve => setImmediate(resolve))

/** Ranks the tools of a list by a query. Only what the caller may see is in the list. */
export type SearchTools = (list: MergedList, query: string, options: SearchOptions) => Promise<FoundTools>

/**
 * Makes the search of one workspace. Each definition is read once, for all callers and all later lists that have it. With a
 * model that compares meanings, its ranking and the one by words are fused.
 */
export const createToolSearch = (rankByMeaning?: RankByMeaning): SearchTools => {
  const known = new WeakMap<Json, TextTerms>()
  const meanings = new WeakMap<Json, ToolMeaning>()
  return async (list, query, { limit, about }) => {
    const terms = queryTerms(query)
    if (terms.length === 0) return overviewOf(list, about, false)
    const nearest = rankByMeaning?.(query, meaningsOf(list, meanings))
    const [tools, servers] = [await termsOfAll(list, known), serversOf(list, about)]
    const best = scoresOf(list, tools, servers, terms)
      .sort(byScore)
      .map(({ at }) => at)
    const byMeaning = await nearest
    const places = byMeaning ? fuseRankings(best, byMeaning) : best
    if (places.length === 0) return overviewOf(list, about, true)
    const items = places.slice(0, limit).flatMap(at => list.items[at] ?? [])
    return { kind: 'tools', items, matching: places.length }
  }
}

const meaningsOf = ({ items }: MergedList, known: WeakMap<Json, ToolMeaning>): readonly ToolMeaning[] =>
  items.map(item => {
    const meaning = known.get(item.identity) ?? toolMeaning(item.member.server, nameOf(item), item.whole)
    known.set(item.identity, meaning)
    return meaning
  })

interface ScoredTool {
  readonly item: ListItem
  readonly at: number // its place in the list
  readonly score: number
}

/** Equally good ones by their names, so that a search has one answer. */
const byScore = (a: ScoredTool, b: ScoredTool): number =>
  b.score - a.score || (a.item.exposed < b.item.exposed ? -1 : 1)

/** Without the prefix of its server, which has words of its own. */
const nameOf = ({ member, original }: ListItem): string => member.overlays.get(original)?.name ?? original

/** Reads the tools that no search has read before, in pieces that do not hold up other requests. */
const termsOfAll = async ({ items }: MergedList, known: WeakMap<Json, TextTerms>): Promise<readonly TextTerms[]> => {
  const all: TextTerms[] = []
  let begun = performance.now()
  for (const item of items) {
    const terms = known.get(item.identity) ?? toolTerms(nameOf(item), item.whole)
    known.set(item.identity, terms)
    all.push(terms)
    if (performance.now() - begun < BUSY_MS) continue
    await releaseEventLoop()
    begun = performance.now()
  }
  return all
}

/** The terms of each server, and for each tool which of them is its own. */
interface ServerTerms {
  readonly all: readonly TextTerms[]
  readonly of: Uint32Array
}

const serversOf = ({ items }: MergedList, about: SearchOptions['about']): ServerTerms => {
  const places = new Map<Member, number>()
  const all: TextTerms[] = []
  const of = Uint32Array.from(items, ({ member }) => {
    const known = places.get(member)
    if (known !== undefined) return known
    places.set(member, all.length)
    return all.push(serverTerms(member.server, about(member) ?? '')) - 1
  })
  return { all, of }
}

/** How much each tool has of a term, and how rare the term is. */
const matchesOf = (id: number, tools: readonly TextTerms[], servers: ServerTerms) => {
  const ofServers = servers.all.map(terms => weightOf(terms, id))
  const weights = Float32Array.from(tools, (tool, at) => weightOf(tool, id) + (ofServers[servers.of[at] ?? 0] ?? 0))
  let count = 0
  for (const weight of weights) if (weight > 0) count++
  return { weights, rare: rarity(count, tools.length) }
}

/** The score of each tool: rare words of the query count more, and so do words in important places. */
const scoresOf = (
  { items }: MergedList,
  tools: readonly TextTerms[],
  servers: ServerTerms,
  terms: readonly QueryTerm[],
): ScoredTool[] => {
  const matches = terms.map(({ stem }) => matchesOf(termId(stem), tools, servers))
  const all = matches.reduce((sum, { rare }) => sum + rare, 0)
  const found: ScoredTool[] = []
  for (const [at, item] of items.entries()) {
    let [score, covered] = [0, 0]
    for (const { weights, rare } of matches) {
      const weight = weights[at] as number
      if (weight === 0) continue
      score += (rare * weight) / (weight + SATURATION)
      covered += rare
    }
    if (score > 0) found.push({ item, at, score: score * Math.sqrt(covered / all) })
  }
  return found
}

const overviewOf = ({ items }: MergedList, about: SearchOptions['about'], isForQuery: boolean): FoundTools => {
  const counts = new Map<Member, number>()
  for (const { member } of items) counts.set(member, (counts.get(member) ?? 0) + 1)
  const servers = [...counts].map(([member, tools]) => ({ member, tools, instructions: about(member) }))
  return { kind: 'overview', servers, isForQuery }
}
