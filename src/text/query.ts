import { foldWord, isStopWord, stemOf, wordsOf } from './words.ts'

/** Scripts written without spaces between words, and Hangul, whose particles are attached to words. */
const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}ー々〆]/u

const UNSPACED_RUN = new RegExp(`${UNSPACED.source}+`, 'gu')
const UNSPACED_CUT = new RegExp(`(${UNSPACED.source}+)`, 'u')
const LONE_SURROGATE = /\p{Cs}/gu
const MARK = /^\p{M}/u
const CAMEL_CASE = /(?<![\p{L}\p{N}])\p{L}*(?:\p{Ll}\p{Lu}|\p{Lu}\p{Lu}\p{Ll}{2})[\p{L}\p{N}]*/gu
const CAMEL_CUT = /(?<=\p{Ll})(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll}{2})/u
const IS_ASCII = /^[\t-~]*$/

/** Letters with their combining marks. */
const lettersOf = (run: string): string[] => {
  const letters: string[] = []
  for (const point of run) {
    if (MARK.test(point) && letters.length > 0) letters[letters.length - 1] += point
    else letters.push(point)
  }
  return letters
}

/** The parts of a name like `readFileSync`; empty for a single word. */
const camelParts = (word: string): string[] => {
  const parts = word.split(CAMEL_CUT).filter(part => part.length > 1)
  return parts.length > 1 ? parts : []
}

/** Whether the text has letters of a script without spaces. */
export const isUnspaced = (text: string): boolean => UNSPACED.test(text)

/** Every two neighbouring letters of a run, and the last letter alone, so that a single letter is a prefix of a pair. */
const pairsOf = (run: string): string[] => {
  const letters = lettersOf(run)
  return letters.map((letter, index) => letter + (letters[index + 1] ?? ''))
}

/** The text to index: letter pairs for scripts without spaces, and the parts of `camelCase` names. Mostly the text itself. */
export const indexText = (text: string): string => {
  const spaced = IS_ASCII.test(text)
    ? text
    : text
        .replace(LONE_SURROGATE, '\uFFFD')
        .normalize('NFKC')
        .replace(UNSPACED_RUN, run => ` ${pairsOf(run).join(' ')} `)
  return spaced.replace(CAMEL_CASE, word => [word, ...camelParts(word)].join(' '))
}

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

const pairTerms = (run: string): QueryTerm[] => {
  const pairs = pairsOf(foldWord(run))
  const wanted = pairs.length > 1 ? pairs.slice(0, -1) : pairs
  return wanted.map(word => ({ word, stem: word, isPrefix: lettersOf(word).length === 1 }))
}

/** The terms of one run of letters: the word itself, its camel-case parts, or its letter pairs. */
const termsOfRun = (run: string): QueryTerm[] =>
  run
    .split(UNSPACED_CUT)
    .filter(part => part !== '')
    .flatMap(part =>
      isUnspaced(part)
        ? pairTerms(part)
        : [part, ...camelParts(part)].flatMap(wordsOf).map(word => ({ word, stem: stemOf(word), isPrefix: false })),
    )

/**
 * The words of a query to look for, each stem once. Stop words are left out unless there is nothing else; of too many,
 * the longest are kept, which are the rarest.
 */
export const queryTerms = (query: string): QueryTerm[] => {
  const runs = query.slice(0, MOST_CHARACTERS).normalize('NFKC').match(RUN) ?? []
  const found = runs.flatMap(termsOfRun).filter(({ word }) => word.length <= LONGEST_WORD)
  const all = [...new Map(found.map(term => [term.stem, term])).values()]
  const specific = all.filter(({ word }) => !isStopWord(word))
  const terms = specific.length > 0 ? specific : all
  if (terms.length <= MOST_TERMS) return terms
  const kept = new Set(terms.toSorted((a, b) => b.word.length - a.word.length).slice(0, MOST_TERMS))
  return terms.filter(term => kept.has(term))
}

/** The terms as an FTS5 query: any of them, each quoted so that no operator is read. Empty for no terms. */
export const ftsQuery = (terms: readonly QueryTerm[]): string =>
  terms.map(({ word, isPrefix }) => `"${word.replaceAll('"', '""')}"${isPrefix ? '*' : ''}`).join(' OR ')
