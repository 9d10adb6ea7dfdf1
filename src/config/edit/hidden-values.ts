import { createHmac } from 'node:crypto'
import { createScanner, type SyntaxKind, visit } from 'jsonc-parser'
import { type ConfigPath, placeAt } from '../json-text.ts'
import type { PlacedProblem } from '../problems.ts'
import { likelySpans, secretSpans } from './secret-values.ts'

/**
 * A configuration with its literal secrets replaced by `${hidden:<id>}`, and what the ids stand for. An id depends on the
 * secret and the key alone, so that a hidden value can be moved, and is known again when the file has changed elsewhere.
 */
export interface HiddenText {
  readonly text: string
  readonly secrets: ReadonlyMap<string, string> // by id
  readonly literals: ReadonlyMap<string, string> // how a string with hidden parts was written
}

const ID_LENGTH = 10
// Values of SyntaxKind, which is a const enum.
const STRING = 10 satisfies SyntaxKind.StringLiteral
const END = 17 satisfies SyntaxKind.EOF
const HIDDEN = /\$\{hidden:([0-9a-f]{10})\}/g
const ANY_HIDDEN = /\$\{hidden:[^}]*\}/
const COMMENTED_MEMBER = /"([^"\\]+)"(\s*:\s*")((?:[^"\\]|\\.)*)"/g
const BOM = '\ufeff'

/** True for a text with a part that is hidden. */
const hasHidden = (text: string): boolean => ANY_HIDDEN.test(text)

/** Hides the secrets of a JSON text, which may be broken; with `known`, only those that it has. */
export const hideValues = (source: string, key: Uint8Array, known?: ReadonlyMap<string, string>): HiddenText => {
  const secrets = new Map<string, string>()
  const literals = new Map<string, string>()
  const replaced = new Map<number, { readonly length: number; readonly text: string }>()
  const [bom, text] = source.startsWith(BOM) ? [BOM, source.slice(1)] : ['', source]

  const hide = (value: string, spans: readonly (readonly [number, number])[]): string => {
    let [result, at] = ['', 0]
    for (const [from, to] of spans) {
      const secret = value.slice(from, to)
      const id = createHmac('sha256', key).update(`hidden ${secret}`).digest('hex').slice(0, ID_LENGTH)
      if (known && !known.has(id)) continue
      secrets.set(id, secret)
      result += `${value.slice(at, from)}\${hidden:${id}}`
      at = to
    }
    return result + value.slice(at)
  }
  const hideComment = (comment: string): string => {
    const named = comment.replace(COMMENTED_MEMBER, (_, name: string, middle: string, value: string) => {
      const parent = /^(authorization|cookie|x-)/i.test(name) ? 'headers' : 'env'
      return `"${name}"${middle}${hide(value, secretSpans([parent, name], value))}"`
    })
    return hide(named, ANY_HIDDEN.test(named) ? [] : likelySpans(named))
  }

  let last: { readonly path: ConfigPath; readonly value: unknown } | undefined
  visit(
    text,
    {
      onLiteralValue: (value, offset, length, _line, _character, pathOf) => {
        const path = pathOf()
        const before = last && isNext(last.path, path) ? last.value : undefined
        last = { path, value }
        if (typeof value !== 'string') return
        const spans = secretSpans(path, value, before)
        if (spans.length === 0) return
        const written = JSON.stringify(hide(value, spans))
        literals.set(written, text.slice(offset, offset + length))
        replaced.set(offset, { length, text: written })
      },
      onComment: (offset, length) => {
        const comment = text.slice(offset, offset + length)
        const hidden = hideComment(comment)
        if (hidden !== comment) replaced.set(offset, { length, text: hidden })
      },
    },
    { allowTrailingComma: true },
  )
  let [result, at] = [bom, 0]
  for (const [offset, { length, text: written }] of [...replaced].sort(([a], [b]) => a - b)) {
    result += text.slice(at, offset) + written
    at = offset + length
  }
  return { text: result + text.slice(at), secrets, literals }
}

const isNext = (before: ConfigPath, path: ConfigPath): boolean =>
  before.length === path.length &&
  typeof path.at(-1) === 'number' &&
  path.slice(0, -1).every((step, i) => before[i] === step)

const UNKNOWN =
  'this hidden value is not in the file any more; write it again, or write ${NAME} and set the variable NAME'

/** A text or value in which the hidden parts are the secrets again; `problems` names those that are not known. */
export interface Restored<T> {
  readonly value: T
  readonly problems: readonly PlacedProblem[]
}

/** Puts the secrets back into a JSON text that may have been edited. */
export const restoreText = (text: string, { secrets, literals }: HiddenText): Restored<string> => {
  const problems: PlacedProblem[] = []
  const scanner = createScanner(text, false)
  let [result, at] = ['', 0]
  for (let kind = scanner.scan(); kind !== END; kind = scanner.scan()) {
    const [offset, length] = [scanner.getTokenOffset(), scanner.getTokenLength()]
    const token = text.slice(offset, offset + length)
    if (!hasHidden(token)) continue
    const isString = kind === STRING
    const known = isString ? literals.get(token) : undefined
    const written =
      known ?? token.replace(HIDDEN, (found, id: string) => insertable(secrets.get(id), isString) ?? found)
    if (hasHidden(written)) problems.push({ path: [], message: UNKNOWN, ...placeAt(text, offset) })
    result += text.slice(at, offset) + written
    at = offset + length
  }
  return { value: result + text.slice(at), problems }
}

const insertable = (secret: string | undefined, isString: boolean): string | undefined =>
  secret === undefined || !isString ? secret : JSON.stringify(secret).slice(1, -1)

/** Puts the secrets back into a parsed value. */
export const restoreValue = (value: unknown, { secrets }: HiddenText, path: ConfigPath): Restored<unknown> => {
  const problems: PlacedProblem[] = []
  const restore = (part: unknown, at: ConfigPath): unknown => {
    if (Array.isArray(part)) return part.map((item, index) => restore(item, [...at, index]))
    if (typeof part === 'object' && part !== null)
      return Object.fromEntries(Object.entries(part).map(([name, member]) => [name, restore(member, [...at, name])]))
    if (typeof part !== 'string') return part
    const restored = part.replace(HIDDEN, (found, id: string) => secrets.get(id) ?? found)
    if (hasHidden(restored)) problems.push({ path: at, message: UNKNOWN })
    return restored
  }
  return { value: restore(value, path), problems }
}
