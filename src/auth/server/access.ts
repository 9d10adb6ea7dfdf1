import type { Issuer } from '../../config/snapshot.ts'
import type { Visitor } from '../../protocol/sign-in.ts'
import { isExpired } from '../token.ts'
import type { StoredApiTokens } from '../token-store.ts'
import { type Claims, readClaims } from '../verify/claims.ts'
import type { IssuerSessions } from './issuer-sessions.ts'

/** What a visitor has signed in with: an API token, or a session at an issuer. */
export type Subject =
  | { readonly kind: 'token'; readonly id: string }
  | { readonly kind: 'issuer'; readonly session: string }

/** Who a subject is, and what they may use, now. */
export interface SubjectAccess extends Visitor {
  readonly expires?: number | undefined // of the API token
}

/**
 * Undefined if the subject may use nothing any more: the token was revoked, or the session has ended. Rejects with a StateError if
 * that cannot be found out now.
 */
export type AccessOf = (subject: Subject) => Promise<SubjectAccess | undefined>

export const createAccessOf =
  (tokens: Pick<StoredApiTokens, 'byId' | 'refresh'>, sessions: Pick<IssuerSessions, 'accessOf'>): AccessOf =>
  async subject => {
    if (subject.kind === 'issuer') return sessions.accessOf(subject.session)
    // What another replica has created may not be known yet: grants would end by mistake.
    if (!tokens.byId(subject.id)) await tokens.refresh()
    const token = tokens.byId(subject.id)
    if (!token || isExpired(token, Date.now())) return undefined
    const { id, principal, workspaces, policy, expires } = token
    const name = principal === id ? token.name : principal // without a principal, tokens have a random one
    return { principal, name, workspaces, policy, expires: expires === undefined ? undefined : Date.parse(expires) }
  }

/** What a person with these claims may use; a text says why nothing. */
export const accessOfClaims = (issuer: Issuer, claims: Claims): SubjectAccess | string => {
  const reading = readClaims(issuer, claims)
  if (reading.kind !== 'granted') return `You have signed in, but you may use nothing here. ${reading.reason}.`
  const { principal, grant } = reading
  return { principal, name: principal, workspaces: grant.workspaces, policy: grant.policy }
}
