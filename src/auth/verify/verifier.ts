import type { Issuer } from '../../config/snapshot.ts'
import type { GrantReader } from '../../protocol/authorization-server.ts'
import type { Log } from '../../telemetry/log.ts'
import type { GuardedFetch } from '../fetch/guarded-fetch.ts'
import { audiencesIn, type Claims, plainAudience, readClaims, scopesIn } from './claims.ts'
import { Introspection } from './introspect.ts'
import { IssuerKeys } from './issuer-keys.ts'
import { CLOCK_TOLERANCE_S, isJwt, issuerClaimOf, verifyJwt } from './jwt.ts'
import { TokenCache } from './token-cache.ts'
import { isRefused, RefusedTokenError, type TokenCheck } from './verified-token.ts'

interface VerifierOptions {
  readonly issuers: ReadonlyMap<string, Issuer>
  readonly fetch: GuardedFetch
  readonly log: Log
  readonly now?: () => number
}

/** Checks OAuth tokens. */
export interface TokenVerifier {
  /** Synchronous for a token that was checked within the last minute. */
  check(secret: string): TokenCheck | Promise<TokenCheck>
  /** From now on the access tokens of the embedded authorization server are accepted, too. */
  acceptGrants(grants: GrantReader): void
  /** Calls the listener with the id of a grant that has ended. */
  onGrantEnded(listener: (grant: string) => void): void
  /** Forgets what was found out about the tokens of a grant. */
  forget(grant: string): void
  close(): void
}

const GRANTED = /^dro_[\w-]{64}$/
const UNKNOWN: TokenCheck = { kind: 'invalid', reason: 'The token is unknown or revoked' }
const UNKNOWN_ISSUER: TokenCheck = { kind: 'invalid', reason: 'The token comes from an unknown issuer' }
/** Access tokens of grants expire every hour, so that most unknown ones were valid once. */
const ENDED: TokenCheck = {
  kind: 'invalid',
  reason: 'The token is unknown, revoked or has expired',
  isExpired: true,
}
const EXPIRED: TokenCheck = { kind: 'invalid', reason: 'The token has expired', isExpired: true }
const BEARER = /^[\w.~+/-]{1,16384}=*$/
/** Secrets of this gateway are shown to no issuer. */
const OWN_SECRET = /^dr[a-z]_/
const OPAQUE_MS = 60 * 60_000 // of a token whose issuer does not say when it expires

/** Checks tokens by their shape: of the embedded server, a JWT, or opaque. */
export const createVerifier = (options: VerifierOptions): TokenVerifier => {
  const { issuers, fetch, log, now = Date.now } = options
  const byUrl = new Map(
    [...issuers.values()].map(issuer => [issuer.url, { issuer, keys: new IssuerKeys(issuer, { fetch, log, now }) }]),
  )
  const opaque = [...issuers.values()].find(({ introspection }) => introspection)
  const introspection = opaque && { issuer: opaque, asking: new Introspection(opaque, fetch) }
  const cache = new TokenCache(now)
  const endListeners: ((grant: string) => void)[] = []
  let grants: GrantReader | undefined
  let stopListening: (() => void) | undefined

  const checkJwt = async (token: string): Promise<TokenCheck> => {
    const known = byUrl.get(issuerClaimOf(token) ?? '')
    if (!known) return UNKNOWN_ISSUER
    const { issuer, keys } = known
    const claims = await verifyJwt(token, issuer.url, keys, now())
    return accept(issuer, claims, ((claims.exp ?? 0) + CLOCK_TOLERANCE_S) * 1000)
  }

  const checkOpaque = async (token: string): Promise<TokenCheck> => {
    if (!introspection) return UNKNOWN
    const claims = await introspection.asking.ask(token)
    const { exp } = claims
    return accept(introspection.issuer, claims, typeof exp === 'number' ? exp * 1000 : now() + OPAQUE_MS)
  }

  const checkGranted = async (reader: GrantReader, secret: string): Promise<TokenCheck> => {
    const found = await reader.findGrant(secret).catch((error: unknown) => {
      log.warn({ err: error }, 'token of a grant not checked: the store does not answer')
      throw new RefusedTokenError('unavailable', 'The token cannot be checked now: the store does not answer')
    })
    if (!found) return ENDED
    const { id, principal, workspaces, policy, scopes, expires, tokenId } = found
    return { principal, workspaces, policy, scopes: new Set(scopes), expires, grant: { id, tokenId } }
  }

  const checkNow = async (secret: string): Promise<TokenCheck> => {
    if (grants && GRANTED.test(secret)) return checkGranted(grants, secret)
    if (OWN_SECRET.test(secret) || !BEARER.test(secret)) return UNKNOWN
    return isJwt(secret) ? checkJwt(secret) : checkOpaque(secret)
  }

  const verify = async (secret: string): Promise<TokenCheck> => {
    const check = await checkNow(secret).catch((error: unknown) => {
      if (error instanceof RefusedTokenError) return error.refusal
      throw error
    })
    return !isRefused(check) && check.expires <= now() ? EXPIRED : check
  }

  return {
    check: secret => cache.check(secret, () => verify(secret)),
    acceptGrants: reader => {
      grants = reader
      stopListening = reader.onGrantEnded(grant => {
        cache.forget(grant)
        for (const listener of endListeners) listener(grant)
      })
    },
    onGrantEnded: listener => void endListeners.push(listener),
    forget: grant => cache.forget(grant),
    close: () => stopListening?.(),
  }
}

/** What a token of an issuer lets its caller use. */
const accept = (issuer: Issuer, claims: Claims, expires: number): TokenCheck => {
  const reading = readClaims(issuer, claims)
  if (reading.kind !== 'granted') return reading
  const { principal, grant } = reading
  const { workspaces, policy } = grant
  return {
    principal,
    audiences: audiencesIn(claims),
    acceptedAudiences: issuer.audience?.map(plainAudience),
    workspaces,
    policy,
    scopes: scopesIn(claims),
    expires,
  }
}
