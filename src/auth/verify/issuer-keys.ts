import { type CryptoKey, createLocalJWKSet, errors, type JWK, type JWSHeaderParameters } from 'jose'
import type { Issuer } from '../../config/snapshot.ts'
import { SingleFlight } from '../../std/single-flight.ts'
import type { Log } from '../../telemetry/log.ts'
import type { GuardedFetch } from '../fetch/guarded-fetch.ts'
import { fetchMetadata, fetchObject, IssuerUnusable } from './issuer-documents.ts'
import { RefusedTokenError } from './verified-token.ts'

interface KeyOptions {
  readonly fetch: GuardedFetch
  readonly log: Log
  readonly now?: () => number
}

type FindKeys = ReturnType<typeof createLocalJWKSet>

const FRESH_MS = 10 * 60_000 // a key that the issuer has withdrawn is accepted for so long
const UNKNOWN_KEY_MS = 30_000 // between fetches because of keys that are not there: any caller can name one
const RETRY_MS = 5_000 // after a failure
const MOST_CANDIDATES = 8 // keys to try for a token that names none

/** The public keys of one issuer: fetched when first needed, and kept while the issuer cannot be reached. */
export class IssuerKeys {
  readonly #issuer: Issuer
  readonly #options: KeyOptions
  readonly #fetching = new SingleFlight()
  #find: FindKeys | undefined
  #fetchedAt = Number.NEGATIVE_INFINITY
  #failedAt = Number.NEGATIVE_INFINITY
  #failure: string | undefined

  constructor(issuer: Issuer, options: KeyOptions) {
    this.#issuer = issuer
    this.#options = options
  }

  /** The keys that may have signed a token with this header. Rejects with RefusedTokenError. */
  async candidates(header: JWSHeaderParameters): Promise<readonly CryptoKey[]> {
    if (!this.#find || this.#now() - this.#fetchedAt >= FRESH_MS) {
      const refreshing = this.#refresh(RETRY_MS)
      if (!this.#find || this.#failure === undefined) await refreshing // known keys do not wait for an issuer that is away
    }
    const found = await this.#lookUp(header)
    if (found.length > 0) return found
    await this.#refresh(UNKNOWN_KEY_MS) // the issuer may have a new key
    const again = await this.#lookUp(header)
    if (again.length > 0) return again
    throw new RefusedTokenError('invalid', `The issuer "${this.#issuer.name}" has no key that fits the token`)
  }

  /** Fetches the keys, unless that was tried within `pauseMs`. Rejects if there are none to use. */
  async #refresh(pauseMs: number): Promise<void> {
    const now = this.#now()
    const isDue = now - this.#fetchedAt >= pauseMs && now - this.#failedAt >= RETRY_MS
    if (isDue || this.#fetching.running) await this.#fetching.run(() => this.#fetch())
    if (!this.#find)
      throw new RefusedTokenError(
        'unavailable',
        `The token cannot be checked now: ${this.#failure ?? 'there are no keys'}`,
      )
  }

  async #fetch(): Promise<void> {
    const { fetch, log } = this.#options
    try {
      const { jwks, url } = this.#issuer
      const location = jwks ?? (await this.#discover())
      const { keys } = await fetchObject(this.#issuer, location, jwks ?? url, fetch)
      if (!Array.isArray(keys))
        throw new IssuerUnusable(`the issuer "${this.#issuer.name}" sent no keys from ${location}`)
      this.#find = createLocalJWKSet({ keys: keys.filter(isPublicKey) })
      this.#fetchedAt = this.#now()
      this.#failure = undefined
    } catch (error) {
      this.#failedAt = this.#now()
      this.#failure = error instanceof Error ? error.message : String(error)
      log.warn(
        { issuer: this.#issuer.name, reason: this.#failure, hasKeys: !!this.#find },
        'keys of an issuer not read',
      )
    }
  }

  async #discover(): Promise<string> {
    const { jwks_uri } = await fetchMetadata(this.#issuer, this.#options.fetch)
    if (typeof jwks_uri === 'string') return jwks_uri
    throw new IssuerUnusable(`the metadata of the issuer "${this.#issuer.name}" names no keys ("jwks_uri")`)
  }

  async #lookUp(header: JWSHeaderParameters): Promise<readonly CryptoKey[]> {
    try {
      return this.#find ? [await this.#find(header)] : []
    } catch (error) {
      if (error instanceof errors.JWKSNoMatchingKey) return []
      if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw new RefusedTokenError('invalid', UNUSABLE_KEY)
      const keys: CryptoKey[] = []
      for await (const key of error) if (keys.push(key) >= MOST_CANDIDATES) break
      return keys
    }
  }

  #now(): number {
    return (this.#options.now ?? Date.now)()
  }
}

const UNUSABLE_KEY = 'The key that the token names cannot be used'

/** A shared secret must never verify a token: every holder of it could sign one. */
const isPublicKey = (key: unknown): key is JWK =>
  typeof key === 'object' && key !== null && 'kty' in key && key.kty !== 'oct'
