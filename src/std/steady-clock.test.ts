import { expect, test } from 'vitest'
import { SteadyClock } from './steady-clock.ts'

test('a clock that is set by more than a minute has jumped, once', () => {
  let elapsed = 0
  const clock = new SteadyClock(1_000_000, () => elapsed)
  const after = (ms: number, now: number): boolean => {
    elapsed += ms
    return clock.hasJumped(now)
  }
  expect(after(1000, 1_001_000)).toBe(false)
  expect(after(1000, 1_062_001 + 1000)).toBe(true) // forward
  expect(after(1000, 1_064_001)).toBe(false)
  expect(after(1000, 900_000)).toBe(true) // back
  expect(after(600_000, 1_500_000)).toBe(false) // a late tick is no jump
})
