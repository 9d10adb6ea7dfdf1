import { fuse } from '../../../text/rank.ts'
import { sentencesOf } from '../../../text/sentences.ts'
import { foldWord, wordsOf } from '../../../text/words.ts'
import type { Doc } from '../model.ts'
import type { Groups, Hit, MemoryStore, VectorKind } from '../store.ts'
import type { ParsedQuery } from './question.ts'
import { newerFirst } from './ranking.ts'
import type { Weights } from './weights.ts'

/** The vector of a query, and the model whose stored vectors it is compared with. */
export interface Embedding {
  readonly model: string
  readonly vector: Float32Array
}

/** Turns a query into a vector; undefined if no model is configured or it does not answer. */
export type EmbedQuery = (text: string) => Promise<Embedding | undefined>

/** A query and where to search. */
export interface Search {
  readonly store: MemoryStore
  readonly groups: Groups
  readonly question: ParsedQuery
  readonly embedding?: Embedding | undefined
  readonly weights: Weights
}

const STATES_TIME =
  /\b(?:yesterday|today|tomorrow|tonight|ago|last|next|since|weekend|this (?:week|month|year|morning|evening)|(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|may|june|july|august|september|october|november|december|(?:19|20)\d\d|weeks?|months?|years?|days?)\b/i

/** Whether at least half of the sentences are questions. */
const isAsking = (text: string): boolean => {
  if (!/[?？]/.test(text)) return false
  const sentences = sentencesOf(text)
  return sentences.filter(sentence => /[?？]["'”’)]*$/.test(sentence.text)).length * 2 >= sentences.length
}

/** Whether the query contains the first word of the speaker's name. */
const isNamed = (actor: string | undefined, { words }: ParsedQuery): boolean =>
  actor !== undefined && words.has(wordsOf(actor)[0] ?? foldWord(actor))

/** The factor on a passage's score. */
const boostOf = (doc: Doc, question: ParsedQuery, { boosts }: Weights): number => {
  let factor = 1
  if (isNamed(doc.actor, question)) factor *= boosts.actor
  if (doc.kind === 'turn' && isAsking(doc.text)) factor *= boosts.question
  if (question.asksWhen && STATES_TIME.test(doc.text)) factor *= boosts.when
  const { range } = question
  if (range && doc.validAt >= range.start && doc.validAt <= range.end) factor *= boosts.inRange
  return factor
}

const rank = (docs: readonly Hit<Doc>[], { question, weights }: Search): Doc[] =>
  docs
    .map(doc => ({ doc, score: doc.score * boostOf(doc, question, weights) }))
    .toSorted((a, b) => b.score - a.score)
    .map(({ doc }) => doc)

/** The ids of the rows whose vectors are nearest to the query's, nearest first. */
export const nearestRows = async (
  { store, groups, embedding, weights }: Search,
  kind: VectorKind,
): Promise<number[]> => {
  if (!embedding) return []
  const rows = await store.nearest({ kind, ...embedding, groups, limit: weights.candidates })
  return rows.map(({ rowId }) => rowId)
}

/** The passages that answer a query best, best first; of two about the same thing, the newer first. */
export const searchPassages = async (search: Search): Promise<Doc[]> => {
  const docs = await rankPassages(search)
  const { terms, isAboutPast } = search.question
  return isAboutPast ? docs : newerFirst(docs, terms, ({ text, validAt: at }) => ({ text, at, kind: 'quoted' }))
}

/** The same by their scores alone. */
export const rankPassages = async (search: Search): Promise<Doc[]> => {
  const { store, groups, question, weights } = search
  const { terms } = question
  const limit = weights.candidates
  const hits = terms.length === 0 ? [] : await store.searchDocs({ terms, groups, limit, weights: weights.docs })
  const ranked = rank(hits, search)
  const near = await nearestRows(search, 'doc')
  if (near.length === 0) return ranked
  const docs = new Map(ranked.map(doc => [doc.id, doc]))
  for (const doc of await store.docs(near.filter(id => !docs.has(id)))) docs.set(doc.id, doc)
  const { constant, passages, vectors } = weights.fusion
  const lists = [
    { keys: ranked.map(({ id }) => id), weight: passages },
    { keys: near, weight: vectors },
  ]
  return [...fuse(lists, constant).keys()].flatMap(id => docs.get(id) ?? []).slice(0, limit)
}
