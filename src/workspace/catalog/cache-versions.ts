import type { Caller } from '../../protocol/exchange.ts'
import { type CacheScope, cacheOwnerOf } from './cache-scopes.ts'

const MOST = 5000

/** Numbers that change for those whom a change concerns, and for nobody else. */
export interface CacheVersions {
  bump(concern: CacheScope): void
  /** Another number than before if anything has changed that concerns this caller. */
  of(caller: Caller): number
}

export const createCacheVersions = (): CacheVersions => {
  const latest = new Map<string, number>()
  let forAll = 0
  let last = 0
  return {
    bump: concern => {
      last++
      if (latest.size >= MOST) latest.clear()
      if (concern.kind === 'everybody' || latest.size === 0) forAll = last
      if (concern.kind === 'owner') latest.set(`o${concern.owner}`, last)
      if (concern.kind === 'session') latest.set(`s${concern.session}`, last)
    },
    of: caller => {
      const owner = latest.get(`o${cacheOwnerOf(caller)}`) ?? 0
      const session = caller.session === undefined ? 0 : (latest.get(`s${caller.session}`) ?? 0)
      return Math.max(forAll, owner, session)
    },
  }
}
