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
  return union(requestedBefore, wanted, offered?.includes(OFFLINE) ? [OFFLINE] : [])
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
