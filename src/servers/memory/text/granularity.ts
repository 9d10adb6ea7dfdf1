import type { Granularity, Instant } from '../model.ts'

/** What a date in words may span; kept with a fact it is one of the model's granularities. */
export type Extent = 'minute' | 'day' | 'weekend' | 'week' | 'month' | 'season' | 'year'

/** The granularity that comes nearest to an extent. */
export const GRANULARITY: Readonly<Record<Extent, Granularity>> = {
  minute: 'minute',
  day: 'day',
  weekend: 'week',
  week: 'week',
  month: 'month',
  season: 'quarter',
  year: 'year',
}

export interface Span {
  readonly start: Instant // the first moment
  readonly end: Instant // the last moment
}

const DAY = 86_400_000

const startOfDay = (date: Date): number => Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate())

/** Days since the Monday of its week. */
const dayOfWeek = (date: Date): number => (date.getUTCDay() + 6) % 7

const months = (date: Date, first: number, count: number): readonly [number, number] => [
  Date.UTC(date.getUTCFullYear(), first, 1),
  Date.UTC(date.getUTCFullYear(), first + count, 1),
]

const BOUNDS: Readonly<Record<Extent, (date: Date) => readonly [number, number]>> = {
  minute: date => [Math.floor(date.getTime() / 60_000) * 60_000, Math.floor(date.getTime() / 60_000) * 60_000 + 60_000],
  day: date => [startOfDay(date), startOfDay(date) + DAY],
  weekend: date => {
    const saturday = startOfDay(date) + (5 - dayOfWeek(date)) * DAY
    return [saturday, saturday + 2 * DAY]
  },
  week: date => {
    const monday = startOfDay(date) - dayOfWeek(date) * DAY
    return [monday, monday + 7 * DAY]
  },
  month: date => months(date, date.getUTCMonth(), 1),
  season: date => months(date, date.getUTCMonth(), 3),
  year: date => months(date, 0, 12),
}

/** The first and the last moment of the minute, day … or year that a date lies in (a season begins with the month given). */
export const spanOf = (date: Date, extent: Extent): Span => {
  const [start, end] = BOUNDS[extent](date)
  return { start, end: end - 1 }
}
