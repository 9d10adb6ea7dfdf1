import type { z } from 'zod'
import type { Patterns, Policy } from '../protocol/policy.ts'
import { EVERYTHING } from '../protocol/policy.ts'
import type { ConfigPath } from './json-text.ts'
import { nearest, quoteAll, schemaProblems } from './problems.ts'
import type { Findings } from './remote.ts'
import { policySchema } from './workspace-schema.ts'

type Written = z.output<typeof policySchema>

/** Reads the top-level `policies`; those with problems are left out. */
export const readPolicies = (entries: Readonly<Record<string, unknown>>, found: Findings): Map<string, Policy> => {
  const policies = new Map<string, Policy>()
  for (const [name, raw] of Object.entries(entries)) {
    const parsed = policySchema.safeParse(raw)
    if (parsed.success) policies.set(name, policyOf(parsed.data))
    else found.problems.push(...schemaProblems(parsed.error, ['policies', name], policySchema))
  }
  return policies
}

/** The policy of a workspace: one of the named ones, or one written in its place. */
export const readPolicy = (
  given: string | Written,
  path: ConfigPath,
  policies: ReadonlyMap<string, Policy>,
  found: Findings,
): Policy => {
  if (typeof given !== 'string') return policyOf(given)
  const named = policies.get(given)
  if (named) return named
  const meant = nearest(given, policies.keys())
  const known = policies.size > 0 ? `expected one of ${quoteAll(policies.keys())}` : 'there are no policies'
  const hint = meant ? `did you mean ${JSON.stringify(meant)}?` : known
  found.problems.push({ path, message: `no policy ${JSON.stringify(given)}; ${hint}` })
  return EVERYTHING
}

const policyOf = ({ allow, deny, readOnly }: Written): Policy => ({
  allow: patternsOf(allow),
  deny: patternsOf(deny),
  readOnly,
})

const patternsOf = (written: Written['allow']): Patterns =>
  Object.fromEntries(Object.entries(written ?? {}).filter(([, globs]) => globs !== undefined))
