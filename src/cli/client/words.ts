import { UsageError } from '../usage.ts'

/** One word after the name of a tool. */
export type ArgumentWord =
  | { readonly kind: 'text'; readonly key: string; readonly text: string } // key=value
  | { readonly kind: 'json'; readonly key: string; readonly text: string } // key:=json
  | { readonly kind: 'file'; readonly key: string; readonly file: string; readonly isJson: boolean } // key=@file
  | { readonly kind: 'all'; readonly file: string } // @file, or - for stdin
  | { readonly kind: 'object'; readonly text: string } // {…}

/** Reads the words after the name of a tool. */
export const readWords = (words: readonly string[]): readonly ArgumentWord[] => words.map(readWord)

const readWord = (word: string): ArgumentWord => {
  if (word === '-') return { kind: 'all', file: '-' }
  if (word.startsWith('{')) return { kind: 'object', text: word }
  if (word.startsWith('@')) return { kind: 'all', file: word.slice(1) }
  const [, key = '', sign = '', text = ''] = /^([^=]+?)(:?=)(.*)$/s.exec(word) ?? []
  if (key === '')
    throw new UsageError(`${JSON.stringify(word)}: expected key=value, key:=json, @file or -${colonHint(word)}`)
  const isJson = sign === ':='
  if (text.startsWith('@') && text.length > 1) return { kind: 'file', key, file: text.slice(1), isJson }
  return { kind: isJson ? 'json' : 'text', key, text }
}

/** Other programs write key:value. */
const colonHint = (word: string): string => {
  const [, key, value] = /^([\w.-]+):(.*)$/s.exec(word) ?? []
  return key === undefined ? '' : `; did you mean ${key}=${value}?`
}

/** Reads words like key=value; the value is text. */
export const readPairs = (words: readonly string[]): ReadonlyMap<string, string> =>
  new Map(
    words.map(word => {
      const at = word.indexOf('=')
      if (at < 1) throw new UsageError(`${JSON.stringify(word)}: expected key=value`)
      return [word.slice(0, at), word.slice(at + 1)] as const
    }),
  )

/** Whether a word is a URI or a URI template, not a name. */
export const isUriWord = (word: string): boolean => /^[a-z][a-z0-9+.-]*:/i.test(word)
