import { principalKey } from '../../protocol/callers.ts'
import { capabilitiesFingerprint } from '../../protocol/capabilities.ts'
import type { Caller } from '../../protocol/exchange.ts'
import { isModern } from '../../protocol/revisions.ts'

/** Equal for callers that share public lists: a server of both eras may list differently in each. */
export const publicKeyOf = ({ revision, capabilities }: Pick<Caller, 'revision' | 'capabilities'>): string =>
  `${isModern(revision) ? 'modern' : 'legacy'} ${capabilitiesFingerprint(capabilities)}`

/** Equal for callers that share all lists: those of one principal with equal capabilities. All anonymous callers are one. */
export const cacheOwnerOf = (caller: Caller): string => `${principalKey(caller.principal)}\n${publicKeyOf(caller)}`

/** The principal in a cache owner. No fingerprint contains a line break. */
export const principalOf = (owner: string): string => owner.slice(0, owner.lastIndexOf('\n'))

/** The public key in a cache owner. */
export const publicKeyIn = (owner: string): string => owner.slice(owner.lastIndexOf('\n') + 1)

/** The callers that a cached value is for. */
export type CacheScope =
  | { readonly kind: 'session'; readonly session: string }
  | { readonly kind: 'owner'; readonly owner: string }
  | { readonly kind: 'all' }

const MOST = 5000

/** Counts a version number for each caller; it grows whenever a value in one of the caller's scopes changes. */
export const createCacheVersions = () => {
  const latest = new Map<string, number>()
  let forAll = 0
  let last = 0
  return {
    bump: (scope: CacheScope): void => {
      last++
      if (latest.size >= MOST) latest.clear()
      if (scope.kind === 'all' || latest.size === 0) forAll = last
      if (scope.kind === 'owner') latest.set(`o${scope.owner}`, last)
      if (scope.kind === 'session') latest.set(`s${scope.session}`, last)
    },
    of: (caller: Caller): number => {
      const owner = latest.get(`o${cacheOwnerOf(caller)}`) ?? 0
      const session = caller.session === undefined ? 0 : (latest.get(`s${caller.session}`) ?? 0)
      return Math.max(forAll, owner, session)
    },
  }
}
