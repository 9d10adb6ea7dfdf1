/** A line, or a part of one that is too long; where it stands, counted from 1. */
export interface TextLine {
  readonly number: number
  readonly text: string
  readonly isCut: boolean
}

/** Bytes as text, however they are cut; a byte order mark is no text. */
export const textOf = async function* (chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8')
  for await (const chunk of chunks) {
    const text = decoder.decode(chunk, { stream: true })
    if (text !== '') yield text
  }
  const rest = decoder.decode()
  if (rest !== '') yield rest
}

/** The beginning of a text, and the whole of it. */
export const peek = async (
  texts: AsyncGenerator<string>,
  most: number,
): Promise<{ readonly head: string; readonly isWhole: boolean; readonly all: AsyncGenerator<string> }> => {
  const read: string[] = []
  let isWhole = false
  for (let size = 0; size < most; ) {
    const { value, done } = await texts.next()
    if (done) {
      isWhole = true
      break
    }
    read.push(value)
    size += value.length
  }
  const all = async function* (): AsyncGenerator<string> {
    yield* read
    yield* texts
  }
  return { head: read.join(''), isWhole, all: all() }
}

/** Text line by line, in pieces of at most `most` characters. */
export const linesOf = async function* (texts: AsyncIterable<string>, most: number): AsyncGenerator<TextLine> {
  let [number, waiting, isCut] = [1, '', false]
  for await (const text of texts) {
    const lines = (waiting + text).split('\n')
    waiting = lines.pop() ?? ''
    for (const line of lines) {
      yield { number: number++, text: line.endsWith('\r') ? line.slice(0, -1) : line, isCut }
      isCut = false
    }
    while (waiting.length > most) {
      yield { number, text: waiting.slice(0, most), isCut: true }
      waiting = waiting.slice(most)
      isCut = true
    }
  }
  if (waiting !== '') yield { number, text: waiting, isCut }
}
