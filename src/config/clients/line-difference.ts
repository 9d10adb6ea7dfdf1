/** A line of a difference between two texts; a gap stands for lines that are the same and not shown. */
export type DifferenceLine =
  | { readonly kind: 'same' | 'added' | 'removed'; readonly text: string }
  | { readonly kind: 'gap'; readonly lines: number }

const CONTEXT = 3
const MOST_CELLS = 4_000_000 // of the table; larger parts are shown as replaced

type Changed = { readonly kind: 'same' | 'added' | 'removed'; readonly text: string }

/** The lines that differ, with three lines around each change. */
export const lineDifference = (before: string, after: string): readonly DifferenceLine[] => {
  const [old, now] = [linesOf(before), linesOf(after)]
  let start = 0
  while (start < old.length && start < now.length && old[start] === now[start]) start++
  let end = 0
  while (end < old.length - start && end < now.length - start && old.at(-1 - end) === now.at(-1 - end)) end++
  const same = (lines: readonly string[]): Changed[] => lines.map(text => ({ kind: 'same', text }))
  return withGaps([
    ...same(old.slice(0, start)),
    ...compare(old.slice(start, old.length - end), now.slice(start, now.length - end)),
    ...same(old.slice(old.length - end)),
  ])
}

/** A final line break ends the last line. */
const linesOf = (text: string): readonly string[] => (text === '' ? [] : text.replace(/\r?\n$/, '').split(/\r?\n/))

/** The longest common subsequence of two parts. */
const compare = (old: readonly string[], now: readonly string[]): Changed[] => {
  const removed = (text: string): Changed => ({ kind: 'removed', text })
  const added = (text: string): Changed => ({ kind: 'added', text })
  if (old.length * now.length > MOST_CELLS || old.length === 0 || now.length === 0)
    return [...old.map(removed), ...now.map(added)]
  const width = now.length + 1
  const length = new Uint32Array((old.length + 1) * width) // of what is common from (i, j) on
  const at = (i: number, j: number): number => length[i * width + j] ?? 0
  for (let i = old.length - 1; i >= 0; i--)
    for (let j = now.length - 1; j >= 0; j--)
      length[i * width + j] = old[i] === now[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1))
  const result: Changed[] = []
  let [i, j] = [0, 0]
  while (i < old.length || j < now.length) {
    const [left = '', right = ''] = [old[i], now[j]]
    if (i < old.length && j < now.length && left === right) {
      result.push({ kind: 'same', text: left })
      i++
      j++
    } else if (j >= now.length || (i < old.length && at(i + 1, j) >= at(i, j + 1))) {
      result.push(removed(left))
      i++
    } else {
      result.push(added(right))
      j++
    }
  }
  return result
}

const withGaps = (lines: readonly Changed[]): readonly DifferenceLine[] => {
  const isNear = new Uint8Array(lines.length)
  for (const [at, { kind }] of lines.entries())
    if (kind !== 'same') isNear.fill(1, Math.max(0, at - CONTEXT), at + CONTEXT + 1)
  const result: DifferenceLine[] = []
  let hidden = 0
  const close = (): void => {
    if (hidden > 0) result.push({ kind: 'gap', lines: hidden })
    hidden = 0
  }
  for (const [at, line] of lines.entries()) {
    if (isNear[at] === 0) hidden++
    else {
      close()
      result.push(line)
    }
  }
  close()
  return result
}
