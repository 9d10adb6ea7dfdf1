import { JsonTextError, parseJsonText } from '../json-text.ts'
import { ConfigError } from '../problems.ts'
import { changeMember, type JsonChange } from './json-members.ts'

/** Changes values of a JSON file; comments, formatting and everything else stay. Throws a ConfigError if it is not JSON. */
export const editJson = (file: string, text: string | undefined, changes: readonly JsonChange[]): string => {
  const start = text === undefined || text.trim() === '' ? '{}\n' : text
  parseEdited(file, start)
  const edited = changes.reduce(changeMember, start)
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
    const { message, line, column } = cause
    throw new ConfigError(`${file} is not JSON: line ${line}, column ${column}: ${message}`, [
      { path: [], message, line, column },
    ])
  }
}
