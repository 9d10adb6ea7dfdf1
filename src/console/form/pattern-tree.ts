// A regular expression as a tree, for an estimate of what matching costs. Undefined for everything that is not known here.

export type PatternNode =
  | { readonly kind: 'character'; readonly source: string; readonly literal?: string | undefined } // or a class of them
  | { readonly kind: 'assertion'; readonly source: string } // ^ $ \b \B
  | { readonly kind: 'group'; readonly alternatives: readonly PatternSequence[]; readonly isLookahead: boolean }
  | { readonly kind: 'loop'; readonly body: PatternNode; readonly least: number; readonly most: number }
export type PatternSequence = readonly PatternNode[]

const DEEPEST = 30

/** Reads a pattern that the browser accepts with the flag `u`, or without; undefined for references, lookbehind and flags within it. */
export const readPattern = (pattern: string, isUnicode: boolean): readonly PatternSequence[] | undefined => {
  try {
    return new PatternReader(pattern, isUnicode).readAll()
  } catch (error) {
    if (error instanceof UnknownPattern) return undefined
    throw error
  }
}

class UnknownPattern extends Error {}

const UNICODE_ESCAPE = /\\(?:[pP]\{[A-Za-z][\w=]*\}|u\{[\da-fA-F]+\})/y // without the flag: p or u, and a quantifier
const ESCAPE = /\\(?:u[\da-fA-F]{4}|x[\da-fA-F]{2}|c[A-Za-z]|[\s\S])/y
const OLD_ESCAPE = /^\\(?:[1-9k]|c$)/ // references; without the flag, also octal numbers and a backslash before c
const CLASS = /\[(?:\\[\s\S]|[^\]\\])*\]/y
const QUANTIFIER = /(?:([*+?])|\{(\d+)(,?)(\d*)\})\??/y
const GROUP = /\((?:\?(?::|=|!|<[A-Za-z_$][\w$]*>))?/y

class PatternReader {
  readonly #pattern: string
  readonly #isUnicode: boolean
  #at = 0

  constructor(pattern: string, isUnicode: boolean) {
    this.#pattern = pattern
    this.#isUnicode = isUnicode
  }

  readAll(): readonly PatternSequence[] {
    const alternatives = this.#alternatives(0)
    if (this.#at < this.#pattern.length) throw new UnknownPattern()
    return alternatives
  }

  #alternatives(depth: number): PatternSequence[] {
    if (depth > DEEPEST) throw new UnknownPattern()
    const alternatives: PatternNode[][] = [[]]
    for (;;) {
      const next = this.#pattern[this.#at]
      if (next === undefined || next === ')') return alternatives
      if (next === '|') {
        this.#at++
        alternatives.push([])
      } else alternatives.at(-1)?.push(this.#quantified(this.#one(next, depth)))
    }
  }

  #one(next: string, depth: number): PatternNode {
    if (next === '(') return this.#group(depth)
    if (next === '\\') return this.#escape()
    if (next === '^' || next === '$') return { kind: 'assertion', source: this.#take(next.length) }
    if (next === '[') return { kind: 'character', source: this.#match(CLASS)?.[0] ?? this.#fail() }
    if (next === '.') return { kind: 'character', source: this.#take(1) }
    const isPair = this.#isUnicode && /[\ud800-\udbff]/.test(next)
    const literal = this.#take(isPair ? 2 : 1)
    return isPair
      ? { kind: 'character', source: literal }
      : { kind: 'character', source: `\\u${hex(literal)}`, literal }
  }

  #group(depth: number): PatternNode {
    const head = this.#match(GROUP)?.[0] ?? this.#fail()
    if (head === '(' && this.#pattern[this.#at] === '?') this.#fail() // lookbehind, flags
    const alternatives = this.#alternatives(depth + 1)
    if (this.#take(1) !== ')') this.#fail()
    return { kind: 'group', alternatives, isLookahead: head === '(?=' || head === '(?!' }
  }

  #escape(): PatternNode {
    const unicode = this.#isUnicode ? this.#match(UNICODE_ESCAPE)?.[0] : undefined
    const source = unicode ?? this.#match(ESCAPE)?.[0] ?? this.#fail()
    if (OLD_ESCAPE.test(source)) this.#fail() // what a reference costs is not known
    if (source === '\\0' && /\d/.test(this.#pattern[this.#at] ?? '')) this.#fail()
    if (source === '\\b' || source === '\\B') return { kind: 'assertion', source }
    const character = source.slice(1)
    return { kind: 'character', source, literal: /^[^\w\s]$/.test(character) ? character : undefined }
  }

  #quantified(body: PatternNode): PatternNode {
    const found = this.#match(QUANTIFIER)
    if (!found) return body
    const [, sign, least, comma, most] = found
    if (sign !== undefined)
      return { kind: 'loop', body, least: sign === '+' ? 1 : 0, most: sign === '?' ? 1 : Infinity }
    const low = Number(least)
    return { kind: 'loop', body, least: low, most: comma === '' ? low : most === '' ? Infinity : Number(most) }
  }

  #match(expression: RegExp): RegExpExecArray | undefined {
    expression.lastIndex = this.#at
    const found = expression.exec(this.#pattern)
    if (found) this.#at = expression.lastIndex
    return found ?? undefined
  }

  #take(count: number): string {
    this.#at += count
    return this.#pattern.slice(this.#at - count, this.#at)
  }

  #fail(): never {
    throw new UnknownPattern()
  }
}

const hex = (character: string): string => character.charCodeAt(0).toString(16).padStart(4, '0')
