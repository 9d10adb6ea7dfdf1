/** A command line as a shell would read it: its words, and whether it needs a shell for more than that. */
export interface CommandLine {
  readonly words: readonly string[]
  readonly operator?: string | undefined // the first one that only a shell understands: a pipe, a redirection
}

const PROMPT = /^\s*(?:\$|%|>|PS>|❯)\s+/
const OPERATOR = /^(?:\|\|?|&&?|;|[<>]{1,2})/
const BLANK = /\s/

/**
 * Splits a line at blanks, with the quotes of a shell. A backslash escapes blanks, quotes, `$` and itself only, so that
 * paths of Windows stay whole; at the end of a line it joins the next one. Returns undefined if a quote is not closed.
 */
export const readCommandLine = (text: string): CommandLine | undefined => {
  const line = text.replace(PROMPT, '').replace(/[\\^`]\r?\n/g, ' ')
  const words: string[] = []
  let word: string | undefined
  let quote = ''
  for (let at = 0; at < line.length; at++) {
    const character = line[at] ?? ''
    const next = line[at + 1] ?? ''
    if (quote !== '') {
      if (character === quote) quote = ''
      else if (character === '\\' && quote === '"' && /["\\$`]/.test(next)) {
        word += next
        at++
      } else word += character
    } else if (BLANK.test(character)) {
      if (word !== undefined) words.push(word)
      word = undefined
    } else if (character === '"' || character === "'") {
      quote = character
      word ??= ''
    } else if (character === '\\' && (BLANK.test(next) || /["'\\$]/.test(next))) {
      word = (word ?? '') + next
      at++
    } else {
      const operator = word === undefined || /[;|&]/.test(character) ? OPERATOR.exec(line.slice(at))?.[0] : undefined
      if (operator !== undefined && !isInAddress(word, character)) {
        if (word !== undefined) words.push(word)
        return { words, operator }
      }
      word = (word ?? '') + character
    }
  }
  if (quote !== '') return undefined
  if (word !== undefined) words.push(word)
  return { words }
}

/** `https://example.com/?a=1&b=2` is often pasted without quotes. */
const isInAddress = (word: string | undefined, character: string): boolean =>
  character === '&' && word !== undefined && /^https?:\/\//.test(word)
