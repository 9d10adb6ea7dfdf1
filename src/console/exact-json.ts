// JSON that keeps every number as it is written: `JSON.parse` rounds integers above 2^53 and long fractions.

/** A number that a JavaScript number cannot hold without changing its digits. */
export class ExactNumber {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }

  toString(): string {
    return this.text
  }
}

/** A text that is no JSON, with the place where reading stopped. */
export class JsonTextError extends Error {
  readonly position: number
  readonly line: number
  readonly column: number

  constructor(problem: string, text: string, position: number) {
    const before = text.slice(0, position).split('\n')
    const [line, column] = [before.length, (before.at(-1)?.length ?? 0) + 1]
    super(`Line ${line}, column ${column}: ${problem}`)
    this.name = 'JsonTextError'
    this.position = position
    this.line = line
    this.column = column
  }
}

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const WHOLE_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/
const SPACE = /[ \t\n\r]*/y
/** Where this occurs, a plain parse could change a number: sixteen digits in a row, or an exponent. */
const MAY_LOSE = /\d{16}|\.\d{15}|\d[eE][+-]?\d/
const DEEPEST = 600 // levels; the gateway rejects messages with more than 512

/** The value of the text of a number: a number if that writes the same digits. Undefined: it is none. */
export const readNumber = (text: string): number | ExactNumber | undefined => {
  if (!WHOLE_NUMBER.test(text)) return undefined
  return String(Number(text)) === text ? Number(text) : new ExactNumber(text)
}

/** Parses JSON; numbers that would lose digits become an `ExactNumber`. Throws a `JsonTextError`. */
export const parseExact = (text: string): unknown => {
  if (!MAY_LOSE.test(text)) {
    try {
      const value: unknown = JSON.parse(text)
      if (!isDeeper(value, DEEPEST)) return value
    } catch {
      // read again below, for the place of the error
    }
  }
  return new ExactReader(text).readAll()
}

/** A deeper value would overflow the stack of recursive readers. */
const isDeeper = (value: unknown, levels: number): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (levels < 0 || Object.values(value).some(each => isDeeper(each, levels - 1)))

class ExactReader {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  readAll(): unknown {
    const value = this.#value(0)
    this.#space()
    if (this.#at < this.#text.length) this.#fail(`expected the end, found ${this.#found()}`)
    return value
  }

  #value(depth: number): unknown {
    if (depth > DEEPEST) this.#fail(`more than ${DEEPEST} levels`)
    this.#space()
    const first = this.#text[this.#at]
    if (first === '{') return this.#object(depth)
    if (first === '[') return this.#array(depth)
    if (first === '"') return this.#string()
    for (const [word, value] of WORDS)
      if (this.#text.startsWith(word, this.#at)) {
        this.#at += word.length
        return value
      }
    const digits = this.#match(NUMBER)
    if (digits === undefined) return this.#fail(`expected a value, found ${this.#found()}`)
    return readNumber(digits)
  }

  #object(depth: number): Record<string, unknown> {
    const members: [string, unknown][] = []
    this.#list('}', () => {
      this.#space()
      if (this.#text[this.#at] !== '"') this.#fail(`expected a name in double quotes, found ${this.#found()}`)
      const name = this.#string()
      this.#space()
      this.#expect(':')
      members.push([name, this.#value(depth + 1)])
    })
    return Object.fromEntries(members)
  }

  #array(depth: number): unknown[] {
    const items: unknown[] = []
    this.#list(']', () => items.push(this.#value(depth + 1)))
    return items
  }

  #list(end: string, readItem: () => void): void {
    this.#at++
    this.#space()
    if (this.#text[this.#at] === end) {
      this.#at++
      return
    }
    for (;;) {
      readItem()
      this.#space()
      if (this.#text[this.#at] === end) break
      if (this.#text[this.#at] !== ',') this.#fail(`expected "," or "${end}", found ${this.#found()}`)
      this.#at++
    }
    this.#at++
  }

  #string(): string {
    const end = this.#endOfString()
    try {
      const text = JSON.parse(this.#text.slice(this.#at, end)) as string
      this.#at = end
      return text
    } catch {
      return this.#fail('this text has no end, or an invalid character or escape')
    }
  }

  /** After the next quote that no backslash escapes. */
  #endOfString(): number {
    let quote = this.#text.indexOf('"', this.#at + 1)
    while (quote >= 0) {
      let slashes = 0
      while (this.#text[quote - 1 - slashes] === '\\') slashes++
      if (slashes % 2 === 0) return quote + 1
      quote = this.#text.indexOf('"', quote + 1)
    }
    return this.#text.length
  }

  #space(): void {
    this.#match(SPACE)
  }

  #expect(character: string): void {
    if (this.#text[this.#at] !== character) this.#fail(`expected "${character}", found ${this.#found()}`)
    this.#at++
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at
    const found = pattern.exec(this.#text)?.[0]
    if (found !== undefined) this.#at += found.length
    return found
  }

  #found(): string {
    const next = this.#text[this.#at]
    return next === undefined ? 'the end' : JSON.stringify(next)
  }

  #fail(problem: string): never {
    throw new JsonTextError(problem, this.#text, this.#at)
  }
}

const WORDS: readonly (readonly [string, unknown])[] = [
  ['true', true],
  ['false', false],
  ['null', null],
]

/** Writes JSON; an `ExactNumber` is written with its own digits. Members that are undefined are left out. */
export const stringifyExact = (value: unknown, indent = ''): string => write(value, indent, '\n')

const write = (value: unknown, indent: string, line: string): string => {
  if (value instanceof ExactNumber) return value.text
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  const inner = line + indent
  const [open, close, parts] = Array.isArray(value)
    ? ['[', ']', value.map(item => write(item, indent, inner))]
    : ['{', '}', writeMembers(value, indent, inner)]
  if (parts.length === 0) return open + close
  return indent === ''
    ? `${open}${parts.join(',')}${close}`
    : `${open}${inner}${parts.join(`,${inner}`)}${line}${close}`
}

const writeMembers = (object: object, indent: string, inner: string): string[] =>
  Object.entries(object)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${JSON.stringify(name)}:${indent === '' ? '' : ' '}${write(value, indent, inner)}`)

/** Whether two JSON values are equal, as JSON Schema compares them. */
export const isSameJson = (a: unknown, b: unknown): boolean => canonical(a) === canonical(b)

const canonical = (value: unknown): string =>
  JSON.stringify(value, (_name, each: unknown) =>
    each instanceof ExactNumber
      ? { exact: each.text }
      : typeof each === 'object' && each !== null && !Array.isArray(each)
        ? Object.fromEntries(Object.entries(each).sort(([x], [y]) => (x < y ? -1 : 1)))
        : each,
  ) ?? 'undefined'
