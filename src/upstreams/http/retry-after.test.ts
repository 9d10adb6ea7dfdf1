import { expect, it } from 'vitest'
import { retryAfterMs } from './retry-after.ts'

const now = Date.parse('2026-11-01T10:00:00Z')

it.each([
  ['2', 2000],
  [' 0.5 ', 500],
  ['Sun, 01 Nov 2026 10:00:03 GMT', 3000],
  ['Sun, 01 Nov 2026 09:00:00 GMT', 0],
  ['soon', undefined],
  [undefined, undefined],
])('reads Retry-After: %s', (header, expected) => {
  expect(retryAfterMs(header, now)).toBe(expected)
})
