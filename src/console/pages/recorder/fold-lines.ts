import type { DiffLine } from './diff.ts'

/** A line, or a run of equal lines that is not shown. */
export type FoldedPart =
  | { readonly kind: 'line'; readonly index: number; readonly line: DiffLine }
  | { readonly kind: 'fold'; readonly from: number; readonly count: number }

const CONTEXT = 2 // equal lines that stay around a change
const LEAST_FOLDED = 4

/** Replaces long runs of equal lines; `opened` has the first lines of those that the user wants to see. */
export const foldLines = (lines: readonly DiffLine[], opened: ReadonlySet<number>): readonly FoldedPart[] => {
  const parts: FoldedPart[] = []
  const show = (from: number, to: number): void => {
    for (let index = from; index < to; index++) parts.push({ kind: 'line', index, line: lines[index] as DiffLine })
  }
  let at = 0
  while (at < lines.length) {
    if (lines[at]?.change !== undefined) {
      show(at, at + 1)
      at++
      continue
    }
    const end = endOfRun(lines, at)
    const from = at === 0 ? Math.min(end, at + 1) : Math.min(end, at + CONTEXT)
    const to = end === lines.length ? Math.max(from, end - 1) : Math.max(from, end - CONTEXT)
    if (to - from < LEAST_FOLDED || opened.has(from)) show(at, end)
    else {
      show(at, from)
      parts.push({ kind: 'fold', from, count: to - from })
      show(to, end)
    }
    at = end
  }
  return parts
}

const endOfRun = (lines: readonly DiffLine[], start: number): number => {
  let end = start
  while (end < lines.length && lines[end]?.change === undefined) end++
  return end
}
