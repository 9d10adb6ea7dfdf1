import { expect, test } from 'vitest'
import { CACHE_TIMES, freshUntil, promisedUntil, remainingTtl } from './freshness.ts'

const hintsOf = (ttlMs: number | undefined) => ({ fetchedAt: 1000, ttlMs, isPublic: false })

test.each([
  ['a server that says how long', 60_000, false, 61_000],
  ['the same, when changes are announced', 60_000, true, 61_000],
  ['a server that says it may change at once', 0, false, 1000 + CACHE_TIMES.noTtlMs],
  ['the same, when changes are announced', 0, true, 1000 + CACHE_TIMES.watchedMs],
  ['a server that has no word for it', undefined, false, 1000 + CACHE_TIMES.unwatchedMs],
  ['the same, when changes are announced', undefined, true, 1000 + CACHE_TIMES.watchedMs],
])('a list of %s (%s ms, watched: %s) is fresh until %s', (_, ttlMs, isWatched, until) => {
  expect(freshUntil(hintsOf(ttlMs), isWatched, CACHE_TIMES)).toBe(until)
})

test('clients may cache no longer than the server promised', () => {
  expect(promisedUntil(hintsOf(60_000))).toBe(61_000)
  expect(promisedUntil(hintsOf(0))).toBe(1000)
  expect(promisedUntil(hintsOf(undefined))).toBe(1000)
})

test.each([
  [61_000, false, 1000, 60_000],
  [61_000, false, 31_000, 30_000],
  [61_000, true, 1000, 5000],
  [61_000, false, 99_000, 0],
])('until %s, incomplete: %s, at %s there are %s ms left', (until, isIncomplete, now, left) => {
  expect(remainingTtl(until, isIncomplete, now)).toBe(left)
})
