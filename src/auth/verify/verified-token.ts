/** What a valid OAuth token lets its caller use. */
export interface VerifiedToken {
  readonly principal: string
  readonly audiences?: readonly string[] | undefined // without a slash at the end; undefined: this gateway has issued it
  readonly acceptedAudiences?: readonly string[] | undefined // undefined: the URL of the workspace, and the origin
  readonly workspaces: readonly string[] // names, or `*`
  readonly policy?: string | undefined // the name of a policy
  readonly scopes: ReadonlySet<string>
  readonly expires: number // epoch milliseconds
  readonly grant?: GrantOfToken | undefined // undefined: an issuer has issued it
}

/** The grant of the embedded authorization server that a token belongs to. */
interface GrantOfToken {
  readonly id: string
  readonly tokenId?: string | undefined // the API token that it ends with
}

/**
 * Why a token is not accepted. `invalid`: 401, the client needs another one. `forbidden`: 403, no other one helps.
 * `unavailable`: 503, it could not be checked.
 */
export interface RefusedToken {
  readonly kind: 'invalid' | 'forbidden' | 'unavailable'
  readonly reason: string
  readonly isExpired?: true // it was valid before: not an attempt to guess one
}

export type TokenCheck = VerifiedToken | RefusedToken

export const isRefused = (check: TokenCheck): check is RefusedToken => 'kind' in check

/** As a bearer token it would be accepted from a thief, too. */
export const BOUND_TO_KEY = 'The token is bound to a key (DPoP or mTLS), which is not supported here'

/** A token whose check is refused: thrown where it is found, and turned into the refusal by the verifier. */
export class RefusedTokenError extends Error {
  readonly refusal: RefusedToken

  constructor(kind: RefusedToken['kind'], reason: string, isExpired = false) {
    super(reason)
    this.refusal = isExpired ? { kind, reason, isExpired } : { kind, reason }
  }
}
