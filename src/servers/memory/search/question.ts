import { type QueryTerm, queryTerms } from '../../../text/query.ts'
import { isStopWord, wordsOf } from '../../../text/words.ts'
import type { Instant } from '../model.ts'
import { datesIn, type TimeSpan } from '../text/dates.ts'
import { normaliseName } from '../text/names.ts'

/** A parsed query. */
export interface ParsedQuery {
  readonly terms: readonly QueryTerm[]
  readonly words: ReadonlySet<string> // all words, folded
  readonly names: readonly string[] // normalised word sequences that may be names of entities
  readonly range: TimeSpan | undefined // the period it mentions
  readonly asksWhen: boolean
  readonly isAboutPast: boolean
  readonly askedAt: Instant
}

const MOST_CHARACTERS = 4_000
const MOST_WORDS_OF_NAME = 4
const MOST_NAMES = 160
const ASKS_WHEN =
  /^\W*(?:when|since when|how long|how old|what (?:date|day|month|year|time)|which (?:date|day|month|year)|in (?:what|which) (?:month|year)|how many (?:years|months|weeks|days)|date of)\b/i
const ABOUT_PAST =
  /\b(?:used to|previous(?:ly)?|former(?:ly)?|earlier|originally|in the past|no longer|back then|at that time|history|historical(?:ly)?|years? ago|before)\b/i

/** All sequences of up to four words that neither start nor end with a stop word. */
const namesIn = (query: string): string[] => {
  const words = normaliseName(query)
    .split(/[\s,;:!?()"“”]+/u)
    .filter(word => word !== '')
  const names = new Set<string>()
  for (let from = 0; from < words.length && names.size < MOST_NAMES; from++) {
    if (isStopWord(words[from] ?? '')) continue
    for (let to = from + 1; to <= Math.min(words.length, from + MOST_WORDS_OF_NAME); to++) {
      if (!isStopWord(words[to - 1] ?? '')) names.add(normaliseName(words.slice(from, to).join(' ')))
    }
  }
  names.delete('')
  return [...names].slice(0, MOST_NAMES)
}

const rangeOf = (query: string, now: Instant): TimeSpan | undefined => {
  const dates = datesIn(query, new Date(now))
  if (dates.length === 0) return undefined
  return { start: Math.min(...dates.map(({ start }) => start)), end: Math.max(...dates.map(({ end }) => end)) }
}

/** Parses a query; relative dates in it are relative to `now`. */
export const readQuestion = (query: string, now: Instant): ParsedQuery => {
  const head = query.slice(0, MOST_CHARACTERS)
  const range = rangeOf(head, now)
  return {
    terms: queryTerms(query),
    words: new Set(wordsOf(head)),
    names: namesIn(head),
    range,
    asksWhen: ASKS_WHEN.test(head),
    isAboutPast: ABOUT_PAST.test(head) || (range !== undefined && range.end < now),
    askedAt: now,
  }
}
