import { printParseErrorCode, visit } from 'jsonc-parser'

/** Where something is in a configuration file: keys and indexes from the root. */
export type ConfigPath = readonly (string | number)[]

/** A place in a text; both count from 1. */
export interface TextPlace {
  readonly line: number
  readonly column: number
}

/** A parsed file with the place of every value in it. */
export interface JsonText {
  readonly value: unknown
  /** The place of a path, or of its nearest parent in the file; undefined if there is no file. */
  readonly placeOf: (path: ConfigPath) => TextPlace | undefined
  readonly repeated: readonly ConfigPath[] // duplicate keys of an object; the last one is used
}

/** The text is not JSON; the message tells the user why. */
export class JsonTextError extends Error {
  readonly line: number
  readonly column: number
  constructor(message: string, line: number, column: number) {
    super(message)
    this.name = 'JsonTextError'
    this.line = line
    this.column = column
  }
}

/** An object or array whose end has not been read. */
interface OpenContainer {
  readonly path: ConfigPath
  readonly value: Record<string, unknown> | unknown[]
  readonly close: '}' | ']'
  key?: { readonly name: string; readonly offset: number; hasColon: boolean } | undefined
  needsComma: boolean
}

const MAX_DEPTH = 100

const STRING_ERROR = 'this string is not closed, or holds a bad escape or a line break'

/** By error code. Every other error is reported as what the syntax expects at its place. */
const MESSAGES: Readonly<Record<string, string>> = {
  UnexpectedEndOfString: STRING_ERROR,
  InvalidUnicode: STRING_ERROR,
  InvalidEscapeCharacter: STRING_ERROR,
  InvalidCharacter: STRING_ERROR,
  UnexpectedEndOfComment: 'this comment is not closed',
}

/** Parses JSON with comments and trailing commas, as VS Code and Cursor write it. Throws JsonTextError at the first error. */
export const parseJsonText = (source: string): JsonText => {
  const text = source.startsWith('\ufeff') ? source.slice(1) : source
  const offsets = new Map<string, number>()
  const repeated: ConfigPath[] = []
  const open: OpenContainer[] = [] // the innermost is last
  let root: unknown
  let hasRoot = false

  const fail = (message: string, offset: number): never => {
    const { line, column } = placeAt(text, offset)
    throw new JsonTextError(message, line, column)
  }
  const expected = (): string => {
    const inner = open.at(-1)
    if (!inner) return hasRoot ? 'the end of the file' : 'a value'
    if (inner.needsComma) return `"," or "${inner.close}"`
    if (inner.close === ']' || inner.key?.hasColon) return 'a value'
    return inner.key ? '":"' : 'a key in double quotes'
  }
  const failAt = (offset: number): never => {
    const found = offset < text.length ? JSON.stringify(text[offset]) : 'the end of the file'
    return fail(`expected ${expected()}, found ${found}`, offset)
  }

  /** Puts a value where the parser is, and returns its path. */
  const add = (value: unknown, offset: number): ConfigPath => {
    const inner = open.at(-1)
    if (!inner) {
      root = value
      hasRoot = true
      return []
    }
    const path = [...inner.path, Array.isArray(inner.value) ? inner.value.length : (inner.key?.name ?? '')]
    if (path.length > MAX_DEPTH) fail('nested too deeply', offset)
    offsets.set(JSON.stringify(path), inner.key?.offset ?? offset)
    if (Array.isArray(inner.value)) inner.value.push(value)
    else inner.value[inner.key?.name ?? ''] = value
    inner.key = undefined
    inner.needsComma = true
    return path
  }
  const begin = (value: OpenContainer['value'], close: OpenContainer['close'], offset: number): void => {
    open.push({ path: add(value, offset), value, close, needsComma: false })
  }
  const end = (offset: number): void => {
    if (offset === text.length) failAt(offset) // the parser reports the end before it reports that it is missing
    open.pop()
  }

  visit(
    text,
    {
      onObjectBegin: offset => begin({}, '}', offset),
      onArrayBegin: offset => begin([], ']', offset),
      onObjectEnd: end,
      onArrayEnd: end,
      onObjectProperty: (name, offset) => {
        if (name === '__proto__') fail('"__proto__" cannot be used as a key', offset)
        const inner = open.at(-1) as OpenContainer
        if (Object.hasOwn(inner.value, name)) repeated.push([...inner.path, name])
        inner.key = { name, offset, hasColon: false }
      },
      onSeparator: character => {
        const inner = open.at(-1) as OpenContainer
        if (character === ',') inner.needsComma = false
        else if (inner.key) inner.key.hasColon = true
      },
      onLiteralValue: (value, offset, length) => {
        // The parser takes 01 for two numbers.
        if (typeof value === 'number' && /[\w.+-]/.test(text[offset + length] ?? '')) failAt(offset)
        add(value, offset)
      },
      onError: (code, offset) => {
        const message = MESSAGES[printParseErrorCode(code)]
        if (message === undefined) failAt(offset)
        else fail(message, offset)
      },
    },
    { allowTrailingComma: true },
  )
  const placeOf = (path: ConfigPath): TextPlace => {
    const offset = offsets.get(JSON.stringify(path))
    return offset === undefined && path.length > 0 ? placeOf(path.slice(0, -1)) : placeAt(text, offset ?? 0)
  }
  return { value: root, placeOf, repeated }
}

export const placeAt = (text: string, offset: number): TextPlace => {
  const before = text.slice(0, offset)
  return { line: before.split('\n').length, column: offset - before.lastIndexOf('\n') }
}
