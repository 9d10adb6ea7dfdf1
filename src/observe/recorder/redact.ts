import { decodeHeaderValue } from '../../protocol/param-headers.ts'
import { spellingsOf, withoutSpellings } from '../../std/known-secrets.ts'
import { createNameClassifier, type NameKind } from '../../std/secret-names.ts'
import { REDACTED, redactText } from './secret-text.ts'

const SHOWN_OF_ID = 8 // characters
const QUOTED = JSON.stringify(REDACTED)
const SCHEMA_START = /^\{\s*"(?:type|\$ref|anyOf|oneOf|allOf|enum|const|title|description|format|default)"\s*:/
const SCHEMA_VALUES: ReadonlySet<string> = new Set(['default', 'const', 'enum', 'example', 'examples'])
const PAIR_NAMES: ReadonlySet<string> = new Set(['name', 'key', 'header', 'field', 'variable'])
const PARAM_HEADER = 'mcp-param-'

/** Removes secrets from what is shown of recorded messages. */
export interface Redactor {
  /** A JSON text, also one that was cut; everything else in it stays as it is. */
  json(text: string): string
  text(text: string): string
  /** The value of a header. */
  header(name: string, value: string): string
}

interface RedactorOptions {
  readonly names: readonly string[] // of further members whose values are secrets
  readonly secrets: () => readonly string[] // of the gateway, wherever they occur; the same array until there are others
}

export const createRedactor = ({ names, secrets }: RedactorOptions): Redactor => {
  const kindOfName = createNameClassifier(names)

  let known: { readonly secrets: readonly string[]; readonly spellings: readonly string[] } | undefined
  const withoutKnown = (text: string): string => {
    const current = secrets()
    if (known?.secrets !== current) known = { secrets: current, spellings: spellingsOf(current) }
    return withoutSpellings(text, known.spellings, REDACTED)
  }

  const text = (given: string): string => redactText(withoutKnown(given))

  const header = (name: string, value: string): string => {
    const isParam = name.startsWith(PARAM_HEADER)
    const kind = kindOfName(isParam ? name.slice(PARAM_HEADER.length) : name)
    if (kind === 'shortened') return shorten(value)
    if (kind !== 'plain') return REDACTED
    const decoded = decodeHeaderValue(value) ?? value
    const clean = text(decoded)
    return clean === decoded ? value : clean
  }

  return { json: given => new JsonRedaction(withoutKnown(given), kindOfName, text).run(), text, header }
}

const shorten = (id: string): string => (id.length <= SHOWN_OF_ID ? id : `${id.slice(0, SHOWN_OF_ID)}…`)

/** The object or array that the scan is in. */
interface Level {
  readonly name: string // of the member it is the value of
  isPair: boolean // an earlier member, as in {"name": "password", "value": …}, names a secret
}

/** One pass over a JSON text. It replaces values in place, so numbers, spaces and the order of members stay as they came. */
class JsonRedaction {
  readonly #text: string
  readonly #kindOfName: (name: string) => NameKind
  readonly #redact: (text: string) => string
  readonly #levels: Level[] = []
  #clean = ''
  #copied = 0 // everything before is in #clean
  #name = '' // of the member whose value follows
  #schemaEnd = 0 // until there, a JSON Schema describes a secret

  constructor(text: string, kindOfName: (name: string) => NameKind, redact: (text: string) => string) {
    this.#text = text
    this.#kindOfName = kindOfName
    this.#redact = redact
  }

  run(): string {
    const text = this.#text
    let at = 0
    while (at < text.length) at = this.#step(at)
    return this.#copied === 0 ? text : this.#clean + text.slice(this.#copied)
  }

  /** Reads what begins there and returns where the next thing begins. */
  #step(at: number): number {
    const first = this.#text[at]
    if (first === '{' || first === '[') {
      this.#levels.push({ name: this.#name, isPair: false })
      this.#name = ''
    } else if (first === '}' || first === ']') {
      this.#levels.pop()
      this.#name = ''
    } else if (first === ',') this.#name = ''
    if (first !== '"') return at + 1
    const end = endOfString(this.#text, at)
    const colon = skipSpace(this.#text, end)
    return this.#text[colon] === ':' ? this.#member(at, end, skipSpace(this.#text, colon + 1)) : this.#string(at, end)
  }

  #member(at: number, end: number, value: number): number {
    const name = decodeString(this.#text.slice(at, end))
    this.#name = name
    const level = this.#levels.at(-1)
    if (level?.isPair && name === 'value') return this.#replace(value, endOfValue(this.#text, value), QUOTED)
    if (at < this.#schemaEnd) return SCHEMA_VALUES.has(name) ? this.#hide(value, 'secret') : value
    const kind = this.#kindOfName(name)
    if (kind === 'plain') return value
    if (kind === 'shortened') return this.#shortenAt(value)
    if (level?.name === 'properties' && SCHEMA_START.test(this.#text.slice(value, value + 64))) {
      this.#schemaEnd = endOfValue(this.#text, value)
      return value
    }
    return this.#hide(value, kind)
  }

  #hide(value: number, kind: 'secret' | 'count'): number {
    const first = this.#text[value]
    const isHarmless = first === 't' || first === 'f' || first === 'n' || (kind === 'count' && isDigit(first))
    const end = endOfValue(this.#text, value)
    return isHarmless ? end : this.#replace(value, end, QUOTED)
  }

  #shortenAt(value: number): number {
    if (this.#text[value] !== '"') return value
    const end = endOfString(this.#text, value)
    return this.#replace(value, end, JSON.stringify(shorten(decodeString(this.#text.slice(value, end)))))
  }

  #string(at: number, end: number): number {
    const raw = this.#text.slice(at, end)
    const decoded = raw.includes('\\u') ? decodeString(raw) : undefined
    const level = this.#levels.at(-1)
    if (level && PAIR_NAMES.has(this.#name)) level.isPair = this.#kindOfName(decodeString(raw)) === 'secret'
    const before = decoded ?? raw.replace(/^"|"$/g, '')
    const clean = decoded === undefined ? redactText(before) : this.#redact(before)
    if (clean === before) return end
    return this.#replace(at, end, decoded === undefined ? `"${clean}"` : JSON.stringify(clean))
  }

  #replace(from: number, to: number, text: string): number {
    this.#clean += this.#text.slice(this.#copied, from) + text
    this.#copied = to
    this.#name = ''
    return to
  }
}

/** The end of the string that begins there; of one that was cut, the end of the text. */
const endOfString = (text: string, start: number): number => {
  for (let at = start + 1; at < text.length; at++) {
    if (text[at] === '\\') at++
    else if (text[at] === '"') return at + 1
  }
  return text.length
}

const endOfValue = (text: string, start: number): number => {
  const first = text[start]
  if (first === '"') return endOfString(text, start)
  let at = start
  if (first !== '{' && first !== '[') {
    while (at < text.length && !/[\s,}\]]/.test(text[at] as string)) at++
    return at
  }
  let depth = 0
  while (at < text.length) {
    const character = text[at]
    if (character === '"') {
      at = endOfString(text, at)
      continue
    }
    if (character === '{' || character === '[') depth++
    else if (character === '}' || character === ']') depth--
    at++
    if (depth === 0) return at
  }
  return at
}

const skipSpace = (text: string, start: number): number => {
  let at = start
  while (at < text.length && ' \n\r\t'.includes(text[at] as string)) at++
  return at
}

const isDigit = (character: string | undefined): boolean => character !== undefined && /[-\d]/.test(character)

/** The string of a token; of a broken one its characters. */
const decodeString = (token: string): string => {
  if (!token.includes('\\')) return token.replace(/^"|"$/g, '')
  try {
    return JSON.parse(token) as string
  } catch {
    return token.replace(/^"|"$/g, '')
  }
}
