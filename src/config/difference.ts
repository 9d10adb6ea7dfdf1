import { isDeepStrictEqual } from 'node:util'
import { factsOf } from './facts.ts'
import type { Snapshot } from './snapshot.ts'

/** How one configuration differs from another, fit to be shown: it holds no secrets. */
export interface Difference {
  readonly servers: readonly Change[]
  readonly workspaces: readonly Change[]
  readonly policies: readonly Change[]
  readonly settings: readonly Change[] // count only after a restart
}

/** What happened to one named thing. */
export interface Change {
  readonly name: string
  readonly kind: 'added' | 'removed' | 'changed'
  readonly details: readonly Detail[]
}

/** One thing that is different; values are there only where they can be no secrets. */
export interface Detail {
  readonly at: string
  readonly from?: string
  readonly to?: string
}

/** One thing a configuration says. `text` is what may be shown of it, `value` what it is compared by. */
export interface Fact {
  readonly at: string
  readonly value: unknown
  readonly text?: string
}

type Facts = readonly Fact[]

/** What would change if the second configuration took the place of the first. */
export const compare = (before: Snapshot, after: Snapshot): Difference => {
  const [old, now] = [factsOf(before), factsOf(after)]
  return {
    servers: changes(old.servers, now.servers),
    workspaces: changes(old.workspaces, now.workspaces),
    policies: changes(old.policies, now.policies),
    settings: changes(old.settings, now.settings),
  }
}

/** True if nothing is different. */
export const isNone = ({ servers, workspaces, policies, settings }: Difference): boolean =>
  servers.length + workspaces.length + policies.length + settings.length === 0

const changes = (before: ReadonlyMap<string, Facts>, after: ReadonlyMap<string, Facts>): Change[] => {
  const names = [...new Set([...before.keys(), ...after.keys()])]
  return names.flatMap(name => {
    const [old, now] = [before.get(name), after.get(name)]
    if (!old) return { name, kind: 'added' as const, details: (now ?? []).flatMap(shown) }
    if (!now) return { name, kind: 'removed' as const, details: [] }
    const found = details(old, now)
    return found.length > 0 ? { name, kind: 'changed' as const, details: found } : []
  })
}

const OUTLINE = ['kind', 'builtin', 'servers', 'names']

/** Of something new, what it is; the rest can be read in the file. */
const shown = ({ at, text }: Fact): Detail[] => (text !== undefined && OUTLINE.includes(at) ? [{ at, to: text }] : [])

const details = (before: Facts, after: Facts): Detail[] => {
  const [old, now] = [byPlace(before), byPlace(after)]
  return [...new Set([...old.keys(), ...now.keys()])].flatMap(at => {
    const [from, to] = [old.get(at), now.get(at)]
    if (isDeepStrictEqual(from?.value, to?.value)) return []
    return {
      at,
      ...(from?.text === undefined ? {} : { from: from.text }),
      ...(to?.text === undefined ? {} : { to: to.text }),
    }
  })
}

const byPlace = (facts: Facts): Map<string, Fact> => new Map(facts.map(fact => [fact.at, fact]))
