import { humpsOf, isUnspaced, lettersOf, piecesOf, splitScripts } from './index-text.ts'
import { isStopWord } from './stop-words.ts'
import { foldWord, stemOf, wordsOf } from './words.ts'

/** A word that a query looks for. */
export interface QueryTerm {
  readonly word: string // folded, letters and digits only
  readonly stem: string
  readonly isPrefix: boolean // a single letter of a script without spaces: the beginning of a pair
}

const MOST_TERMS = 32
const MOST_CHARACTERS = 20_000 // of a query
const LONGEST_WORD = 100
const RUN = /[\p{L}\p{N}\p{M}\p{Co}]+/gu

const plain = (word: string): QueryTerm => ({ word, stem: stemOf(word), isPrefix: false })

const unspaced = (run: string): QueryTerm[] =>
  piecesOf(foldWord(run)).map(word => ({ word, stem: word, isPrefix: lettersOf(word).length === 1 }))

/** The terms of one run of letters: the word itself, its humps, or its letter pairs. */
const termsOfRun = (run: string): QueryTerm[] =>
  splitScripts(run).flatMap(part =>
    isUnspaced(part) ? unspaced(part) : [part, ...humpsOf(part)].flatMap(wordsOf).map(plain),
  )

/** Every term once, by its stem. */
const distinct = (terms: readonly QueryTerm[]): QueryTerm[] => [
  ...new Map(terms.map(term => [term.stem, term])).values(),
]

/** The words of a query worth looking for: stop words left out unless there is nothing else, and of very many the longest, which are the rarest. */
export const queryTerms = (query: string): QueryTerm[] => {
  const runs = query.slice(0, MOST_CHARACTERS).normalize('NFKC').match(RUN) ?? []
  const all = distinct(runs.flatMap(termsOfRun).filter(({ word }) => word.length <= LONGEST_WORD))
  const telling = all.filter(({ word }) => !isStopWord(word))
  const terms = telling.length > 0 ? telling : all
  if (terms.length <= MOST_TERMS) return terms
  const kept = new Set(terms.toSorted((a, b) => b.word.length - a.word.length).slice(0, MOST_TERMS))
  return terms.filter(term => kept.has(term))
}

/** The terms in the full-text index's query language: any of them, each quoted so that nothing in it is an operator. Empty for no terms. */
export const ftsQuery = (terms: readonly QueryTerm[]): string =>
  terms.map(({ word, isPrefix }) => `"${word.replaceAll('"', '""')}"${isPrefix ? '*' : ''}`).join(' OR ')
