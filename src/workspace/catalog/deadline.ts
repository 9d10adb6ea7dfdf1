import type { Caller } from '../../protocol/exchange.ts'
import { BoundedCache } from '../../std/bounded-cache.ts'
import type { Member } from '../member.ts'
import { cacheOwnerOf } from './cache-scopes.ts'

const MOST = 1000
const MOST_EACH = 250 // of one principal
const FORGET_MS = 60_000

/** Remembers whom somebody has waited for in vain lately, so that nobody of the same kind waits again. */
export const createSlowServers = () => {
  const slow = new BoundedCache<true>(MOST, FORGET_MS, { mostPerGroup: MOST_EACH })
  const keyOf = ({ server }: Member, caller: Caller): string => `${server}\n${cacheOwnerOf(caller)}`
  return {
    isWorthWaiting: (member: Member, caller: Caller): boolean => !slow.get(keyOf(member, caller)),
    waitedInVain: (member: Member, caller: Caller): void =>
      slow.set(keyOf(member, caller), true, caller.principal ?? ''),
    answered: (member: Member, caller: Caller): void => slow.delete(keyOf(member, caller)),
  }
}
