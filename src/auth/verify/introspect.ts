import type { Issuer } from '../../config/snapshot.ts'
import { NotAcquired, Semaphore } from '../../std/semaphore.ts'
import { type GuardedFetch, readJsonObject } from '../fetch/guarded-fetch.ts'
import type { Claims } from './claims.ts'
import { fetchMetadata, IssuerUnusable } from './issuer-documents.ts'
import { BOUND_TO_KEY, RefusedTokenError } from './verified-token.ts'

const AT_ONCE = 8 // requests to the issuer
const MOST_WAITING = 100 // every unknown text that a caller sends becomes a request
const ENDPOINT_MS = 60 * 60_000 // until the metadata is read again

/** Asks an issuer about opaque tokens (RFC 7662). */
export class Introspection {
  readonly #issuer: Issuer
  readonly #fetch: GuardedFetch
  readonly #slots = new Semaphore(AT_ONCE, MOST_WAITING)
  #endpoint: { readonly url: string; readonly until: number } | undefined

  constructor(issuer: Issuer, fetch: GuardedFetch) {
    this.#issuer = issuer
    this.#fetch = fetch
  }

  /** The claims of an active token. Rejects with RefusedTokenError. */
  async ask(token: string): Promise<Claims> {
    const claims = await this.#request(token).catch((error: unknown) => {
      if (error instanceof NotAcquired)
        throw new RefusedTokenError('unavailable', 'Too many tokens are being checked now')
      const reason = error instanceof Error ? error.message : String(error)
      throw new RefusedTokenError('unavailable', `The token cannot be checked now: ${reason}`)
    })
    const { active, iss, token_use, token_type, cnf } = claims
    if (active !== true) throw new RefusedTokenError('invalid', 'The token is unknown, revoked or has expired')
    if (iss !== undefined && iss !== this.#issuer.url)
      throw new RefusedTokenError('invalid', 'The token comes from another issuer')
    if (token_use === 'refresh_token' || token_type === 'refresh_token')
      throw new RefusedTokenError('invalid', 'The token is a refresh token; send an access token')
    if (cnf !== undefined || String(token_type).toLowerCase() === 'dpop')
      throw new RefusedTokenError('invalid', BOUND_TO_KEY)
    return claims
  }

  async #request(token: string): Promise<Claims> {
    const release = await this.#slots.acquire()
    try {
      const { clientId, clientSecret } = this.#issuer.introspection ?? { clientId: '', clientSecret: '' }
      const response = await this.#fetch(await this.#locate(), {
        method: 'POST',
        headers: {
          authorization: `Basic ${Buffer.from(`${formEncode(clientId)}:${formEncode(clientSecret)}`).toString('base64')}`,
          'content-type': 'application/x-www-form-urlencoded',
        },
        body: new URLSearchParams({ token, token_type_hint: 'access_token' }).toString(),
        from: this.#issuer.endpoints?.introspection ?? this.#issuer.url,
      })
      const claims = response.status === 200 ? readJsonObject(response) : undefined
      if (claims) return claims
      throw new IssuerUnusable(
        `the issuer "${this.#issuer.name}" answered the introspection with status ${response.status}`,
      )
    } finally {
      release()
    }
  }

  async #locate(): Promise<string> {
    const { endpoints, name } = this.#issuer
    if (endpoints?.introspection !== undefined) return endpoints.introspection
    if (this.#endpoint && Date.now() < this.#endpoint.until) return this.#endpoint.url
    const { introspection_endpoint: url } = await fetchMetadata(this.#issuer, this.#fetch)
    if (typeof url !== 'string')
      throw new IssuerUnusable(
        `the metadata of the issuer "${name}" names no introspection endpoint: write it under "endpoints"`,
      )
    this.#endpoint = { url, until: Date.now() + ENDPOINT_MS }
    return url
  }
}

/** RFC 6749, 2.3.1: ids and secrets are form-encoded before they are joined. */
const formEncode = (text: string): string => new URLSearchParams({ '': text }).toString().slice(1)
