import type { Instant } from '../model.ts'
import type { MemoryStore } from '../store.ts'
import { PermanentFailure, RetryLater } from '../worker.ts'
import { RejectedRequest } from './endpoint.ts'

/** What one tenant may spend; no limit where a number is absent. */
export interface BudgetLimits {
  readonly dailyTokens?: number | undefined // per day of UTC
  readonly callsPerMinute?: number | undefined
}

/** What a tenant has spent in this day and minute, as stored. */
export interface Ledger {
  readonly day: number
  readonly tokens: number
  readonly minute: number
  readonly calls: number
}

/** The estimate that is booked while a call runs. */
interface Reservation {
  readonly day: number
  readonly tokens: number
}

type Decision =
  | { readonly kind: 'granted'; readonly ledger: Ledger }
  | { readonly kind: 'wait'; readonly until: Instant; readonly why: string }
  | { readonly kind: 'never'; readonly why: string }

/** Makes one call on the budget of a tenant, or throws RetryLater when the budget is used up. */
export type Spend = <Result extends { readonly tokens: number }>(
  store: MemoryStore,
  estimate: number,
  call: () => Promise<Result>,
) => Promise<Result>

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE

/** Estimates the tokens of a text in any script: about four bytes each. */
export const tokensIn = (text: string): number => Math.ceil(Buffer.byteLength(text) / 4)

const readLedger = (stored: unknown, now: Instant): Ledger => {
  const [day, minute] = [Math.floor(now / DAY), Math.floor(now / MINUTE)]
  const known = (typeof stored === 'object' && stored !== null ? stored : {}) as Partial<Ledger>
  const count = (value: unknown): number => (typeof value === 'number' && value > 0 ? value : 0)
  return {
    day,
    minute,
    tokens: known.day === day ? count(known.tokens) : 0,
    calls: known.minute === minute ? count(known.calls) : 0,
  }
}

/** Whether one more call is allowed now. */
export const decide = (stored: unknown, limits: BudgetLimits, tokens: number, now: Instant): Decision => {
  const ledger = readLedger(stored, now)
  const { dailyTokens = Number.POSITIVE_INFINITY, callsPerMinute = Number.POSITIVE_INFINITY } = limits
  if (tokens > dailyTokens)
    return { kind: 'never', why: `This needs about ${tokens} tokens, more than the ${dailyTokens} of a whole day.` }
  if (ledger.tokens + tokens > dailyTokens) {
    const why = `The budget of ${dailyTokens} tokens is used up for today.`
    return { kind: 'wait', until: (ledger.day + 1) * DAY, why }
  }
  if (ledger.calls >= callsPerMinute) {
    const why = `The budget of ${callsPerMinute} calls is used up for this minute.`
    return { kind: 'wait', until: (ledger.minute + 1) * MINUTE, why }
  }
  return { kind: 'granted', ledger: { ...ledger, tokens: ledger.tokens + tokens, calls: ledger.calls + 1 } }
}

/** The budget of every tenant for one kind of model. It is stored, so that restarts and several gateways share it. */
export const createModelBudget = (name: string, limits: BudgetLimits = {}, now: () => Instant = Date.now): Spend => {
  const key = `budget ${name}`
  const reserve = async (store: MemoryStore, tokens: number): Promise<Reservation> => {
    const at = now()
    let decision = decide(undefined, limits, tokens, at)
    await store.amend(key, stored => {
      decision = decide(stored, limits, tokens, at)
      return decision.kind === 'granted' ? decision.ledger : stored
    })
    if (decision.kind === 'wait') throw new RetryLater(decision.why, decision.until)
    if (decision.kind === 'never') throw new PermanentFailure(`${decision.why} Raise the budget.`)
    return { day: Math.floor(at / DAY), tokens }
  }
  const settle = async (store: MemoryStore, { day, tokens }: Reservation, used: number): Promise<void> => {
    await store.amend(key, stored => {
      const ledger = readLedger(stored, now())
      return ledger.day === day ? { ...ledger, tokens: Math.max(0, ledger.tokens + used - tokens) } : stored
    })
  }
  const spend: Spend = async (store, estimate, call) => {
    const reservation = await reserve(store, estimate)
    const result = await call().catch(async (error: unknown) => {
      // A rejected call is free; a call without an answer may not be.
      if (error instanceof RetryLater || error instanceof RejectedRequest) await settle(store, reservation, 0)
      throw error
    })
    await settle(store, reservation, result.tokens)
    return result
  }
  const isLimited = limits.dailyTokens !== undefined || limits.callsPerMinute !== undefined
  return isLimited ? spend : (_store, _estimate, call) => call()
}
