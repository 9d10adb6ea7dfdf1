// Differences between texts by lines, and the merge of two changes of one text: pure functions.

/** One line of a difference, with its number in each of the texts that have it. */
export interface TextLine {
  readonly kind: 'same' | 'added' | 'removed'
  readonly text: string
  readonly before?: number | undefined
  readonly after?: number | undefined
}

const MAX_CELLS = 4_000_000 // of the table; larger differences are shown as one change

const linesOf = (text: string): readonly string[] => text.replace(/\r/g, '').split('\n')

/** All lines of two texts, in the order of a difference. */
export const diffLines = (before: string, after: string): readonly TextLine[] => {
  const [a, b] = [linesOf(before), linesOf(after)]
  let start = 0
  while (start < Math.min(a.length, b.length) && a[start] === b[start]) start++
  let end = 0
  while (end < Math.min(a.length, b.length) - start && a.at(-1 - end) === b.at(-1 - end)) end++
  const same = (from: number, count: number, shift: number): TextLine[] =>
    a
      .slice(from, from + count)
      .map((text, at) => ({ kind: 'same', text, before: from + at + 1, after: from + at + 1 + shift }))
  return [
    ...same(0, start, 0),
    ...diffMiddle(a.slice(start, a.length - end), b.slice(start, b.length - end), start),
    ...same(a.length - end, end, b.length - a.length),
  ]
}

/** The longest common subsequence, by dynamic programming. */
const diffMiddle = (a: readonly string[], b: readonly string[], offset: number): TextLine[] => {
  const [rows, columns] = [a.length + 1, b.length + 1]
  const lengths = new Uint32Array(rows * columns > MAX_CELLS ? 0 : rows * columns)
  for (let i = a.length - 1; i >= 0 && lengths.length > 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      lengths[i * columns + j] =
        a[i] === b[j]
          ? (lengths[(i + 1) * columns + j + 1] ?? 0) + 1
          : Math.max(lengths[(i + 1) * columns + j] ?? 0, lengths[i * columns + j + 1] ?? 0)
  const result: TextLine[] = []
  let [i, j] = [0, 0]
  while (i < a.length || j < b.length) {
    const [left = '', right = ''] = [a[i], b[j]]
    if (i < a.length && j < b.length && left === right && lengths.length > 0) {
      result.push({ kind: 'same', text: left, before: offset + ++i, after: offset + ++j })
    } else if (
      i < a.length &&
      (j === b.length || (lengths[(i + 1) * columns + j] ?? 0) >= (lengths[i * columns + j + 1] ?? 0))
    )
      result.push({ kind: 'removed', text: left, before: offset + ++i })
    else result.push({ kind: 'added', text: right, after: offset + ++j })
  }
  return result
}

/** The changed lines with some around them; undefined stands for lines that are left out. */
export const diffHunks = (lines: readonly TextLine[], context = 3): readonly (TextLine | undefined)[] => {
  const isNear = lines.map((_, at) =>
    lines.slice(Math.max(0, at - context), at + context + 1).some(({ kind }) => kind !== 'same'),
  )
  return lines.flatMap((line, at) => {
    if (isNear[at]) return [line]
    return isNear[at - 1] ? [undefined] : []
  })
}

interface LineChange {
  readonly from: number // first line of the base that is replaced
  readonly to: number // after the last
  readonly lines: readonly string[]
}

const changesIn = (base: string, next: string): readonly LineChange[] => {
  const changes: { from: number; to: number; lines: string[] }[] = []
  let at = 0
  let isOpen = false
  for (const { kind, text } of diffLines(base, next)) {
    if (kind === 'same') {
      at++
      isOpen = false
      continue
    }
    if (!isOpen) changes.push({ from: at, to: at, lines: [] })
    isOpen = true
    const change = changes.at(-1)
    if (change && kind === 'removed') change.to = ++at
    else change?.lines.push(text)
  }
  return changes
}

/** Both changes of a text in one; undefined if they change the same lines, or lines that touch. */
export const mergeTexts = (base: string, mine: string, theirs: string): string | undefined => {
  const [own, other] = [changesIn(base, mine), changesIn(base, theirs)]
  const meets = own.some(a => other.some(b => a.from <= b.to && b.from <= a.to))
  if (meets && mine !== theirs) return undefined
  const eol = theirs.includes('\r\n') ? '\r\n' : '\n'
  const all = mine === theirs ? other : [...own, ...other].sort((a, b) => a.from - b.from)
  const lines = linesOf(base)
  const merged: string[] = []
  let at = 0
  for (const { from, to, lines: added } of all) {
    merged.push(...lines.slice(at, from), ...added)
    at = to
  }
  return [...merged, ...lines.slice(at)].join(eol)
}
