import { type Item, type Origin, uuidFor } from './item.ts'
import type { TextLine } from './text-stream.ts'

const ENOUGH = 256 * 1024 // a piece ends at the next heading or empty line
const MOST = 512 * 1024

/** A text as episodes: one, or several where it is long, cut between its sections. */
export const documentItems = async function* (
  lines: AsyncIterable<TextLine>,
  origin: Origin,
  what: string,
): AsyncGenerator<Item> {
  const uuidOf = (number: number): string => uuidFor('file', origin.group, origin.key, number)
  let number = 0
  for await (const { where, body } of piecesOf(lines)) {
    if (body.includes('\0')) {
      yield { kind: 'fault', where, why: 'looks binary: it has a zero byte' }
      return
    }
    const told = {
      uuid: uuidOf(number),
      group: origin.group,
      name: number === 0 ? origin.name : `${origin.name} (${number + 1})`,
      body,
      source: 'text',
      sourceDescription: what,
      validAt: origin.modified,
      chain: `file:${uuidFor(origin.key)}`,
    } as const
    yield { kind: 'episode', where, told, isUndated: true }
    number++
  }
  yield { kind: 'end', uuidOf, from: number }
}

const piecesOf = async function* (lines: AsyncIterable<TextLine>): AsyncGenerator<{ where: string; body: string }> {
  let [piece, size, begun]: [string[], number, number] = [[], 0, 1]
  for await (const { number, text } of lines) {
    const isBreak = text.trim() === '' || /^#{1,6}\s/.test(text)
    if ((size > ENOUGH && isBreak) || size + text.length > MOST) {
      if (piece.some(line => line.trim() !== '')) yield { where: `line ${begun}`, body: piece.join('\n') }
      ;[piece, size, begun] = [[], 0, number]
    }
    piece.push(text)
    size += text.length + 1
  }
  if (piece.some(line => line.trim() !== '')) yield { where: `line ${begun}`, body: piece.join('\n') }
}
