import { stemmer } from 'stemmer'

/** Letters, digits and combining marks: the same token characters as the full-text index. */
const WORD = /[\p{L}\p{N}\p{M}\p{Co}]+/gu

const MARKS = /\p{M}+/gu
const MARKED_LATIN = /(?<=\p{Script=Latin})\p{M}+/gu
const STEMMABLE = /^[a-z]{3,40}$/

/** Removes accents from Latin letters only: in other scripts a mark may be half of the letter. */
export const withoutAccents = (text: string): string => text.normalize('NFD').replace(MARKED_LATIN, '').normalize('NFC')

const IS_ASCII = /^[\t-~]*$/
const ASCII_WORD = /[a-z0-9]+/g

/** Folds a word for comparison: lower case, without accents. */
export const foldWord = (word: string): string =>
  IS_ASCII.test(word) ? word.toLowerCase() : withoutAccents(word.normalize('NFKC').toLowerCase())

/** The folded words of a text, in order. */
export const wordsOf = (text: string): string[] => {
  // Most texts are ASCII; folding each word of them would cost three times as much as the rest of a search.
  if (IS_ASCII.test(text)) return text.toLowerCase().match(ASCII_WORD) ?? []
  const words: string[] = []
  for (const [word] of text.normalize('NFKC').matchAll(WORD)) {
    if (word.replace(MARKS, '') !== '') words.push(foldWord(word))
  }
  return words
}

/** The English stem of a folded word; a word with other characters than a–z is returned unchanged. */
export const stemOf = (word: string): string => (STEMMABLE.test(word) ? stemmer(word) : word)

const STOP_WORD_LIST = `
a about above after again against all also am an and any are aren as at be because been before being below between both
but by can cannot could couldn d did didn do does doesn doing don done down during each else ever few for from further
get gets getting give given gives go goes going gone got had hadn has hasn have haven having he her here hers herself
him himself his how however i if in into is isn it its itself just let like ll m made make makes many may me might more
most much must my myself no nor not now of off often on once one only onto or other our ours ourselves out over own per
please re really s said same say says shall shan she should shouldn since so some such t take tell than that the their
theirs them themselves then there these they thing things this those though through to together too under until up upon
us ve very was wasn way we were weren what when where whether which while who whom whose why will with within without
won would wouldn yes yet you your yours yourself yourselves
`

const STOP_WORDS: ReadonlySet<string> = new Set(STOP_WORD_LIST.trim().split(/\s+/))

/** Whether a folded word says nothing about the subject of an English text. */
export const isStopWord = (word: string): boolean => STOP_WORDS.has(word)
