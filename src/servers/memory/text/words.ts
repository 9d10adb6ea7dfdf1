import { stemmer } from 'stemmer'

/** What counts as part of a word: letters, digits and the marks upon them, as the full-text index has it. */
const WORD = /[\p{L}\p{N}\p{M}\p{Co}]+/gu

const MARKS = /\p{M}+/gu
const MARKED_LATIN = /(?<=\p{Script=Latin})\p{M}+/gu
const STEMMABLE = /^[a-z]{3,40}$/

/** Drops accents from Latin letters only: in other scripts a mark may be half of the letter. */
export const withoutAccents = (text: string): string => text.normalize('NFD').replace(MARKED_LATIN, '').normalize('NFC')

const IS_ASCII = /^[\t-~]*$/
const ASCII_WORD = /[a-z0-9]+/g

/** A word as it is compared: lower case, without accents. */
export const foldWord = (word: string): string =>
  IS_ASCII.test(word) ? word.toLowerCase() : withoutAccents(word.normalize('NFKC').toLowerCase())

/** The words of a text in their order, folded. */
export const wordsOf = (text: string): string[] => {
  // Most texts are, and folding every word of them costs three times as much as the rest of a search.
  if (IS_ASCII.test(text)) return text.toLowerCase().match(ASCII_WORD) ?? []
  const words: string[] = []
  for (const [word] of text.normalize('NFKC').matchAll(WORD)) {
    if (word.replace(MARKS, '') !== '') words.push(foldWord(word))
  }
  return words
}

/** The stem of a folded word; words that are not plain English letters stay as they are. */
export const stemOf = (word: string): string => (STEMMABLE.test(word) ? stemmer(word) : word)
