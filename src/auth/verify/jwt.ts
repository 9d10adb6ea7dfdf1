import { type CryptoKey, decodeJwt, decodeProtectedHeader, errors, type JWTPayload, jwtVerify } from 'jose'
import type { IssuerKeys } from './issuer-keys.ts'
import { BOUND_TO_KEY, RefusedTokenError } from './verified-token.ts'

/** Signatures that only the owner of a private key can make. */
const ALGORITHMS = 'RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA Ed25519'.split(' ')
export const CLOCK_TOLERANCE_S = 30

/** Types of access tokens; others have another purpose, such as a logout or an assertion. */
const TYPES: ReadonlySet<string> = new Set(['jwt', 'at+jwt', 'application/at+jwt'])

/** Claims that only ID tokens have. */
const ID_TOKEN_CLAIMS = ['nonce', 'at_hash', 'c_hash', 's_hash']

/** Three parts of base64url: a signed JWT. */
export const isJwt = (token: string): boolean => /^[\w-]+\.[\w-]+\.[\w-]*$/.test(token)

/** Whom a token claims to come from; not verified yet. */
export const issuerClaimOf = (token: string): string | undefined => {
  try {
    return decodeJwt(token).iss
  } catch {
    return undefined
  }
}

/** Verifies the signature, the times and the purpose of an access token of one issuer. Rejects with RefusedTokenError. */
export const verifyJwt = async (token: string, iss: string, keys: IssuerKeys, now: number): Promise<JWTPayload> => {
  const header = headerOf(token)
  const { alg, typ } = header
  if (!ALGORITHMS.includes(alg ?? ''))
    throw new RefusedTokenError('invalid', 'The token is not signed with a public-key algorithm')
  if (typ !== undefined && !TYPES.has(typ.toLowerCase()))
    throw new RefusedTokenError('invalid', 'The token is no access token')
  const candidates = await keys.candidates({ ...header, alg: alg as string })
  const payload = await verifyWithAny(token, candidates, iss, now)
  if (ID_TOKEN_CLAIMS.some(claim => claim in payload) || String(payload.typ ?? '').toUpperCase() === 'ID')
    throw new RefusedTokenError('invalid', 'The token is an ID token; send an access token')
  if (payload.cnf !== undefined) throw new RefusedTokenError('invalid', BOUND_TO_KEY)
  return payload
}

const headerOf = (token: string) => {
  try {
    return decodeProtectedHeader(token)
  } catch {
    throw new RefusedTokenError('invalid', 'The token is no JWT')
  }
}

const verifyWithAny = async (
  token: string,
  candidates: readonly CryptoKey[],
  issuer: string,
  now: number,
): Promise<JWTPayload> => {
  const options = {
    algorithms: ALGORITHMS,
    issuer,
    clockTolerance: CLOCK_TOLERANCE_S,
    requiredClaims: ['exp'],
    currentDate: new Date(now),
  }
  for (const key of candidates) {
    try {
      return (await jwtVerify(token, key, options)).payload
    } catch (error) {
      if (!(error instanceof errors.JWSSignatureVerificationFailed)) throw refusalOf(error)
    }
  }
  throw new RefusedTokenError('invalid', 'The signature of the token is not valid')
}

const refusalOf = (error: unknown): RefusedTokenError => {
  if (error instanceof errors.JWTExpired) return new RefusedTokenError('invalid', 'The token has expired', true)
  if (error instanceof errors.JWTClaimValidationFailed)
    return new RefusedTokenError(
      'invalid',
      error.claim === 'nbf'
        ? 'The token is not valid yet'
        : `The claim "${error.claim}" of the token is missing or wrong`,
    )
  return new RefusedTokenError('invalid', 'The token cannot be verified')
}
