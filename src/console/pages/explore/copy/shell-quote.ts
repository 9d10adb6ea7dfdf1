// Words of a command line that a POSIX shell reads as they are: sh, bash, zsh, dash.

const PLAIN = /^[\w@%+=:,./-]+$/
/** Words that a shell or the command would take for something else: an option, or the assignment of a variable. */
const IS_SPECIAL = /^-|^\w+=/

/** A word in single quotes, unless it needs none. A single quote in it is written `'\''`. */
export const quoteWord = (word: string): string =>
  PLAIN.test(word) && !IS_SPECIAL.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`

/** A command of several lines, each but the last ended by a backslash. */
export const commandLines = (first: string, ...rest: readonly string[]): string => [first, ...rest].join(' \\\n  ')

/** Text in double quotes in which the shell replaces the variables that the caller wrote. */
export const quoteWithVariables = (text: string): string => `"${text.replaceAll(/[\\"`]/g, '\\$&')}"`
