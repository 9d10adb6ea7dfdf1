import type { Spans } from './matcher.ts'

/** One match as it is shown. */
export interface Excerpt {
  readonly [member: string]: string | number | undefined
  readonly line: number // where the match begins, from 1
  readonly first_line: number | undefined // of the text, where that is another
  readonly text: string
}

const MOST_LINES = 40
const LONGEST_LINE = 500

/** The lines around each match. Matches on one line are shown once. */
export const excerptsOf = (
  text: string,
  spans: Spans,
  { before, after }: { readonly before: number; readonly after: number },
): Excerpt[] => {
  const starts = lineStarts(text)
  const found: Excerpt[] = []
  let hint = 0
  let shownTo = -1
  for (let i = 0; i < spans.length; i += 2) {
    const [begin = 0, end = 0] = [spans[i], spans[i + 1]]
    const line = lineAt(starts, begin, hint)
    const last = lineAt(starts, Math.max(begin, end - 1), line)
    hint = line
    if (line <= shownTo) continue
    shownTo = last
    const from = Math.max(0, line - before)
    const to = Math.min(starts.length - 1, last + after, from + MOST_LINES - 1)
    const shown: string[] = []
    for (let at = from; at <= to; at++) shown.push(lineOf(text, starts, at))
    found.push({ line: line + 1, first_line: from === line ? undefined : from + 1, text: shown.join('\n') })
  }
  return found
}

const lineStarts = (text: string): number[] => {
  const starts = [0]
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) starts.push(at + 1)
  return starts
}

/** Spans come in order, so each line is found from the one before. */
const lineAt = (starts: readonly number[], offset: number, hint: number): number => {
  let line = hint
  while (line + 1 < starts.length && (starts[line + 1] as number) <= offset) line++
  return line
}

const lineOf = (text: string, starts: readonly number[], line: number): string => {
  const begin = starts[line] as number
  const end = line + 1 < starts.length ? (starts[line + 1] as number) - 1 : text.length
  const whole = text.slice(begin, Math.min(end, begin + LONGEST_LINE)).replace(/\r$/, '')
  return end - begin > LONGEST_LINE ? `${whole}…` : whole
}
