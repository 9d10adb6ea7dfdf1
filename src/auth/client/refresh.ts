import { randomUUID } from 'node:crypto'
import { sleep } from '../../std/time.ts'
import type { StateStore } from '../../stores/state/state-store.ts'
import type { Log } from '../../telemetry/log.ts'
import { untilStored } from '../until-stored.ts'
import {
  decodeTokens,
  encodeRecord,
  keptUntil,
  type RefreshClaim,
  type TokenRecord,
  withTokens,
} from './token-records.ts'
import { type GrantedTokens, TokenRefused, TokenUnavailable } from './token-request.ts'

/** What a refresh led to. */
export type RefreshResult =
  | { readonly kind: 'current'; readonly record: TokenRecord } // new tokens, or newer ones that were stored already
  | { readonly kind: 'ended'; readonly record: TokenRecord; readonly error: string } // refused: a login is needed
  | { readonly kind: 'unavailable'; readonly record?: TokenRecord | undefined; readonly reason: string } // nothing was changed
  | { readonly kind: 'gone' } // there is no login any more

/** The authorization server of a login. */
export interface TokenIssuer {
  /** Requests new tokens. Rejects with TokenRefused or TokenUnavailable. */
  renew(record: TokenRecord): Promise<GrantedTokens>
  /** Never rejects; false if it was not confirmed. */
  revoke(record: TokenRecord): Promise<boolean>
}

const KIND = 'token'
const LEASE_MS = 30_000 // for another live replica to finish; a request takes ten seconds at most
const POLL_MS = { first: 40, longest: 500 }

/** Refreshes tokens so that of all replicas one sends a request, and the others find its result in the store. */
export class TokenRefresher {
  readonly #store: StateStore
  readonly #log: Log
  readonly #running = new Map<string, Promise<RefreshResult>>()

  constructor(store: StateStore, log: Log) {
    this.#store = store
    this.#log = log
  }

  /** Replaces the tokens of a record if they are still `stale`. Rejects with StateError if the store is away. */
  refresh(key: string, stale: TokenRecord, tokenIssuer: TokenIssuer): Promise<RefreshResult> {
    const running = this.#running.get(key)
    if (running) return running
    const started = this.#refresh(key, stale, tokenIssuer).finally(() => this.#running.delete(key))
    this.#running.set(key, started)
    return started
  }

  async #refresh(key: string, stale: TokenRecord, tokenIssuer: TokenIssuer): Promise<RefreshResult> {
    let [seen, seenAt] = ['', 0] // the claim of another replica, by the clock of this one
    for (let wait = POLL_MS.first; ; wait = Math.min(wait * 1.5, POLL_MS.longest)) {
      const record = decodeTokens(await this.#store.read(KIND, key))
      if (!record) return { kind: 'gone' }
      if (record.access !== stale.access) return { kind: 'current', record }
      // The refresh of another replica was refused: there is nothing left to ask with.
      if (stale.refresh !== undefined && record.refresh === undefined)
        return { kind: 'ended', record, error: 'invalid_grant' }
      const { refreshing } = record
      if (refreshing && refreshing.id !== seen) [seen, seenAt] = [refreshing.id, Date.now()]
      const hasExpired = refreshing && Date.now() - seenAt > LEASE_MS
      const claim =
        this.#isRunning(refreshing) && !hasExpired ? undefined : await this.#claim(key, stale.access, refreshing?.id)
      if (claim) return this.#renew(key, claim.record, claim.id, tokenIssuer)
      await sleep(wait)
    }
  }

  /** Whether another live replica refreshes. A claim of this replica is left over: it would be in `#running`. */
  #isRunning(claim: RefreshClaim | undefined): boolean {
    const { members } = this.#store
    return claim !== undefined && claim.replica !== members.self && members.at(claim.replica) !== undefined
  }

  /** Claims the record, unless it has changed since it was read. */
  async #claim(
    key: string,
    stale: string,
    former: string | undefined,
  ): Promise<{ readonly id: string; readonly record: TokenRecord } | undefined> {
    const taken = await this.#store.take(KIND, key)
    const found = taken.kind === 'mine' ? decodeTokens(taken.held) : undefined
    if (taken.kind !== 'mine' || found?.access !== stale || found.refreshing?.id !== former) return undefined
    const id = randomUUID()
    const record = { ...found, refreshing: { id, replica: this.#store.members.self } }
    const isWritten = await this.#store.write(taken.held, encodeRecord(record), { expires: keptUntil(Date.now()) })
    return isWritten ? { id, record } : undefined
  }

  async #renew(key: string, record: TokenRecord, id: string, tokenIssuer: TokenIssuer): Promise<RefreshResult> {
    const { server, issuer } = record
    try {
      const next = withTokens(record, await tokenIssuer.renew(record), Date.now())
      const stored = await this.#replace(key, id, next, record.access)
      if (!stored) await this.#revoke(next, tokenIssuer)
      if (stored === next) this.#log.debug({ server, issuer }, 'access token refreshed')
      return stored ? { kind: 'current', record: stored } : { kind: 'gone' }
    } catch (error) {
      if (error instanceof TokenRefused) return this.#end(key, record, id, error)
      const { refreshing: _, ...released } = record
      await this.#replace(key, id, released)
      if (!(error instanceof TokenUnavailable)) throw error
      this.#log.warn(
        { server, issuer, reason: error.message },
        'access token could not be refreshed; the login is kept',
      )
      return { kind: 'unavailable', record, reason: error.message }
    }
  }

  /** The user logged out meanwhile, and the tokens that were revoked then are not these. */
  async #revoke(next: TokenRecord, tokenIssuer: TokenIssuer): Promise<void> {
    const { server, issuer } = next
    const isRevoked = await tokenIssuer.revoke(next)
    this.#log.info({ server, issuer, isRevoked }, 'login ended during a refresh; the new tokens are not used')
  }

  /** A refresh token that was refused is not sent again. */
  async #end(key: string, record: TokenRecord, id: string, { error }: TokenRefused): Promise<RefreshResult> {
    const { refreshing: _, refresh: __, ...ended } = record
    const stored = await this.#replace(key, id, ended)
    if (!stored) return { kind: 'gone' }
    if (stored !== ended) return { kind: 'current', record: stored } // a login was faster
    this.#log.info(
      { server: record.server, issuer: record.issuer, reason: error },
      'login has ended: its refresh was refused',
    )
    return { kind: 'ended', record: ended, error }
  }

  /**
   * Stores a record if this claim still holds, or if the tokens are still the `former` ones: a replica that took over has
   * got none. Returns what is stored then; undefined if there is none. Tries on while the store is away.
   */
  #replace(key: string, id: string, record: TokenRecord, former?: string): Promise<TokenRecord | undefined> {
    return untilStored<TokenRecord | undefined>(
      async () => {
        const taken = await this.#store.take(KIND, key)
        if (taken.kind === 'none') return { result: undefined }
        const found = taken.kind === 'mine' ? decodeTokens(taken.held) : undefined
        if (found && found.refreshing?.id !== id && found.access !== former) return { result: found }
        const options = { expires: keptUntil(Date.now()), durable: true }
        const isWritten = taken.kind === 'mine' && (await this.#store.write(taken.held, encodeRecord(record), options))
        return isWritten ? { result: record } : undefined
      },
      () => this.#log.warn({ server: record.server }, 'refreshed tokens could not be stored yet'),
    )
  }
}
