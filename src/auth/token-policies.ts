import { absentPolicy, type Policy } from '../protocol/policy.ts'
import type { Log } from '../telemetry/log.ts'

/** The policy of that name in the current configuration. */
export type PolicyOf = (name: string) => Policy | undefined

const MOST_WARNED = 1000

/**
 * Finds the policies of tokens. A policy that was removed from the configuration allows nothing, so that removing it never
 * grants more; that is logged once for each token, or caller.
 */
export const createTokenPolicies = (policyOf: PolicyOf, log: Log) => {
  const warned = new Set<string>()
  return (of: string, name: string): Policy => {
    const policy = policyOf(name)
    if (policy) {
      warned.delete(of)
      return policy
    }
    if (!warned.has(of) && warned.size < MOST_WARNED) {
      const fields = { security: true, token: of, policy: name }
      log.warn(fields, 'the policy of a token is not in the configuration: nothing is allowed')
      warned.add(of)
    }
    return absentPolicy(name)
  }
}
