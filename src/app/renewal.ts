import { isDeepStrictEqual } from 'node:util'
import type { Snapshot } from '../config/snapshot.ts'
import type { Caller } from '../protocol/exchange.ts'
import { absentPolicy, type Policy } from '../protocol/policy.ts'

type Policies = Snapshot['policies']

/** Equal policies stay the same objects: what is kept for them stays good. */
export const keepEqualPolicies = (before: Policies, after: Policies): Policies =>
  after && new Map([...after].map(([name, policy]) => [name, sameAs(before?.get(name), policy)]))

const sameAs = (before: Policy | undefined, after: Policy): Policy =>
  before && isDeepStrictEqual(before, after) ? before : after

/** Who a caller is under the next configuration: the policies of tokens may have changed. */
export const createCallerRenewal = (before: Snapshot, after: Snapshot): ((caller: Caller) => Caller) => {
  const changed = new Map<Policy, Policy>()
  for (const name of new Set([...(before.policies?.keys() ?? []), ...(after.policies?.keys() ?? [])])) {
    const [old, next] = [before, after].map(({ policies }) => policies?.get(name) ?? absentPolicy(name))
    if (old && next && old !== next) changed.set(old, next)
  }
  return caller => {
    const policy = caller.policy && changed.get(caller.policy)
    return policy ? { ...caller, policy } : caller
  }
}
