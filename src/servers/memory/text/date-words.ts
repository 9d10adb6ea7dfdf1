import type { Instant } from '../model.ts'

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

/** A moment's day in words, so that "in May" finds what happened then: `Monday 8 May 2023`. */
export const dateWords = (at: Instant): string => {
  const date = new Date(at)
  const year = date.getUTCFullYear()
  // Of far-off years the formatter knows better, but it is slow.
  if (!(year >= 1000 && year <= 9999)) return FORMAT.format(at).replaceAll(',', '')
  return `${DAYS[date.getUTCDay()]} ${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]} ${year}`
}
