import fc from 'fast-check'
import { expect, test } from 'vitest'
import { datesIn, dateWords } from './dates.ts'

const REFERENCE = new Date(Date.UTC(2023, 4, 8, 13, 56)) // a Monday

const spans = (text: string) =>
  datesIn(text, REFERENCE).map(
    ({ start, end, granularity }) =>
      `${new Date(start).toISOString().slice(0, 10)}..${new Date(end).toISOString().slice(0, 10)} ${granularity}`,
  )

test.each([
  ['I went there yesterday', ['2023-05-07..2023-05-07 day']],
  ['we met last week', ['2023-05-01..2023-05-07 week']],
  ['last weekend was fun', ['2023-05-06..2023-05-07 week']],
  ['I move next month', ['2023-06-01..2023-06-30 month']],
  ['two years ago', ['2021-01-01..2021-12-31 year']],
  ['married since 2016', ['2016-01-01..2016-12-31 year']],
  ['last summer', ['2022-06-01..2022-08-31 quarter']],
  ['in March 2022', ['2022-03-01..2022-03-31 month']],
  ['on 3 April', ['2023-04-03..2023-04-03 day']],
  ['released 2024-02-29', ['2024-02-29..2024-02-29 day']],
  ['from June 2 to June 5', ['2023-06-02..2023-06-05 day']],
  ['I sat in the sun and may march', []],
  ['I joined last Tues.', ['2023-05-02..2023-05-02 day']],
  ['a few days ago', ['2023-05-01..2023-05-07 week']],
  ['this week', ['2023-05-08..2023-05-14 week']],
  ['I owned it for 10 years', []],
  ['nothing to see', []],
  ['order 66, 12 eggs', []],
])('%j means %j', (text, expected) => {
  expect(spans(text)).toEqual(expected)
})

test('the month after one of 31 days is the next, not the one after', () => {
  const [mention] = datesIn('I leave next month', new Date(Date.UTC(2023, 7, 31)))
  expect(mention?.start).toBe(Date.UTC(2023, 8, 1))
})

test('a mention is quoted as written', () => {
  expect(datesIn('It was last Thurs, late', REFERENCE)[0]?.text.trim()).toBe('last Thurs')
})

test('a time of day is known to the minute', () => {
  const [mention] = datesIn('deploy tomorrow at 10:30', REFERENCE)
  expect(mention?.granularity).toBe('minute')
  expect(mention?.start).toBe(Date.UTC(2023, 4, 9, 10, 30))
})

test('the time zone of the machine is irrelevant', () => {
  const late = new Date(Date.UTC(2023, 4, 8, 23, 59))
  expect(datesIn('today', late)[0]?.start).toBe(Date.UTC(2023, 4, 8))
})

test('an invalid reference date gives no dates', () => {
  expect(datesIn('yesterday', new Date(Number.NaN))).toEqual([])
})

test('dateWords writes the day in words', () => {
  expect(dateWords(REFERENCE.getTime())).toBe('Monday 8 May 2023')
})

const FORMAT = new Intl.DateTimeFormat('en-GB', { dateStyle: 'full', timeZone: 'UTC' })

test('dateWords writes a day as Intl.DateTimeFormat does, in any year', () => {
  expect(dateWords(Date.UTC(2023, 4, 8, 23, 59))).toBe('Monday 8 May 2023')
  const moment = fc.date({ min: new Date('0001-01-01'), max: new Date('+012000-01-01'), noInvalidDate: true })
  fc.assert(
    fc.property(moment, date => {
      expect(dateWords(date.getTime())).toBe(FORMAT.format(date).replaceAll(',', ''))
    }),
  )
})
