import { casual, type ParsedResult } from 'chrono-node'
import type { Granularity } from '../model.ts'
import { type Extent, GRANULARITY, type Span, spanOf } from './granularity.ts'

/** A time that a text speaks of. */
export interface DateMention extends Span {
  readonly text: string
  readonly index: number // where it stands in the text
  readonly granularity: Granularity
}

const MOST_CHARACTERS = 4_000
const HINT =
  /\d|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mon|tue|wed|thu|fri|sat|sun|today|tomorrow|yesterday|tonight|now|ago|last|next|past|this|previous|coming|week|month|year|day|night|summer|winter|spring|autumn|fall)/i

// Words that the parser takes for short names of days and months when they stand alone.
const HOMONYM = /^(?:on |in )?(?:sat|sun|mon|wed|thu|mar|march|may|dec|jan|second|at \d{1,2})$/

// No time to keep: when it is said anyway, and how long something takes.
const NO_TIME = /^(?:now$|for |within |after \d+ )/i

// Short names that the parser does not know; those it knows are as long with the spaces.
const SHORT_DAY = /\b(?:tues|weds|thur|thurs)\b/gi

const WORDS: readonly (readonly [RegExp, Extent])[] = [
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
  const worded = WORDS.find(([pattern]) => pattern.test(text))
  if (worded) return worded[1]
  if (start.isCertain('day') || start.isCertain('weekday')) return 'day'
  return start.isCertain('month') ? 'month' : start.isCertain('year') ? 'year' : 'day'
}

const isMeant = ({ text, start }: ParsedResult): boolean =>
  !NO_TIME.test(text) && !(HOMONYM.test(text) && !(start.isCertain('year') && start.isCertain('day')))

const SHIFTS: Readonly<Record<string, number>> = { last: -1, past: -1, previous: -1, this: 0, next: 1, coming: 1 }
const NEIGHBOUR = /^(?:the |this )?(last|past|previous|this|next|coming) (week|month|year)$/i

/** "Next month" and its like, reckoned in whole units: the parser adds a month to the 31st and lands in the one after. */
const neighbourOf = (text: string, reference: Date): Date | undefined => {
  const [, which = '', unit = ''] = NEIGHBOUR.exec(text) ?? []
  const shift = SHIFTS[which.toLowerCase()]
  if (shift === undefined) return undefined
  const [year, month, day] = [reference.getUTCFullYear(), reference.getUTCMonth(), reference.getUTCDate()]
  if (unit.toLowerCase() === 'week') return new Date(Date.UTC(year, month, day + 7 * shift))
  return new Date(unit.toLowerCase() === 'month' ? Date.UTC(year, month + shift, 1) : Date.UTC(year + shift, 0, 1))
}

const mentionOf = (result: ParsedResult, reference: Date): DateMention => {
  const extent = extentOf(result)
  const first = spanOf(neighbourOf(result.text, reference) ?? result.start.date(), extent)
  const last = result.end ? spanOf(result.end.date(), extent) : first
  const { text, index } = result
  return { text, index, start: first.start, end: last.end, granularity: GRANULARITY[extent] }
}

const SEASONS: Readonly<Record<string, number>> = { spring: 2, summer: 5, autumn: 8, fall: 8, winter: 11 }
const SEASON = /\b(?:(last|this|next|past)\s+)?(spring|summer|autumn|fall|winter)(?:\s+(?:of\s+)?((?:19|20)\d\d))?\b/giu
const YEAR = /\b(?:in|since|until|during|by|from|of|year)\s+((?:19|20)\d\d)\b(?![\d:/.-]*\d)/giu

const seasonsIn = (text: string, reference: Date): DateMention[] =>
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

const yearsIn = (text: string): DateMention[] =>
  [...text.matchAll(YEAR)].map(match => ({
    text: match[0],
    index: match.index,
    ...spanOf(new Date(Date.UTC(Number(match[1]), 0, 1)), 'year'),
    granularity: 'year',
  }))

const overlaps = (a: DateMention, b: DateMention): boolean =>
  a.index < b.index + b.text.length && b.index < a.index + a.text.length

/** The words as they stand, without what only follows them. */
const quote = (text: string, { index, text: found }: DateMention): string =>
  text.slice(index, index + found.length).replace(/[\s,]+$/, '')

/** The times a text speaks of, read as if said at the reference time (UTC). English, and ISO 8601 in any language. */
export const datesIn = (text: string, reference: Date): DateMention[] => {
  const head = text.slice(0, MOST_CHARACTERS).replace(SHORT_DAY, day => day.slice(0, 3).padEnd(day.length))
  if (!HINT.test(head) || Number.isNaN(reference.getTime())) return []
  const parsed = casual.parse(head, { instant: reference, timezone: 0 }).filter(isMeant)
  const mentions = parsed.map(result => mentionOf(result, reference))
  const rest = [...seasonsIn(head, reference), ...yearsIn(head)]
  const added = rest.filter(one => !mentions.some(other => overlaps(one, other)))
  return [...mentions, ...added]
    .filter(({ start, end }) => Number.isFinite(start) && end >= start)
    .toSorted((a, b) => a.index - b.index)
    .map(mention => ({ ...mention, text: quote(text, mention) }))
}
