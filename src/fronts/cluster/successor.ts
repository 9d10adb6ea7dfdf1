import type { Membership } from '../../stores/state/state-store.ts'

/**
 * Another live replica, for what this one no longer serves because it stops; undefined if there is none. Requests of one
 * session get the same one, because only one can take it; all others are spread by chance.
 */
export const findSuccessor = (members: Pick<Membership, 'self' | 'all'>, session?: string): string | undefined => {
  const others = members
    .all()
    .filter(({ replica, address }) => replica !== members.self && address !== '')
    .map(({ replica }) => replica)
    .sort()
  const at = session === undefined ? Math.floor(Math.random() * others.length) : hashOf(session) % others.length
  return others[at]
}

const hashOf = (text: string): number => {
  let hash = 0
  for (let i = 0; i < text.length; i++) hash = (Math.imul(hash, 31) + text.charCodeAt(i)) >>> 0
  return hash
}
