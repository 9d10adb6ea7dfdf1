import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createTestLog, type TestLog } from '../../test/support/log.ts'
import { FailedLogins } from './failed-logins.ts'

let log: TestLog
let failures: FailedLogins
beforeEach(() => {
  vi.useFakeTimers()
  log = createTestLog()
  failures = new FailedLogins(log.log)
})
afterEach(() => {
  failures.close()
  vi.useRealTimers()
})

const fail = (address: string, times = 1): (number | undefined)[] =>
  Array.from({ length: times }, () =>
    failures.record(address, { reason: 'wrong', workspace: 'default', token: undefined }),
  )
const said = () => log.lines.map(({ fields }) => [fields.address, fields.count])

it('an address must wait after thirty failures in a minute, until the minute is over', () => {
  expect(fail('10.0.0.1', 30)).toEqual(new Array(30).fill(undefined))
  vi.advanceTimersByTime(20_000)
  expect(fail('10.0.0.1')).toEqual([40_000])
  expect(fail('10.0.0.2')).toEqual([undefined])
  vi.advanceTimersByTime(40_000)
  expect(fail('10.0.0.1')).toEqual([undefined])
})

it('the first failure is logged at once, further ones as one line a minute with their count', () => {
  fail('10.0.0.1', 500)
  fail('10.0.0.2')
  expect(said()).toEqual([
    ['10.0.0.1', undefined],
    ['10.0.0.2', undefined],
  ])
  vi.advanceTimersByTime(60_000)
  fail('10.0.0.1', 70)
  vi.advanceTimersByTime(60_000)
  expect(said().slice(2)).toEqual([
    ['10.0.0.1', 499],
    ['10.0.0.1', 70],
  ])
  vi.advanceTimersByTime(600_000)
  expect([log.lines.length, vi.getTimerCount()]).toEqual([4, 0])
  fail('10.0.0.1')
  expect(log.lines).toHaveLength(5)
})

it('addresses that keep failing share one timer', () => {
  for (let second = 0; second < 600; second++) {
    fail('10.0.0.1', 2)
    if (second % 7 === 0) fail(`10.0.1.${second % 5}`, 2)
    vi.advanceTimersByTime(1000)
    expect(vi.getTimerCount()).toBe(1)
  }
})

it('failures that were not logged yet are logged on close', () => {
  fail('10.0.0.1', 3)
  failures.close()
  expect(said()).toEqual([
    ['10.0.0.1', undefined],
    ['10.0.0.1', 2],
  ])
})

it('the table and the log stay bounded for any number of addresses', () => {
  for (let i = 0; i < 100_000; i++) fail(`10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`)
  expect(log.lines.length).toBe(1001)
  expect(fail('11.0.0.1')[0]).toBeGreaterThan(0)
  vi.advanceTimersByTime(60_000)
  expect(said().at(-1)).toEqual(['others', 99_000])
})
