/** Where something is in a configuration file: keys and indexes from the root. */
export type Path = readonly (string | number)[]

/** A parsed file that remembers on which line everything stood. */
export interface JsonText {
  readonly value: unknown
  readonly lineOf: (path: Path) => number | undefined // undefined: it was not read from a file
  readonly repeated: readonly Path[] // keys written more than once in one object; the last one counts
}

/** The text is not JSON; the message says why, for a person. */
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

const SPACE = /[ \t\r\n]*/y
const SCALAR = /(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w.+-])/y
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON forbids exactly these inside a string
const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y
const MAX_DEPTH = 100

/** Parses as JSON.parse does, but says line and column when it cannot, and which line a path is on. */
export const parseJsonText = (source: string): JsonText => {
  const text = source.startsWith('\ufeff') ? source.slice(1) : source
  const offsets = new Map<string, number>()
  const repeated: Path[] = []
  let at = 0

  const fail = (message: string, offset = at): never => {
    const before = text.slice(0, offset)
    throw new JsonTextError(message, lineAt(text, offset), offset - before.lastIndexOf('\n'))
  }
  const take = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = at
    const found = pattern.exec(text)?.[0]
    at += found?.length ?? 0
    return found
  }
  const skipSpace = (): void => {
    take(SPACE)
    if (text.startsWith('//', at) || text.startsWith('/*', at)) fail('comments are not allowed in JSON')
  }
  const isNext = (char: string): boolean => {
    skipSpace()
    if (text[at] !== char) return false
    at++
    return true
  }
  const string = (): string => {
    const found = take(STRING)
    if (found !== undefined) return JSON.parse(found) as string
    return fail(
      text[at] === '"'
        ? 'this string is not closed, or holds a bad escape or a line break'
        : expected('a key in double quotes'),
    )
  }
  const expected = (what: string): string =>
    `expected ${what}, found ${at < text.length ? JSON.stringify(text[at]) : 'the end of the file'}`

  /** Reads what is between two brackets; each call of `member` reads one. */
  const members = (close: string, member: () => void): void => {
    at++
    if (isNext(close)) return
    do {
      skipSpace()
      if (text[at] === close) fail(`a comma before "${close}" is not allowed in JSON`)
      member()
    } while (isNext(','))
    if (!isNext(close)) fail(expected(`"," or "${close}"`))
  }
  const object = (path: Path): Record<string, unknown> => {
    const result: Record<string, unknown> = {}
    members('}', () => {
      const start = at
      const key = string()
      if (key === '__proto__') fail('"__proto__" cannot be used as a key', start)
      const inner = [...path, key]
      if (Object.hasOwn(result, key)) repeated.push(inner)
      if (!isNext(':')) fail(expected('":"'))
      result[key] = value(inner, start)
    })
    return result
  }
  const array = (path: Path): unknown[] => {
    const result: unknown[] = []
    members(']', () => result.push(value([...path, result.length], at)))
    return result
  }
  const value = (path: Path, start: number): unknown => {
    skipSpace()
    if (path.length > MAX_DEPTH) fail('nested too deeply')
    offsets.set(JSON.stringify(path), start)
    if (text[at] === '{') return object(path)
    if (text[at] === '[') return array(path)
    if (text[at] === '"') return string()
    const scalar = take(SCALAR)
    return scalar === undefined ? fail(expected('a value')) : (JSON.parse(scalar) as unknown)
  }

  const result = value([], 0)
  skipSpace()
  if (at < text.length) fail(expected('the end of the file'))
  const lineOf = (path: Path): number => {
    const offset = offsets.get(JSON.stringify(path))
    return offset === undefined && path.length > 0 ? lineOf(path.slice(0, -1)) : lineAt(text, offset ?? 0)
  }
  return { value: result, lineOf, repeated }
}

const lineAt = (text: string, offset: number): number => text.slice(0, offset).split('\n').length
