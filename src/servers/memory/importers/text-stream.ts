/** A line, or a part of an overlong one; numbered from 1. */
export interface TextLine {
  readonly number: number
  readonly text: string
  readonly isCut: boolean // part of a line that was too long
}

/** Decodes UTF-8 chunks; a byte order mark is dropped. */
export const decodeChunks = async function* (chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8')
  for await (const chunk of chunks) {
    const text = decoder.decode(chunk, { stream: true })
    if (text !== '') yield text
  }
  const rest = decoder.decode()
  if (rest !== '') yield rest
}

/** Reads the beginning of a text, about `most` characters; `all` yields the text from its start. */
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

/** Splits a text into lines, those of each part together; a line of over `most` characters is cut into several. */
export const linesOf = async function* (
  texts: AsyncIterable<string>,
  most: number,
): AsyncGenerator<readonly TextLine[]> {
  let [number, pending, isCut] = [1, '', false]
  for await (const text of texts) {
    const parts = (pending + text).split('\n')
    pending = parts.pop() ?? ''
    const lines: TextLine[] = []
    for (const part of parts) {
      lines.push({ number: number++, text: part.endsWith('\r') ? part.slice(0, -1) : part, isCut })
      isCut = false
    }
    while (pending.length > most) {
      lines.push({ number, text: pending.slice(0, most), isCut: true })
      pending = pending.slice(most)
      isCut = true
    }
    yield lines
  }
  if (pending !== '') yield [{ number, text: pending, isCut }]
}
