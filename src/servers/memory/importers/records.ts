import { isObject } from '../input-checks.ts'
import { linesOf } from './text-stream.ts'

/** The text of an object in a JSON document, and the line it starts on. */
export interface JsonItem {
  readonly line: number
  readonly text: string
}

/** An object read from data, or why it cannot be read. */
export type ImportRecord =
  | { readonly where: string; readonly members: Readonly<Record<string, unknown>> }
  | { readonly where: string; readonly fault: string }

const LONGEST_LINE = 64 * 1024 * 1024
const LONGEST_OBJECT = 64 * 1024 * 1024

/** The document is not valid JSON, or one of its objects is too large. */
export class DocumentError extends Error {
  override readonly name = 'DocumentError'
}

/**
 * The objects in the arrays of a JSON document. Only one is in memory at a time, so the document may be of any size.
 * Objects within such an object are part of it.
 */
export const itemsIn = async function* (texts: AsyncIterable<string>): AsyncGenerator<JsonItem> {
  const scanner = createScanner()
  for await (const text of texts) yield* scanner.push(text)
  scanner.end()
}

const createScanner = () => {
  const open: ('{' | '[')[] = [] // the brackets around the current position, outside of any item
  let [item, depth, line, startLine] = ['', 0, 1, 1]
  let [isInString, isEscaped] = [false, false]

  const openBracket = (sign: '{' | '['): void => {
    if (depth > 0) depth++
    else if (sign === '{' && open.at(-1) === '[') [depth, startLine] = [1, line]
    else open.push(sign)
  }
  /** Returns whether an item ends here. */
  const closeBracket = (sign: string): boolean => {
    if (depth > 0) return --depth === 0
    if (open.pop() !== (sign === '}' ? '{' : '['))
      throw new DocumentError(`is not JSON: line ${line} has a ${sign} too many`)
    return false
  }
  const readInString = (sign: string): void => {
    if (isEscaped) isEscaped = false
    else if (sign === '\\') isEscaped = true
    else if (sign === '"') isInString = false
  }
  const push = function* (text: string): Generator<JsonItem> {
    let from = 0 // where the item starts in this text
    for (let at = 0; at < text.length; at++) {
      const sign = text[at] ?? ''
      if (sign === '\n') line++
      if (isInString) readInString(sign)
      else if (sign === '"') isInString = true
      else if (sign === '{' || sign === '[') {
        if (depth === 0) from = at
        openBracket(sign)
      } else if ((sign === '}' || sign === ']') && closeBracket(sign)) {
        yield { line: startLine, text: item + text.slice(from, at + 1) }
        item = ''
      }
    }
    if (depth > 0) item += text.slice(from)
    if (item.length > LONGEST_OBJECT) throw new DocumentError(`has an object at line ${startLine} that is too large`)
  }
  const end = (): void => {
    if (depth > 0 || open.length > 0) throw new DocumentError(`breaks off in line ${line}`)
  }
  return { push, end }
}

/** Reads one object per line. */
export const recordsInLines = async function* (texts: AsyncIterable<string>): AsyncGenerator<ImportRecord> {
  let cut = 0 // the number of an overlong line, whose further parts are skipped
  for await (const lines of linesOf(texts, LONGEST_LINE))
    for (const { number, text, isCut } of lines) {
      if (isCut) {
        if (cut !== number) yield { where: `line ${number}`, fault: 'is too long' }
        cut = number
      } else if (text.trim() !== '') yield readRecord({ line: number, text })
    }
}

/** Reads the objects in the arrays of a document. */
export const recordsInDocument = async function* (texts: AsyncIterable<string>): AsyncGenerator<ImportRecord> {
  let isEmpty = true
  try {
    for await (const item of itemsIn(texts)) {
      isEmpty = false
      yield readRecord(item)
    }
    if (isEmpty) yield { where: 'the document', fault: 'has no list of objects in it' }
  } catch (error) {
    if (!(error instanceof DocumentError)) throw error
    yield { where: 'the document', fault: error.message }
  }
}

const readRecord = ({ line, text }: JsonItem): ImportRecord => {
  const where = `line ${line}`
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? { where, members: value } : { where, fault: 'is not an object' }
  } catch {
    return { where, fault: 'is not JSON' }
  }
}
