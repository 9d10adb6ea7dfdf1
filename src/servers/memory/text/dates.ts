import { casual, type ParsedResult } from 'chrono-node'
import type { Granularity, Instant } from '../model.ts'

/** The period a date in words may span. */
type Extent = 'minute' | 'day' | 'weekend' | 'week' | 'month' | 'season' | 'year'

/** The model's granularity nearest to an extent. */
const GRANULARITY: Readonly<Record<Extent, Granularity>> = {
  minute: 'minute',
  day: 'day',
  weekend: 'week',
  week: 'week',
  month: 'month',
  season: 'quarter',
  year: 'year',
}

/** A period of time. */
export interface TimeSpan {
  readonly start: Instant // first millisecond
  readonly end: Instant // last millisecond
}

const DAY = 86_400_000

const startOfDay = (date: Date): number => Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate())

const daysSinceMonday = (date: Date): number => (date.getUTCDay() + 6) % 7

const months = (date: Date, first: number, count: number): readonly [number, number] => [
  Date.UTC(date.getUTCFullYear(), first, 1),
  Date.UTC(date.getUTCFullYear(), first + count, 1),
]

const BOUNDS: Readonly<Record<Extent, (date: Date) => readonly [number, number]>> = {
  minute: date => [Math.floor(date.getTime() / 60_000) * 60_000, Math.floor(date.getTime() / 60_000) * 60_000 + 60_000],
  day: date => [startOfDay(date), startOfDay(date) + DAY],
  weekend: date => {
    const saturday = startOfDay(date) + (5 - daysSinceMonday(date)) * DAY
    return [saturday, saturday + 2 * DAY]
  },
  week: date => {
    const monday = startOfDay(date) - daysSinceMonday(date) * DAY
    return [monday, monday + 7 * DAY]
  },
  month: date => months(date, date.getUTCMonth(), 1),
  season: date => months(date, date.getUTCMonth(), 3),
  year: date => months(date, 0, 12),
}

/** The minute, day … or year that contains a date; a season starts with the month of the date. */
const spanOf = (date: Date, extent: Extent): TimeSpan => {
  const [start, end] = BOUNDS[extent](date)
  return { start, end: end - 1 }
}

/** How a sentence uses a date: what it says begins then, holds until then, or is due by then. */
type DateRole = 'start' | 'end' | 'deadline'

/** A date mentioned in a text. */
export interface DateMention extends TimeSpan {
  readonly text: string
  readonly index: number // in the text
  readonly granularity: Granularity
  readonly role: DateRole
}

type UnreadMention = Omit<DateMention, 'role'>

const MOST_CHARACTERS = 4_000
const HINT =
  /\d|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mon|tue|wed|thu|fri|sat|sun|today|tomorrow|yesterday|tonight|now|ago|last|next|past|this|previous|coming|week|month|year|day|night|summer|winter|spring|autumn|fall)/i

// Words that chrono-node reads as short names of days and months when they stand alone.
const HOMONYM = /^(?:on |in )?(?:sat|sun|mon|wed|thu|mar|march|may|dec|jan|second|at \d{1,2})$/

// Not a date: "now" is the time of the episode anyway, the others are durations.
const NOT_A_DATE = /^(?:now$|for |within |after \d+ )/i

// Short names that chrono-node does not know; they are replaced by known ones, padded to keep the offsets.
const SHORT_DAY = /\b(?:tues|weds|thur|thurs)\b/gi

const EXTENT_WORDS: readonly (readonly [RegExp, Extent])[] = [
  [/\b(?:few|several) days/i, 'week'],
  [/\b(?:few|several) weeks/i, 'month'],
  [/\b(?:few|several) months/i, 'season'],
  [/\bweekend/i, 'weekend'],
  [/\bweek/i, 'week'],
  [/\bmonth/i, 'month'],
  [/\byear/i, 'year'],
  [/\bdecade/i, 'year'],
]

const extentOf = (result: ParsedResult): Extent => {
  const { start, text } = result
  if (start.isCertain('hour')) return 'minute'
  const worded = EXTENT_WORDS.find(([pattern]) => pattern.test(text))
  if (worded) return worded[1]
  if (start.isCertain('day') || start.isCertain('weekday')) return 'day'
  return start.isCertain('month') ? 'month' : start.isCertain('year') ? 'year' : 'day'
}

const isDate = ({ text, start }: ParsedResult): boolean =>
  !NOT_A_DATE.test(text) && !(HOMONYM.test(text) && !(start.isCertain('year') && start.isCertain('day')))

const SHIFTS: Readonly<Record<string, number>> = { last: -1, past: -1, previous: -1, this: 0, next: 1, coming: 1 }
const NEIGHBOUR = /^(?:the |this )?(last|past|previous|this|next|coming) (week|month|year)$/i

/** "Next month" and the like in whole units: chrono-node adds a month to the 31st, which skips a short month. */
const neighbourOf = (text: string, reference: Date): Date | undefined => {
  const [, which = '', unit = ''] = NEIGHBOUR.exec(text) ?? []
  const shift = SHIFTS[which.toLowerCase()]
  if (shift === undefined) return undefined
  const [year, month, day] = [reference.getUTCFullYear(), reference.getUTCMonth(), reference.getUTCDate()]
  if (unit.toLowerCase() === 'week') return new Date(Date.UTC(year, month, day + 7 * shift))
  return new Date(unit.toLowerCase() === 'month' ? Date.UTC(year, month + shift, 1) : Date.UTC(year + shift, 0, 1))
}

