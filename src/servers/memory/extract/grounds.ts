import { normaliseName } from '../text/names.ts'
import { foldWord, isStopWord, stemOf, wordsOf } from '../text/words.ts'
import type { Material } from './material.ts'

/** Whether a name is taken from what was shown. */
export type IsNamed = (name: string) => boolean

const FIRST_PERSON = /\b(?:i|me|my|mine|myself|we|us|our|ours)\b/iu
const SPEAKER = 'user' // what a model is told to call an unnamed one
const isAscii = (word: string): boolean => /^[\t-~]*$/.test(word)

/** Every word of a name must stand in what was shown, in whatever form; in scripts without spaces, as a part of it. */
export const groundsOf = ({ episode, passages, earlier }: Material): IsNamed => {
  const text = [episode.name, episode.sourceDescription, ...passages, ...earlier].join('\n')
  const stems = new Set(wordsOf(text).map(stemOf))
  const folded = foldWord(text)
  const saysI = FIRST_PERSON.test(text)
  const stands = (word: string): boolean => stems.has(stemOf(word)) || (!isAscii(word) && folded.includes(word))
  return name => {
    const words = wordsOf(name)
    const telling = words.filter(word => !isStopWord(word))
    if (saysI && normaliseName(name) === SPEAKER) return true
    return telling.length > 0 ? telling.every(stands) : words.length > 0 && folded.includes(foldWord(name.trim()))
  }
}
