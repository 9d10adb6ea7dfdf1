/** Scripts that are written without spaces between the words, and Hangul, whose particles cling to them. */
const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}ー々〆]/u

const UNSPACED_RUN = new RegExp(`${UNSPACED.source}+`, 'gu')
const UNSPACED_CUT = new RegExp(`(${UNSPACED.source}+)`, 'u')
const LONE_SURROGATE = /\p{Cs}/gu
const MARK = /^\p{M}/u
const HUMPED = /(?<![\p{L}\p{N}])\p{L}*(?:\p{Ll}\p{Lu}|\p{Lu}\p{Lu}\p{Ll}{2})[\p{L}\p{N}]*/gu
const HUMP = /(?<=\p{Ll})(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll}{2})/u
const IS_ASCII = /^[\t-~]*$/

/** Letters with the marks that belong to them. */
export const lettersOf = (run: string): string[] => {
  const letters: string[] = []
  for (const point of run) {
    if (MARK.test(point) && letters.length > 0) letters[letters.length - 1] += point
    else letters.push(point)
  }
  return letters
}

/** The parts of a name like `readFileSync`, or nothing if it is one word. */
export const humpsOf = (word: string): string[] => {
  const parts = word.split(HUMP).filter(part => part.length > 1)
  return parts.length > 1 ? parts : []
}

/** A run of letters cut where a script without spaces begins or ends. */
export const splitScripts = (run: string): string[] => run.split(UNSPACED_CUT).filter(part => part !== '')

/** Whether the text holds letters of a script without spaces. */
export const isUnspaced = (text: string): boolean => UNSPACED.test(text)

/** Every two neighbouring letters of a run, and the last alone, so that a single letter is the beginning of something. */
const pairsOf = (run: string): string[] => {
  const letters = lettersOf(run)
  return letters.map((letter, index) => letter + (letters[index + 1] ?? ''))
}

/** What to look for instead of a run of letters in a script without spaces: its pairs, or the one letter it is. */
export const piecesOf = (run: string): string[] => {
  const pairs = pairsOf(run)
  return pairs.length > 1 ? pairs.slice(0, -1) : pairs
}

/** A text as the full-text index should read it: letter pairs for scripts without spaces, and the parts of `camelCase` names beside them. Mostly the text itself. */
export const indexText = (text: string): string => {
  const spaced = IS_ASCII.test(text)
    ? text
    : text
        .replace(LONE_SURROGATE, '\uFFFD')
        .normalize('NFKC')
        .replace(UNSPACED_RUN, run => ` ${pairsOf(run).join(' ')} `)
  return spaced.replace(HUMPED, word => [word, ...humpsOf(word)].join(' '))
}