const mentionOf = (result: ParsedResult, reference: Date): UnreadMention => {
  const extent = extentOf(result)
  const first = spanOf(neighbourOf(result.text, reference) ?? result.start.date(), extent)
  const last = result.end ? spanOf(result.end.date(), extent) : first
  const { text, index } = result
  return { text, index, start: first.start, end: last.end, granularity: GRANULARITY[extent] }
}

const SEASONS: Readonly<Record<string, number>> = { spring: 2, summer: 5, autumn: 8, fall: 8, winter: 11 }
const SEASON = /\b(?:(last|this|next|past)\s+)?(spring|summer|autumn|fall|winter)(?:\s+(?:of\s+)?((?:19|20)\d\d))?\b/giu
const YEAR = /\b(?:in|since|until|during|by|from|of|year)\s+((?:19|20)\d\d)\b(?![\d:/.-]*\d)/giu

const seasonsIn = (text: string, reference: Date): UnreadMention[] =>
  [...text.matchAll(SEASON)].flatMap(match => {
    const [whole, which, name = '', year] = match
    const month = SEASONS[name.toLowerCase()]
    if (month === undefined || (which === undefined && year === undefined)) return []
    let of = year === undefined ? reference.getUTCFullYear() : Number(year)
    const isAhead = Date.UTC(of, month + 3, 1) > reference.getTime()
    if (/last|past/i.test(which ?? '') && isAhead) of--
    if (/next/i.test(which ?? '') && Date.UTC(of, month, 1) <= reference.getTime()) of++
    const { start, end } = spanOf(new Date(Date.UTC(of, month, 1)), 'season')
    return [{ text: whole, index: match.index, start, end, granularity: GRANULARITY.season }]
  })

const yearsIn = (text: string): UnreadMention[] =>
  [...text.matchAll(YEAR)].map(match => ({
    text: match[0],
    index: match.index,
    ...spanOf(new Date(Date.UTC(Number(match[1]), 0, 1)), 'year'),
    granularity: 'year',
  }))

const overlaps = (a: UnreadMention, b: UnreadMention): boolean =>
  a.index < b.index + b.text.length && b.index < a.index + a.text.length

/** The mention as written in the original text, without trailing spaces and commas. */
const quote = (text: string, { index, text: found }: UnreadMention): string =>
  text.slice(index, index + found.length).replace(/[\s,]+$/, '')

// chrono-node reads "from 3 May until 5 May" as a time of day; without these words it is two dates.
const RANGE_WORDS = /\b(?:until|till|from(?=\s+\d))\b/gi

// The words before a date that say how it is used; some of them may be part of the mention.
const FILLERS = '(?:(?:the|end|of|on|in)\\s+)*'
const OWN_WORDS = new RegExp(`^(?:(?:until|by)\\s+)?${FILLERS}`, 'i')
const ROLES: readonly (readonly [RegExp, DateRole])[] = [
  [new RegExp(`\\b(?:until|till)\\s+${FILLERS}$`, 'i'), 'end'],
  [new RegExp(`\\b(?:by|before|no later than|due|deadline(?: is|:))\\s+${FILLERS}$`, 'i'), 'deadline'],
]
const LONGEST_LEAD = 40

const roleOf = (text: string, mention: UnreadMention): DateRole => {
  const lead = text.slice(Math.max(0, mention.index - LONGEST_LEAD), mention.index)
  const words = lead + (OWN_WORDS.exec(mention.text)?.[0] ?? '')
  return ROLES.find(([pattern]) => pattern.test(words))?.[1] ?? 'start'
}

/** The dates in a text, relative to the reference time (UTC): English words, and ISO 8601 in any language. */
export const datesIn = (text: string, reference: Date): DateMention[] => {
  const head = text.slice(0, MOST_CHARACTERS).replace(SHORT_DAY, day => day.slice(0, 3).padEnd(day.length))
  if (!HINT.test(head) || Number.isNaN(reference.getTime())) return []
  const separated = head.replace(RANGE_WORDS, word => '|'.padEnd(word.length))
  const parsed = casual.parse(separated, { instant: reference, timezone: 0 }).filter(isDate)
  const mentions = parsed.map(result => mentionOf(result, reference))
  const rest = [...seasonsIn(head, reference), ...yearsIn(head)]
  const added = rest.filter(one => !mentions.some(other => overlaps(one, other)))
  return [...mentions, ...added]
    .filter(({ start, end }) => Number.isFinite(start) && end >= start)
    .toSorted((a, b) => a.index - b.index)
    .map(mention => ({ ...mention, text: quote(text, mention), role: roleOf(text, mention) }))
}

const FORMAT = new Intl.DateTimeFormat('en-GB', {
  weekday: 'long',
  day: 'numeric',
  month: 'long',
  year: 'numeric',
  timeZone: 'UTC',
})

const DAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday']
const MONTHS = [
  ...['January', 'February', 'March', 'April', 'May', 'June'],
  ...['July', 'August', 'September', 'October', 'November', 'December'],
]

/** The day in words, like `Monday 8 May 2023`; indexed so that a query "in May" finds it. */
export const dateWords = (at: Instant): string => {
  const date = new Date(at)
  const year = date.getUTCFullYear()
  // The formatter handles years of any length, but is slow.
  if (!(year >= 1000 && year <= 9999)) return FORMAT.format(at).replaceAll(',', '')
  return `${DAYS[date.getUTCDay()]} ${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]} ${year}`
}
