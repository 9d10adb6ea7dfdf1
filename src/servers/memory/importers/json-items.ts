/** An object out of a JSON document: its text, and the line it begins on. */
export interface JsonItem {
  readonly line: number
  readonly text: string
}

const MOST_CHARACTERS = 64 * 1024 * 1024

/** A document broke off, or one of its objects is beyond all measure. */
export class DocumentError extends Error {
  override readonly name = 'DocumentError'
}

/**
 * The objects that stand in an array of a JSON document, one after the other: only one is held at a time, so the
 * document may be of any size. Objects within such an object are part of it.
 */
export const itemsIn = async function* (texts: AsyncIterable<string>): AsyncGenerator<JsonItem> {
  const scanner = createScanner()
  for await (const text of texts) yield* scanner.push(text)
  scanner.end()
}

const createScanner = () => {
  const open: ('{' | '[')[] = [] // around the place we are at, outside of any item
  let [item, depth, line, begun] = ['', 0, 1, 1]
  let [inString, isEscaped] = [false, false]

  const enter = (sign: '{' | '['): void => {
    if (depth > 0) depth++
    else if (sign === '{' && open.at(-1) === '[') [depth, begun] = [1, line]
    else open.push(sign)
  }
  /** True where an item ends. */
  const leave = (sign: string): boolean => {
    if (depth > 0) return --depth === 0
    const opened = open.pop()
    if (opened !== (sign === '}' ? '{' : '['))
      throw new DocumentError(`is not JSON: line ${line} has a ${sign} too many`)
    return false
  }
  const inside = (sign: string): void => {
    if (isEscaped) isEscaped = false
    else if (sign === '\\') isEscaped = true
    else if (sign === '"') inString = false
  }
  const push = function* (text: string): Generator<JsonItem> {
    let from = 0 // of what belongs to the item
    for (let at = 0; at < text.length; at++) {
      const sign = text[at] ?? ''
      if (sign === '\n') line++
      if (inString) inside(sign)
      else if (sign === '"') inString = true
      else if (sign === '{' || sign === '[') {
        if (depth === 0) from = at
        enter(sign)
      } else if ((sign === '}' || sign === ']') && leave(sign)) {
        yield { line: begun, text: item + text.slice(from, at + 1) }
        item = ''
      }
    }
    if (depth > 0) item += text.slice(from)
    if (item.length > MOST_CHARACTERS) throw new DocumentError(`has an object at line ${begun} that is too large`)
  }
  return {
    push,
    end: (): void => {
      if (depth > 0 || open.length > 0) throw new DocumentError(`breaks off in line ${line}`)
    },
  }
}
