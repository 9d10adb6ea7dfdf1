import { hash } from 'node:crypto'
import { BoundedCache } from '../../std/bounded-cache.ts'
import { isRefused, type TokenCheck } from './verified-token.ts'

interface CachedCheck {
  readonly check: TokenCheck
  readonly until: number
}

const KEPT_MS = 60_000 // a revoked token may be accepted for so long
const REFUSED_MS = 5_000
const MOST = 10_000
const MOST_REFUSED = 1000 // apart, so that invalid tokens do not evict valid ones

/** Results of checks by the hash of the token. Requests with the same new token share one check. */
export class TokenCache {
  readonly #now: () => number
  readonly #accepted = new BoundedCache<CachedCheck>(MOST, KEPT_MS)
  readonly #refused = new BoundedCache<CachedCheck>(MOST_REFUSED, KEPT_MS)
  readonly #running = new Map<string, Promise<TokenCheck>>()
  #endedGrants = 0

  constructor(now: () => number) {
    this.#now = now
  }

  /** The cached result, or that of `verify`. */
  check(secret: string, verify: () => Promise<TokenCheck>): TokenCheck | Promise<TokenCheck> {
    const key = hash('sha256', secret, 'base64url')
    const known = this.#accepted.get(key) ?? this.#refused.get(key)
    if (known && this.#now() < known.until) return known.check
    return this.#running.get(key) ?? this.#run(key, verify)
  }

  /** Forgets the tokens of a grant that has ended. */
  forget(grant: string): void {
    this.#endedGrants++
    for (const [key, { check }] of this.#accepted.entries())
      if (!isRefused(check) && check.grant?.id === grant) this.#accepted.delete(key)
  }

  #run(key: string, verify: () => Promise<TokenCheck>): Promise<TokenCheck> {
    const running = this.#verify(key, verify).finally(() => this.#running.delete(key))
    this.#running.set(key, running)
    return running
  }

  /** A grant that ends during the check may have been read before: the check is repeated. */
  async #verify(key: string, verify: () => Promise<TokenCheck>): Promise<TokenCheck> {
    for (;;) {
      const before = this.#endedGrants
      const check = await verify()
      if (before !== this.#endedGrants && !isRefused(check) && check.grant) continue
      this.#keep(key, check)
      return check
    }
  }

  #keep(key: string, check: TokenCheck): void {
    this.#accepted.delete(key)
    const now = this.#now()
    if (!isRefused(check)) this.#accepted.set(key, { check, until: Math.min(check.expires, now + KEPT_MS) })
    else if (check.kind !== 'unavailable') this.#refused.set(key, { check, until: now + REFUSED_MS })
  }
}
