import type { FactView } from '../../../protocol/memory-views.ts'

type Span = Pick<FactView, 'validFrom' | 'validUntil'>

/** The time axis of the facts of one entity. */
export interface ValidityScale {
  readonly from: number
  readonly to: number
  readonly ticks: readonly ScaleTick[]
}

interface ScaleTick {
  readonly label: string
  readonly left: number // percent
}

/** Where a fact is drawn; both in percent of the axis. */
export interface ValidityBar {
  readonly left: number
  readonly width: number
  readonly opensLeft: boolean // it has no beginning, or one before the axis
  readonly opensRight: boolean // it is still true
}

const DAY = 86_400_000
const YEAR = 365.25 * DAY
const LEAST_SPAN = 7 * DAY
const PADDING = 0.04 // of the span, on both sides
const MOST_TICKS = 6
const LAST_TICKS = { day: 84, month: 90, year: 94 } // percent: the label of a later one would be cut off
const LEAST_WIDTH = 0.6 // percent: a moment can be seen, too
const OLDEST = -62_135_596_800_000 // the year 1
const NEWEST = 253_402_300_799_000 // the year 9999

const isDrawn = (at: number | undefined): at is number => at !== undefined && at >= OLDEST && at <= NEWEST

/** An axis that shows the beginning and the end of every fact, and now; nothing later, and at least the last week. */
export const validityScale = (facts: readonly Span[], now: number): ValidityScale => {
  const times = facts.flatMap(({ validFrom, validUntil }) => [validFrom, validUntil].filter(isDrawn))
  const [first, last] = [Math.min(now, ...times), Math.max(now, ...times)]
  const span = Math.max(LEAST_SPAN, last - first)
  const [from, to] = [Math.min(first, last - span) - span * PADDING, last + span * PADDING]
  return { from, to, ticks: ticksOf(from, to) }
}

/** Round steps of an axis: days, months or years. */
const STEPS: readonly (readonly [ms: number, unit: 'day' | 'month' | 'year', count: number])[] = [
  [DAY, 'day', 1],
  [2 * DAY, 'day', 2],
  [7 * DAY, 'day', 7],
  [14 * DAY, 'day', 14],
  [YEAR / 12, 'month', 1],
  [YEAR / 4, 'month', 3],
  [YEAR / 2, 'month', 6],
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000].map(years => [years * YEAR, 'year', years] as const),
]

const ticksOf = (from: number, to: number): readonly ScaleTick[] => {
  const [, unit, count] = STEPS.find(([ms]) => (to - from) / ms <= MOST_TICKS) ?? ([0, 'year', 5000] as const)
  const ticks: ScaleTick[] = []
  for (let at = firstTick(from, unit, count); at <= to; at = nextTick(at, unit, count))
    if (at >= from) ticks.push({ label: labelOf(at, unit), left: percent(at, from, to) })
  return ticks.filter(({ left }) => left <= LAST_TICKS[unit])
}

const firstTick = (from: number, unit: 'day' | 'month' | 'year', count: number): number => {
  const date = new Date(from)
  if (unit === 'day') return Math.floor(from / (count * DAY)) * count * DAY
  const year = date.getUTCFullYear()
  return unit === 'month'
    ? Date.UTC(year, Math.floor(date.getUTCMonth() / count) * count)
    : dateOfYear(Math.floor(year / count) * count)
}

/** `Date.UTC` reads years below 100 as those of the last century. */
const dateOfYear = (year: number): number => new Date(0).setUTCFullYear(year, 0, 1)

const nextTick = (at: number, unit: 'day' | 'month' | 'year', count: number): number => {
  if (unit === 'day') return at + count * DAY
  const date = new Date(at)
  return unit === 'month'
    ? date.setUTCMonth(date.getUTCMonth() + count)
    : date.setUTCFullYear(date.getUTCFullYear() + count)
}

const labelOf = (at: number, unit: 'day' | 'month' | 'year'): string =>
  new Date(at).toISOString().slice(0, { day: 10, month: 7, year: 4 }[unit])

const percent = (at: number, from: number, to: number): number => ((at - from) / (to - from)) * 100

/** A fact that is still true is drawn until now; one that begins later, to the end of the axis. */
export const validityBar = ({ validFrom, validUntil }: Span, { from, to }: ValidityScale, now: number): ValidityBar => {
  const opensLeft = !isDrawn(validFrom)
  const opensRight = !isDrawn(validUntil)
  const left = opensLeft ? 0 : percent(validFrom, from, to)
  const isLater = !opensLeft && validFrom > now
  const right = opensRight ? (isLater ? 100 : percent(now, from, to)) : percent(validUntil, from, to)
  return { left, width: Math.max(LEAST_WIDTH, right - left), opensLeft, opensRight }
}
