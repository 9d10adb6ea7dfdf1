import { DocumentError, itemsIn, type JsonItem } from './json-items.ts'
import { linesOf } from './text-stream.ts'

/** An object read from data, or why there is none. */
export type Record =
  | { readonly where: string; readonly members: Readonly<{ [key: string]: unknown }> }
  | { readonly where: string; readonly fault: string }

const LONGEST_LINE = 64 * 1024 * 1024

/** Objects one a line; a line that is none is named by its number. */
export const recordsInLines = async function* (texts: AsyncIterable<string>): AsyncGenerator<Record> {
  let cut = 0 // the line that is too long, whose parts are passed over
  for await (const { number, text, isCut } of linesOf(texts, LONGEST_LINE)) {
    if (isCut) {
      if (cut !== number) yield { where: `line ${number}`, fault: 'is too long' }
      cut = number
    } else if (text.trim() !== '') yield read({ line: number, text })
  }
}

/** The objects in the arrays of a document. */
export const recordsInDocument = async function* (texts: AsyncIterable<string>): AsyncGenerator<Record> {
  let isEmpty = true
  try {
    for await (const item of itemsIn(texts)) {
      isEmpty = false
      yield read(item)
    }
    if (isEmpty) yield { where: 'the document', fault: 'has no list of objects in it' }
  } catch (error) {
    if (!(error instanceof DocumentError)) throw error
    yield { where: 'the document', fault: error.message }
  }
}

const read = ({ line, text }: JsonItem): Record => {
  const where = `line ${line}`
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return { where, members: value as Readonly<{ [key: string]: unknown }> }
    return { where, fault: 'is not an object' }
  } catch {
    return { where, fault: 'is not JSON' }
  }
}
