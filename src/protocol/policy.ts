/** What callers may see and use. Everything else does not exist for them. */
export interface Policy {
  readonly allow: Patterns // an absent kind: everything of that kind
  readonly deny: Patterns
  readonly readOnly: boolean // only tools that say they change nothing
  readonly also?: Policy | undefined // a second policy that must allow it, too
}

/** Globs by kind, `*` for any characters: servers by name; tools and prompts as `<server>/<name>`; resources by URI. */
export interface Patterns {
  readonly servers?: readonly string[] | undefined
  readonly tools?: readonly string[] | undefined
  readonly prompts?: readonly string[] | undefined
  readonly resources?: readonly string[] | undefined
}

/** Allows everything. */
export const EVERYTHING: Policy = { allow: {}, deny: {}, readOnly: false }

const absent = new Map<string, Policy>()

/**
 * Allows nothing: for tokens whose policy is missing. One object per name: once the configuration has the policy, the
 * callers that hold this object get it, and no others do.
 */
export const absentPolicy = (name: string): Policy => {
  const nothing = absent.get(name) ?? { allow: { servers: [] }, deny: { servers: ['*'] }, readOnly: true }
  absent.set(name, nothing)
  return nothing
}
