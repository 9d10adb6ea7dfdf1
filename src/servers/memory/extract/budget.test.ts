import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryFolder, temporaryStore } from '../../../../test/support/memory/sqlite-store.ts'
import { openSqliteStore } from '../open-stores.ts'
import { PermanentFailure, RetryLater } from '../worker.ts'
import { createModelBudget, decide, type Ledger, tokensIn } from './budget.ts'
import { RejectedRequest } from './endpoint.ts'

const NOW = Date.UTC(2026, 4, 5, 12, 0, 30)
const MIDNIGHT = Date.UTC(2026, 4, 6)

const spent = (tokens: number, at = NOW): Ledger => ({
  day: Math.floor(at / 86_400_000),
  tokens,
  minute: Math.floor(at / 60_000),
  calls: 3,
})

test.each([
  ['within the day', spent(500), { dailyTokens: 1_000 }, 'granted'],
  ['beyond the day', spent(901), { dailyTokens: 1_000 }, 'wait'],
  ['of another day', spent(901, NOW - 86_400_000), { dailyTokens: 1_000 }, 'granted'],
  ['larger than any day', undefined, { dailyTokens: 99 }, 'never'],
  ['within the minute', spent(0), { callsPerMinute: 4 }, 'granted'],
  ['beyond the minute', spent(0), { callsPerMinute: 3 }, 'wait'],
  ['of another minute', spent(0, NOW - 60_000), { callsPerMinute: 3 }, 'granted'],
  ['without a limit', spent(1e9), {}, 'granted'],
  ['over a ledger that is nonsense', { day: 'x', tokens: -4 }, { dailyTokens: 100 }, 'granted'],
] as const)('a call %s', (_, ledger, limits, kind) => {
  expect(decide(ledger, limits, 100, NOW).kind).toBe(kind)
})

const using = (tokens: number) => async () => ({ tokens })

test('a spent budget stays spent after a restart, until the next day', async () => {
  const path = join(await temporaryFolder(), 'memory.db')
  const limits = { dailyTokens: 1_000 }
  const first = await openSqliteStore({ path })
  await createModelBudget('x', limits, () => NOW)(first, 100, using(950))
  await first.close()
  const store = await openSqliteStore({ path })
  const late = await createModelBudget('x', limits, () => NOW)(store, 100, using(1)).catch((error: unknown) => error)
  expect(late).toBeInstanceOf(RetryLater)
  expect(late).toMatchObject({ at: MIDNIGHT, message: expect.stringContaining('1000 tokens') })
  await createModelBudget('other', limits, () => NOW)(store, 100, using(1))
  await createModelBudget('x', limits, () => MIDNIGHT)(store, 100, using(1))
  await store.close()
})

test('concurrent calls do not spend the same tokens', async () => {
  const store = await temporaryStore()
  const spend = createModelBudget('x', { callsPerMinute: 3 }, () => NOW)
  const calls = await Promise.allSettled(Array.from({ length: 10 }, () => spend(store, 1, using(1))))
  expect(calls.filter(({ status }) => status === 'fulfilled')).toHaveLength(3)
})

test('a rejected call costs no tokens, a call without an answer costs the estimate', async () => {
  const store = await temporaryStore()
  const spend = createModelBudget('x', { dailyTokens: 100 }, () => NOW)
  for (const error of [new RetryLater('down', 1), new RejectedRequest('too long')])
    await expect(spend(store, 90, () => Promise.reject(error))).rejects.toBe(error)
  await expect(spend(store, 90, () => Promise.reject(new Error('slow')))).rejects.toThrow('slow')
  await expect(spend(store, 90, using(1))).rejects.toBeInstanceOf(RetryLater)
  await expect(spend(store, 101, using(1))).rejects.toBeInstanceOf(PermanentFailure)
})

test('tokens are estimated for all scripts', () => {
  expect(tokensIn('four letters')).toBe(3)
  expect(tokensIn('東京都')).toBe(3)
})
