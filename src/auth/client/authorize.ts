import { createHash, randomBytes } from 'node:crypto'
import { needsConsent } from './scopes.ts'

/** What an authorization request is made of. */
export interface CodeRequest {
  readonly endpoint: string
  readonly clientId: string
  readonly redirectUri: string
  readonly scopes: readonly string[]
  readonly resource?: string | undefined
}

const SECRET_BYTES = 32

/** A random text of 256 bits: a state, a cookie, a PKCE verifier. */
export const createRandomText = (): string => randomBytes(SECRET_BYTES).toString('base64url')

/** The URL at which the user grants access. */
export const authorizationUrl = (request: CodeRequest, state: string, verifier: string): string => {
  const { endpoint, clientId, redirectUri, scopes, resource } = request
  const url = new URL(endpoint) // keeps the query of the endpoint
  const challenge = createHash('sha256').update(verifier).digest('base64url')
  const params = {
    response_type: 'code',
    client_id: clientId,
    redirect_uri: redirectUri,
    state,
    code_challenge: challenge,
    code_challenge_method: 'S256',
    ...(scopes.length > 0 && { scope: scopes.join(' ') }),
    ...(needsConsent(scopes) && { prompt: 'consent' }),
    ...(resource !== undefined && { resource }),
  }
  for (const [name, value] of Object.entries(params)) url.searchParams.set(name, value)
  return url.href
}

/** What the authorization server has sent a browser back with. */
export type AuthorizationResponse =
  | { readonly kind: 'code'; readonly code: string }
  | { readonly kind: 'denied'; readonly error: string; readonly quoted?: string | undefined }
  | { readonly kind: 'foreign'; readonly issuer: string | undefined } // it comes from another issuer, or does not say
  | { readonly kind: 'incomplete' }

/**
 * Reads the query of a callback. A response of another issuer is not used: neither its code nor its error (RFC 9207).
 * Issuers are compared as texts, also where the issuer did not announce that it sends its name.
 */
export const readAuthorizationResponse = (
  query: URLSearchParams,
  expected: { readonly issuer: string; readonly sendsIssuer: boolean },
): AuthorizationResponse => {
  const issuer = query.get('iss') ?? undefined
  if (issuer === undefined ? expected.sendsIssuer : issuer !== expected.issuer) return { kind: 'foreign', issuer }
  const [error, code] = [query.get('error'), query.get('code')]
  if (error) return { kind: 'denied', error, quoted: query.get('error_description') ?? undefined }
  return code ? { kind: 'code', code } : { kind: 'incomplete' }
}
