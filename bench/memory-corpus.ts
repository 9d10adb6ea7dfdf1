/** Numbers that look random and are the same in every run. */
export const randomFrom = (seed: number): (() => number) => {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

const SYLLABLES =
  'ba ce di fo gu ha je ki lo mu na pe qui ro su ta ve wi xo yu zan bel cor dun fer gal hin jor kel lum'.split(' ')

const WORDS = 30_000

/** The word of a place in the order of frequency; every place has one of its own. */
const wordAt = (place: number): string => {
  let word = ''
  for (let rest = place + 1; rest > 0; rest = Math.floor(rest / SYLLABLES.length))
    word += SYLLABLES[rest % SYLLABLES.length]
  return word
}

/** Places as words have them in a language: the n-th is about n times rarer than the first. */
const zipf = (random: () => number): number => Math.min(WORDS - 1, Math.floor(WORDS ** random()) - 1)

const sentence = (random: () => number): string => {
  const words = Array.from({ length: 8 + Math.floor(random() * 12) }, () => wordAt(zipf(random)))
  return `${words.join(' ')}.`
}

/** An episode's text: two sentences, one of which names somebody. */
export const episodeText = (random: () => number): string => {
  const name = wordAt(2_000 + Math.floor(random() * 3_000))
  return `${sentence(random)} We met ${name[0]?.toUpperCase()}${name.slice(1)} and ${sentence(random)}`
}

/** A query of four words, neither the commonest nor the rarest. */
export const queryText = (random: () => number): string =>
  Array.from({ length: 4 }, () => wordAt(20 + Math.floor(20 * 100 ** random()))).join(' ')
