import fc from 'fast-check'
import { expect, test } from 'vitest'
import { dateWords } from './date-words.ts'

const FORMAT = new Intl.DateTimeFormat('en-GB', { dateStyle: 'full', timeZone: 'UTC' })

test('a day is told as the formatter of the platform tells it, in whichever year', () => {
  expect(dateWords(Date.UTC(2023, 4, 8, 23, 59))).toBe('Monday 8 May 2023')
  const moment = fc.date({ min: new Date('0001-01-01'), max: new Date('+012000-01-01'), noInvalidDate: true })
  fc.assert(
    fc.property(moment, date => {
      expect(dateWords(date.getTime())).toBe(FORMAT.format(date).replaceAll(',', ''))
    }),
  )
})
