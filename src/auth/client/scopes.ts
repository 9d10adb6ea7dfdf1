import type { BearerChallenge } from './challenge.ts'

/** What decides about the scopes of a login. */
interface ScopeSources {
  readonly configured?: readonly string[] | undefined
  readonly challenge?: BearerChallenge | undefined
  readonly supported?: readonly string[] | undefined // by the server
  readonly requestedBefore?: readonly string[] | undefined
  readonly offered?: readonly string[] | undefined // by the authorization server
}

const OFFLINE = 'offline_access' // a refresh token (OpenID Connect)
const MOST_CHARACTERS = 8000 // of a list that another party writes: it becomes part of a URL, and of a record

/** The texts of a list until they are too long for a record; one that is too long itself is left out. */
export const boundTexts = (list: readonly string[]): readonly string[] => {
  let left = MOST_CHARACTERS
  return list.filter(each => {
    if (each.length >= left) return false
    left -= each.length + 1
    return true
  })
}

const union = (...lists: (readonly string[] | undefined)[]): readonly string[] => [
  ...new Set(lists.flatMap(list => list ?? [])),
]

const isStepUp = (challenge: BearerChallenge | undefined): boolean => challenge?.error === 'insufficient_scope'

/**
 * The scopes to request: those of the configuration, else of the challenge, else of the server's metadata, and those that
 * were requested before. A step-up adds the scopes of its challenge to the configured ones.
 */
export const chooseScopes = (sources: ScopeSources): readonly string[] => {
  const { configured, challenge, supported, requestedBefore, offered } = sources
  const asked = challenge && challenge.scopes.length > 0 ? challenge.scopes : undefined
  const wanted = configured ? union(configured, isStepUp(challenge) ? asked : []) : (asked ?? supported ?? [])
  return union(boundTexts(union(requestedBefore, wanted)), offered?.includes(OFFLINE) ? [OFFLINE] : [])
}

/** Whether the user must be asked again, because some servers grant offline access only then. */
export const needsConsent = (scopes: readonly string[]): boolean => scopes.includes(OFFLINE)

/** The scopes that a server asks for although they were requested already; undefined if a new login can help. */
export const repeatedScopes = (
  challenge: BearerChallenge | undefined,
  requested: readonly string[] | undefined,
): string | undefined => {
  if (!isStepUp(challenge) || !challenge || !requested) return undefined
  const isRepeated = challenge.scopes.every(scope => requested.includes(scope))
  return isRepeated ? challenge.scopes.join(' ') || 'more scopes' : undefined
}
