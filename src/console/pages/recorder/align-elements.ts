import { META } from '../../../protocol/meta.ts'
import { isSameNode, type JsonNode, stringAt } from './json-node.ts'

/** An element of the array before, the one that it became, or both. */
export interface ElementPair {
  readonly before?: number | undefined // its index
  readonly after?: number | undefined
}

const MOST_CELLS = 250_000 // of the table that finds the longest common part
const NAMES = [['_meta', META.origin, 'name'], ['name'], ['uri'], ['uriTemplate']] as const

/** What an element of a list is called at its server, whatever the workspace calls it. */
const nameOf = (node: JsonNode): string | undefined => {
  for (const path of NAMES) {
    const name = stringAt(node, path)
    if (name !== undefined) return name
  }
  return undefined
}

/** Which elements of two arrays belong together: equal ones, those of one name, and what lies between in its order. */
export const alignElements = (before: readonly JsonNode[], after: readonly JsonNode[]): readonly ElementPair[] => {
  const names = [before.map(nameOf), after.map(nameOf)] as const
  const isMatch = (b: number, a: number): boolean => {
    const name = names[0][b]
    return name === undefined || names[1][a] === undefined
      ? isSameNode(before[b] as JsonNode, after[a] as JsonNode)
      : name === names[1][a]
  }
  let start = 0
  while (start < before.length && start < after.length && isMatch(start, start)) start++
  let [endBefore, endAfter] = [before.length, after.length]
  while (endBefore > start && endAfter > start && isMatch(endBefore - 1, endAfter - 1)) {
    endBefore--
    endAfter--
  }
  const matches = matchMiddle(start, endBefore, endAfter, isMatch)
  const pairs: ElementPair[] = Array.from({ length: start }, (_, at) => ({ before: at, after: at }))
  let [b, a] = [start, start]
  for (const match of [...matches, { before: endBefore, after: endAfter }]) {
    pairs.push(...pairGap(b, match.before, a, match.after))
    if (match.before < endBefore || match.after < endAfter) pairs.push(match)
    ;[b, a] = [match.before + 1, match.after + 1]
  }
  for (let at = 0; endBefore + at < before.length; at++) pairs.push({ before: endBefore + at, after: endAfter + at })
  return pairs
}

/** Elements between two matches: the first with the first, and so on; the rest was added or removed. */
const pairGap = (b: number, endBefore: number, a: number, endAfter: number): ElementPair[] => {
  const [lengthBefore, lengthAfter] = [endBefore - b, endAfter - a]
  return Array.from({ length: Math.max(0, lengthBefore, lengthAfter) }, (_, at) => ({
    before: at < lengthBefore ? b + at : undefined,
    after: at < lengthAfter ? a + at : undefined,
  }))
}

type Match = { readonly before: number; readonly after: number }

/** The longest common part of what differs, by dynamic programming; nothing if that is too large. */
const matchMiddle = (
  start: number,
  endBefore: number,
  endAfter: number,
  isMatch: (b: number, a: number) => boolean,
): readonly Match[] => {
  const [rows, columns] = [endBefore - start, endAfter - start]
  if (rows * columns === 0 || rows * columns > MOST_CELLS) return []
  const width = columns + 1
  const lengths = new Uint32Array((rows + 1) * width)
  const lengthAt = (row: number, column: number): number => lengths[row * width + column] ?? 0
  for (let row = rows - 1; row >= 0; row--)
    for (let column = columns - 1; column >= 0; column--)
      lengths[row * width + column] = isMatch(start + row, start + column)
        ? lengthAt(row + 1, column + 1) + 1
        : Math.max(lengthAt(row + 1, column), lengthAt(row, column + 1))
  const matches: Match[] = []
  let [row, column] = [0, 0]
  while (row < rows && column < columns) {
    const length = lengthAt(row, column)
    if (length === lengthAt(row + 1, column)) row++
    else if (length === lengthAt(row, column + 1)) column++
    else matches.push({ before: start + row++, after: start + column++ })
  }
  return matches
}
