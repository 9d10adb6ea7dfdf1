import { describe, expect, it } from 'vitest'
import { isPast, spanText } from './memory-dates.ts'
import { validityBar, validityScale } from './validity.ts'

const NOW = Date.UTC(2026, 0, 1)
const from = (year: number, month = 0) => Date.UTC(year, month, 1)

describe('the axis', () => {
  it('shows every beginning and end, and now', () => {
    const scale = validityScale([{ validFrom: from(2022), validUntil: from(2024) }, { validFrom: from(2027) }], NOW)
    expect(scale.from).toBeLessThan(from(2022))
    expect(scale.to).toBeGreaterThan(from(2027))
    expect(scale.ticks.map(({ label }) => label)).toEqual(['2022', '2023', '2024', '2025', '2026'])
  })
  it.each([
    [from(2025, 11), '2025-12-11'],
    [from(2025, 8), '2025-12'],
    [from(1500), '1900'],
    [Date.UTC(50, 0), '2000'],
  ])('has round steps for facts since %d', (validFrom, label) => {
    const { ticks } = validityScale([{ validFrom }], NOW)
    expect(ticks.map(tick => tick.label)).toContain(label)
    expect(ticks.length).toBeLessThanOrEqual(7)
    for (const { left } of ticks) expect(left).toBeGreaterThanOrEqual(0)
  })
  it('ends where the last thing is known: a fact of today shows the days before it', () => {
    const scale = validityScale([{ validFrom: NOW - 3_600_000 }], NOW)
    expect(NOW - scale.from).toBeGreaterThan(6.9 * 86_400_000)
    expect(scale.to - NOW).toBeLessThan(86_400_000)
    for (const { label } of scale.ticks) expect(Date.parse(label)).toBeLessThanOrEqual(NOW)
  })
  it('exists without a date, and with impossible ones', () => {
    expect(validityScale([{}], NOW).ticks.length).toBeGreaterThan(0)
    const scale = validityScale([{ validFrom: 8.64e15, validUntil: -8.64e15 }], NOW)
    expect(scale.to - scale.from).toBeLessThan(30 * 86_400_000)
  })
})

describe('a bar', () => {
  const scale = validityScale([{ validFrom: from(2020) }], NOW)
  it('begins and ends with its fact', () => {
    const { left, width, opensLeft, opensRight } = validityBar(
      { validFrom: from(2021), validUntil: from(2023) },
      scale,
      NOW,
    )
    expect([opensLeft, opensRight]).toEqual([false, false])
    expect(width / (100 - 2 * left + left)).toBeGreaterThan(0.2)
  })
  it('is open where there is no date, and ends now', () => {
    const now = ((NOW - scale.from) / (scale.to - scale.from)) * 100
    expect(now).toBeLessThan(100)
    expect(validityBar({}, scale, NOW)).toEqual({ left: 0, width: now, opensLeft: true, opensRight: true })
    const later = validityScale([{ validFrom: from(2020) }, { validFrom: from(2027) }], NOW)
    const { left, width } = validityBar({ validFrom: from(2027) }, later, NOW)
    expect(left + width).toBe(100)
    expect(validityBar({ validUntil: from(2023) }, scale, NOW)).toMatchObject({
      left: 0,
      opensLeft: true,
      opensRight: false,
    })
  })
  it('of a moment can be seen', () => {
    expect(validityBar({ validFrom: from(2021), validUntil: from(2021) }, scale, NOW).width).toBeGreaterThan(0.5)
  })
})

it('says in words when a fact was true', () => {
  expect(spanText({ validFrom: from(2021), validUntil: from(2023) - 1 })).toBe('2021-01-01 – 2022-12-31')
  expect(spanText({ validFrom: from(2021) })).toBe('since 2021-01-01')
  expect(spanText({ validUntil: from(2021) })).toBe('until 2021-01-01')
  expect(spanText({})).toBe('no date')
  expect(spanText({ validFrom: 9e15 })).toBe('since an impossible date')
  expect([
    isPast({ validUntil: NOW }, NOW),
    isPast({ validUntil: NOW + 1 }, NOW),
    isPast({ retiredAt: 1 }, NOW),
  ]).toEqual([true, false, true])
})
