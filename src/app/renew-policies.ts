import { isDeepStrictEqual } from 'node:util'
import type { Snapshot } from '../config/snapshot.ts'
import type { Caller } from '../protocol/exchange.ts'
import { absentPolicy, type Policy } from '../protocol/policy.ts'

type Policies = Snapshot['policies']

/** The new policies, with the old objects where they are equal: caches are keyed by these objects. */
export const keepEqualPolicies = (before: Policies, after: Policies): Policies =>
  after &&
  new Map(
    [...after].map(([name, policy]) => {
      const old = before?.get(name)
      return [name, old && isDeepStrictEqual(old, policy) ? old : policy]
    }),
  )

/** Makes the function that gives a caller the new policy of its token. */
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
