import { applyEdits, modify } from 'jsonc-parser'
import { JsonTextError, parseJsonText } from '../json-text.ts'
import { ConfigError } from '../problems.ts'

/** A change of one value: `undefined` removes it. */
export interface JsonChange {
  readonly path: readonly string[]
  readonly value: unknown
}

/** Changes values of a JSON file; comments, formatting and everything else stay. Throws a ConfigError if it is not JSON. */
export const editJson = (file: string, text: string | undefined, changes: readonly JsonChange[]): string => {
  const start = text === undefined || text.trim() === '' ? '{}\n' : text
  parseEdited(file, start)
  const formattingOptions = {
    ...indentOf(start),
    eol: start.includes('\r\n') ? '\r\n' : '\n',
    insertFinalNewline: false,
  }
  const edited = changes.reduce(
    (now, { path, value }) => applyEdits(now, modify(now, [...path], value, { formattingOptions })),
    start,
  )
  parseEdited(file, edited) // a result that cannot be read is never written
  return edited
}

/** The value of a JSON file with comments; throws a ConfigError with the place of the first error. */
export const parseEdited = (file: string, text: string): unknown => {
  try {
    const { value } = parseJsonText(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value
    throw new ConfigError(`${file} does not hold an object`)
  } catch (cause) {
    if (!(cause instanceof JsonTextError)) throw cause
    throw new ConfigError(`${file} is not JSON: line ${cause.line}, column ${cause.column}: ${cause.message}`)
  }
}

/** The indentation of the first indented line. */
const indentOf = (text: string): { readonly tabSize: number; readonly insertSpaces: boolean } => {
  const indent = /^([ \t]+)\S/m.exec(text)?.[1] ?? '  '
  return indent.startsWith('\t') ? { tabSize: 1, insertSpaces: false } : { tabSize: indent.length, insertSpaces: true }
}
