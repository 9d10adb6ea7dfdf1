import { expect, test } from 'vitest'
import { callerOf } from '../../test/support/workspace.ts'
import { DEFAULT_LIMITS, DEFAULT_LISTEN, type Snapshot } from '../config/snapshot.ts'
import { absentPolicy, EVERYTHING, type Policy } from '../protocol/policy.ts'
import { createPolicy } from '../workspace/policy/policy.ts'
import { createCallerRenewal, keepEqualPolicies } from './renew-policies.ts'

const snapshot = (policies: Record<string, Policy>): Snapshot => ({
  listen: DEFAULT_LISTEN,
  limits: DEFAULT_LIMITS,
  servers: new Map(),
  workspaces: new Map(),
  policies: new Map(Object.entries(policies)),
  warnings: [],
})
const policy = (...tools: string[]): Policy => ({ ...EVERYTHING, allow: { tools } })

test('a caller gets the new policy of its token, and other callers stay the same', () => {
  const [old, now, other] = [policy('a/*'), policy('b/*'), policy('c/*')]
  const renew = createCallerRenewal(snapshot({ p: old, q: other }), snapshot({ p: now, q: other }))
  expect(renew(callerOf({ policy: old })).policy).toBe(now)
  for (const caller of [callerOf(), callerOf({ policy: other })]) expect(renew(caller)).toBe(caller)
})

test('a caller whose policy was removed sees nothing until it is back', () => {
  const [old, now] = [policy('a/*'), policy('b/*')]
  const bare = createCallerRenewal(snapshot({ p: old }), snapshot({ q: old }))(callerOf({ policy: old }))
  expect(bare.policy).toBe(absentPolicy('p'))
  expect(createPolicy(absentPolicy('p')).allowsServer('a')).toBe(false)
  expect(createCallerRenewal(snapshot({}), snapshot({ p: now, q: old }))(bare).policy).toBe(now)
})

test('equal policies stay the same objects', () => {
  const old = policy('a/*')
  expect(keepEqualPolicies(new Map([['p', old]]), new Map([['p', policy('a/*')]]))?.get('p')).toBe(old)
})
