import type { Instant } from '../model.ts'
import type { MemoryStore } from '../store.ts'
import { Hopeless, Later } from '../worker.ts'
import { Refused } from './endpoint.ts'
import type { Limits } from './options.ts'

/** What a tenant has used of its day and its minute, as it is kept in its store. */
export interface Ledger {
  readonly day: number
  readonly tokens: number
  readonly minute: number
  readonly calls: number
}

/** What was set aside for a call that is under way. */
interface Reserved {
  readonly day: number
  readonly tokens: number
}

type Decision =
  | { readonly kind: 'granted'; readonly ledger: Ledger }
  | { readonly kind: 'wait'; readonly until: Instant; readonly why: string }
  | { readonly kind: 'never'; readonly why: string }

/** Makes one call at the cost of a tenant, or throws a Later when its budget is used up. */
export type Spend = <Result extends { readonly tokens: number }>(
  store: MemoryStore,
  estimate: number,
  call: () => Promise<Result>,
) => Promise<Result>

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE

/** About how many tokens a text is, for any script: a token is some four bytes. */
export const tokensIn = (text: string): number => Math.ceil(Buffer.byteLength(text) / 4)

const readLedger = (kept: unknown, now: Instant): Ledger => {
  const [day, minute] = [Math.floor(now / DAY), Math.floor(now / MINUTE)]
  const known = (typeof kept === 'object' && kept !== null ? kept : {}) as Partial<Ledger>
  const count = (value: unknown): number => (typeof value === 'number' && value > 0 ? value : 0)
  return {
    day,
    minute,
    tokens: known.day === day ? count(known.tokens) : 0,
    calls: known.minute === minute ? count(known.calls) : 0,
  }
}

/** Whether one more call may be made now. */
export const decide = (kept: unknown, limits: Limits, tokens: number, now: Instant): Decision => {
  const ledger = readLedger(kept, now)
  const { tokensPerDay = Number.POSITIVE_INFINITY, callsPerMinute = Number.POSITIVE_INFINITY } = limits
  if (tokens > tokensPerDay)
    return { kind: 'never', why: `This needs about ${tokens} tokens, more than the ${tokensPerDay} of a whole day.` }
  if (ledger.tokens + tokens > tokensPerDay) {
    const why = `The budget of ${tokensPerDay} tokens is used up for today.`
    return { kind: 'wait', until: (ledger.day + 1) * DAY, why }
  }
  if (ledger.calls >= callsPerMinute) {
    const why = `The budget of ${callsPerMinute} calls is used up for this minute.`
    return { kind: 'wait', until: (ledger.minute + 1) * MINUTE, why }
  }
  return { kind: 'granted', ledger: { ...ledger, tokens: ledger.tokens + tokens, calls: ledger.calls + 1 } }
}

/** What tenants may use. It rests in their stores, so that neither a restart nor another node begins anew. */
export const createBudget = (name: string, limits: Limits = {}, now: () => Instant = Date.now): Spend => {
  const key = `budget ${name}`
  const reserve = async (store: MemoryStore, tokens: number): Promise<Reserved> => {
    const at = now()
    let decision = decide(undefined, limits, tokens, at)
    await store.amend(key, kept => {
      decision = decide(kept, limits, tokens, at)
      return decision.kind === 'granted' ? decision.ledger : kept
    })
    if (decision.kind === 'wait') throw new Later(decision.why, decision.until)
    if (decision.kind === 'never') throw new Hopeless(`${decision.why} Raise the budget.`)
    return { day: Math.floor(at / DAY), tokens }
  }
  const settle = async (store: MemoryStore, { day, tokens }: Reserved, used: number): Promise<void> => {
    await store.amend(key, kept => {
      const ledger = readLedger(kept, now())
      return ledger.day === day ? { ...ledger, tokens: Math.max(0, ledger.tokens + used - tokens) } : kept
    })
  }
  const spend: Spend = async (store, estimate, call) => {
    const reserved = await reserve(store, estimate)
    const result = await call().catch(async (error: unknown) => {
      // What did not get through has cost nothing; what got no answer may have.
      if (error instanceof Later || error instanceof Refused) await settle(store, reserved, 0)
      throw error
    })
    await settle(store, reserved, result.tokens)
    return result
  }
  const isLimited = limits.tokensPerDay !== undefined || limits.callsPerMinute !== undefined
  return isLimited ? spend : (_store, _estimate, call) => call()
}
