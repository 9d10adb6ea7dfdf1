import { expect, test } from 'vitest'
import { CallHistory } from './call-history.ts'

const NOW = 1_800_000_000_000
const SECOND = 1000

test('calls are counted in buckets of ten seconds, with their errors and mean duration', () => {
  const history = new CallHistory()
  expect(history.read(NOW)).toBeUndefined()
  history.add(false, 10, NOW)
  history.add(true, 20, NOW + 9 * SECOND)
  history.add(false, 1.234567, NOW + 20 * SECOND)
  const rows = history.read(NOW + 25 * SECOND)
  expect(rows?.calls).toHaveLength(60)
  expect(rows?.calls.slice(-4)).toEqual([0, 2, 0, 1])
  expect(rows?.errors.slice(-4)).toEqual([0, 1, 0, 0])
  expect(rows?.ms.slice(-4)).toEqual([null, 15, null, 1.23])
})

test('what is older than ten minutes is forgotten, also after any pause', () => {
  const history = new CallHistory()
  history.add(false, 1, NOW)
  expect(history.read(NOW + 590 * SECOND)?.calls[0]).toBe(1)
  expect(history.read(NOW + 600 * SECOND)).toBeUndefined()
  history.add(false, 1, NOW)
  history.add(false, 2, NOW + 86_400 * SECOND)
  expect(history.read(NOW + 86_400 * SECOND)?.calls.reduce((sum, count) => sum + count)).toBe(1)
})

test('a clock that is set back loses the counts and nothing else', () => {
  const history = new CallHistory()
  history.add(false, 1, NOW)
  history.add(false, 1, NOW - 3600 * SECOND)
  expect(history.read(NOW - 3600 * SECOND)?.calls.at(-1)).toBe(1)
})

test('an update costs less than a microsecond', () => {
  const history = new CallHistory()
  const rounds = Array.from({ length: 10 }, () => {
    const started = performance.now()
    for (let at = 0; at < 20_000; at++) history.add(at % 10 === 0, 1, NOW + at)
    return ((performance.now() - started) / 20_000) * 1000
  })
  expect(Math.min(...rounds)).toBeLessThan(1) // the others may have been interrupted
})
