import type { SessionPooling } from '../../config/snapshot.ts'
import type { Caller } from '../../protocol/exchange.ts'
import { fingerprint } from '../../protocol/fingerprint.ts'
import { shortKey } from '../../protocol/short-key.ts'

const LONGEST_AFFINITY = 64 // characters; a longer one is replaced by its hash

/**
 * The owner a session counts for: its principal. Anonymous callers share one owner, and so do all callers of a
 * stateless pool.
 */
export const ownerOf = ({ principal }: Caller, manner: SessionPooling = 'sticky'): string =>
  principal === undefined || manner === 'stateless' ? '' : `=${principal}`

/** Equal for callers who may share a session; undefined for one who shares not even with himself. */
export const poolKey = (caller: Caller, manner: SessionPooling = 'sticky'): string | undefined => {
  const { workspace, principal, session, capabilities, affinity = '', lane = 0 } = caller
  if (session !== undefined) return JSON.stringify(['session', workspace, session])
  // Whoever nobody knows could be anybody, so he shares with nobody.
  if (principal === undefined || manner === 'isolated') return undefined
  const owner = manner === 'stateless' ? [] : [principal, shortKey(affinity, LONGEST_AFFINITY)]
  return JSON.stringify(['shared', workspace, fingerprint(capabilities), lane, ...owner])
}
