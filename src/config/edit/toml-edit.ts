import { isDeepStrictEqual } from 'node:util'
import { parse, stringify, TomlError } from 'smol-toml'
import { ConfigError } from '../problems.ts'

type TomlObject = Readonly<Record<string, unknown>>

/** Reads a TOML file; throws a ConfigError with the place of the first error. */
export const parseToml = (file: string, text: string): TomlObject => {
  try {
    return parse(text)
  } catch (cause) {
    if (!(cause instanceof TomlError)) throw cause
    throw new ConfigError(
      `${file} is not TOML: line ${cause.line}, column ${cause.column}: ${cause.message.split('\n')[0]}`,
    )
  }
}

const membersOf = (value: unknown): TomlObject =>
  typeof value === 'object' && value !== null ? (value as TomlObject) : {}

/**
 * Sets or removes (`undefined`) the table `[section.name]`; comments and everything else stay. The result is read again
 * and compared with what it must be: a file that is written in another way is refused, never damaged.
 */
export const editToml = (
  file: string,
  text: string | undefined,
  [section, name]: readonly [string, string],
  entry: TomlObject | undefined,
): string => {
  const before = parseToml(file, text ?? '')
  const kept = withoutTable(text ?? '', [section, name])
  const edited = entry === undefined ? kept : append(kept, stringify({ [section]: { [name]: entry } }))
  const { [name]: _, ...others } = membersOf(before[section])
  const { [section]: __, ...rest } = before
  const servers = entry === undefined ? others : { ...others, [name]: entry }
  if (isToml(edited, withoutEmpty({ ...rest, [section]: servers }, section), section)) return edited
  throw new ConfigError(`${file} does not have "${name}" in a table [${section}.${name}]; edit it by hand`)
}

/** Whether a text is TOML with these values. */
const isToml = (text: string, expected: TomlObject, section: string): boolean => {
  try {
    return isDeepStrictEqual(plain(withoutEmpty(parse(text), section)), plain(expected))
  } catch {
    return false // not TOML any more
  }
}

/** Appended at the end, because a table ends where the next one begins. */
const append = (text: string, table: string): string => {
  const kept = text.trimEnd()
  const lines = table.split('\n').filter(line => !/^\[\w+\]$/.test(line)) // the parent needs no header
  return `${kept}${kept === '' ? '' : '\n\n'}${lines.join('\n').trim()}\n`
}

/** Removes the table and the tables inside it, each from its header to the next header. */
const withoutTable = (text: string, path: readonly string[]): string => {
  const lines = text.split('\n')
  let isInside = false
  const kept = lines.filter(line => {
    const header = tomlHeader(line)
    if (header !== undefined) isInside = startsWith(header, path)
    return !isInside
  })
  return kept.join('\n')
}

const startsWith = (keys: readonly string[], path: readonly string[]): boolean =>
  path.every((step, at) => keys[at] === step)

/** The keys of a header of a table, `[a."b.c"]` has two; undefined for any other line. */
export const tomlHeader = (line: string): readonly string[] | undefined => {
  const header = /^\s*\[\[?([^\]]+)\]\]?\s*(#.*)?$/.exec(line)?.[1]
  return header === undefined
    ? undefined
    : [...header.matchAll(/"((?:[^"\\]|\\.)*)"|'([^']*)'|([\w-]+)/g)].map(
        ([, double, single, bare]) => double ?? single ?? bare ?? '',
      )
}

/** An empty section is the same as none. */
const withoutEmpty = (root: TomlObject, section: string): TomlObject => {
  if (Object.keys(membersOf(root[section])).length > 0) return root
  const { [section]: _, ...rest } = root
  return rest
}

/** Objects of the parser have no prototype; dates become text. */
const plain = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value, (_, each) => (typeof each === 'bigint' ? String(each) : each)))
