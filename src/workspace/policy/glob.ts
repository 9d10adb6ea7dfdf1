/** Whether a whole text fits a pattern. */
export type Glob = (text: string) => boolean

const ANY = '*'
const ONE = '?'

/**
 * Makes the matcher of a pattern with `*` for any characters and `?` for one. It looks back to the last `*` only,
 * so the time is at most the product of the two lengths, whatever the pattern.
 */
export const compileGlob = (pattern: string): Glob => {
  const wanted = [...pattern]
  if (!wanted.some(character => character === ANY || character === ONE)) return text => text === pattern
  return text => fits(wanted, [...text])
}

const fits = (wanted: readonly string[], text: readonly string[]): boolean => {
  let [at, i] = [0, 0]
  let [star, resume] = [-1, 0] // the last `*`, and where the text went on after it
  while (i < text.length) {
    if (wanted[at] === ANY) {
      star = at++
      resume = i
    } else if (wanted[at] === ONE || wanted[at] === text[i]) {
      at++
      i++
    } else if (star >= 0) {
      at = star + 1
      i = ++resume
    } else return false
  }
  while (wanted[at] === ANY) at++
  return at === wanted.length
}
