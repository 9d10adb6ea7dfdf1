import { expect, test } from 'vitest'
import { RecordingRate } from './recording-rate.ts'

const takeAll = (rate: RecordingRate, now: number): number => {
  let taken = 0
  while (taken < 100_000 && rate.take(() => now)) taken++
  return taken
}

test('a burst of 1,000, and 250 a second after it', () => {
  const rate = new RecordingRate(0)
  expect(takeAll(rate, 10_000)).toBe(1000 + 1000) // a second burst after 10 s, and no more
  expect(takeAll(rate, 10_000)).toBe(0)
  expect(takeAll(rate, 10_003)).toBe(0)
  expect(takeAll(rate, 10_004)).toBe(1)
  expect(takeAll(rate, 11_004)).toBe(250)
  expect(takeAll(rate, 99_000)).toBe(1000)
})

test('fewer than 250 a second never end it', () => {
  const rate = new RecordingRate(0)
  for (let at = 0; at < 100_000; at += 4) expect(rate.take(() => at)).toBe(true)
})

test('a part of what comes between is not lost', () => {
  const rate = new RecordingRate(0)
  takeAll(rate, 0)
  let taken = 0
  for (let at = 0; at < 3000; at++) if (rate.take(() => (at * 10) / 3)) taken++ // 300 a second for ten seconds
  expect(taken).toBeGreaterThanOrEqual(2499)
})

test('a clock that is behind ends no bound', () => {
  const rate = new RecordingRate(10_000)
  expect(takeAll(rate, 0)).toBe(1000)
})
