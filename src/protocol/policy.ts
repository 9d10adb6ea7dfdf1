/** What may be seen and used; whatever is denied, or not allowed, is as if it did not exist. */
export interface Policy {
  readonly allow: Patterns // an absent kind: everything of that kind
  readonly deny: Patterns
  readonly readOnly: boolean // only tools that say they change nothing
}

/** Globs by kind, `*` for any characters: servers by name; tools and prompts as `<server>/<name>`; resources by URI. */
export interface Patterns {
  readonly servers?: readonly string[] | undefined
  readonly tools?: readonly string[] | undefined
  readonly prompts?: readonly string[] | undefined
  readonly resources?: readonly string[] | undefined
}

/** Shows all there is. */
export const EVERYTHING: Policy = { allow: {}, deny: {}, readOnly: false }

const absent = new Map<string, Policy>()

/** Shows nothing at all: for tokens whose policy is not there. One for each name, so that it can be found again. */
export const absentPolicy = (name: string): Policy => {
  const nothing = absent.get(name) ?? { allow: { servers: [] }, deny: { servers: ['*'] }, readOnly: true }
  absent.set(name, nothing)
  return nothing
}
