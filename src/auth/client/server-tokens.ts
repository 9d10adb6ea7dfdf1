import type { ServerOAuth } from '../../config/snapshot.ts'
import { BoundedCache } from '../../std/bounded-cache.ts'
import type { StateStore } from '../../stores/state/state-store.ts'
import type { Log } from '../../telemetry/log.ts'
import type { LoginChange, LoginChanges } from './login-changes.ts'
import { isMachine } from './machine.ts'
import type { RecentTokens } from './recent-tokens.ts'
import type { RefreshResult, TokenIssuer, TokenRefresher } from './refresh.ts'
import { decodeTokens, refreshAt, type TokenRecord, tokenKey } from './token-records.ts'

/** The part of a server's configuration that its tokens depend on. */
export interface LoginServer {
  readonly name: string
  readonly url: string
  readonly oauth?: ServerOAuth | undefined
}

/** Whether all callers use the same tokens. */
export const isSharedLogin = (oauth: ServerOAuth | undefined): boolean => {
  if (!oauth) return false
  return oauth.grant === 'authorization_code' ? oauth.login === 'gateway' : oauth.grant !== 'id_jag'
}

interface CachedTokens {
  readonly token: string | undefined // undefined: there is no login
  readonly record?: TokenRecord | undefined
  readonly endsAt: number
  dueAt: number // for a refresh
  usedAt: number // exact to USED_MS
  renewing?: Promise<string | undefined> | undefined
}

/** A refresh without an answer; it is not tried again at once, because each attempt may take seconds. */
interface FailedRenewal {
  readonly result: RefreshResult
  readonly access: string
  readonly until: number
}

interface ServerTokensOptions {
  readonly store: StateStore
  readonly changes: LoginChanges
  readonly refresher: TokenRefresher
  readonly tokenIssuer: TokenIssuer
  readonly recent: RecentTokens
  readonly log: Log
}

const MOST = 10_000 // principals of one server in memory
const RETRY_MS = 5000 // after a refresh that got no answer
const REFUSED_MS = 30_000 // after one that was refused
const USED_MS = 10_000
const NEVER = Number.POSITIVE_INFINITY

/** The tokens of one server in memory, by principal; read from the store when they are first used. */
export class ServerTokens {
  readonly #server: LoginServer
  readonly #options: ServerTokensOptions
  readonly #isShared: boolean
  readonly #cached = new BoundedCache<CachedTokens>(MOST, NEVER)
  readonly #loading = new Map<string, Promise<string | undefined>>()
  readonly #failures = new BoundedCache<FailedRenewal>(MOST, NEVER)
  #version = 0 // grows with each change by other replicas or logins

  constructor(server: LoginServer, options: ServerTokensOptions) {
    this.#server = server
    this.#options = options
    this.#isShared = isSharedLogin(server.oauth)
  }

  /** The principal that tokens are stored for; undefined: for the whole gateway. */
  ownerOf(principal: string | undefined): string | undefined {
    return this.#isShared ? undefined : principal
  }

  /** Synchronous while tokens are cached and valid. */
  bearerOf(principal: string | undefined): string | undefined | Promise<string | undefined> {
    const name = this.#isShared ? '' : principal
    if (name === undefined) return undefined
    const cached = this.#cached.get(name)
    const now = Date.now()
    if (cached && now - cached.usedAt >= USED_MS) this.#noteUse(cached, now)
    if (cached && now < cached.dueAt) return cached.token
    return cached ? this.#whenDue(name, cached) : this.#load(name)
  }

  /** What the store has now; it is used from then on. Rejects with StateError. */
  async newest(principal: string | undefined): Promise<TokenRecord | undefined> {
    const { changes, store } = this.#options
    await changes.follow()
    const version = this.#version
    const found = decodeTokens(await store.read('token', this.keyOf(principal)))
    const record = found?.url === this.#server.url ? found : undefined
    if (version === this.#version) this.put(principal, record)
    return record
  }

  /** Uses other tokens from now on. */
  put(principal: string | undefined, record: TokenRecord | undefined): void {
    if (record) this.#options.recent.add(record)
    const canRenew = record && (record.refresh !== undefined || isMachine(this.#server.oauth))
    this.#cached.set(this.#isShared ? '' : (principal ?? ''), {
      token: record?.access,
      record,
      endsAt: record?.expires ?? NEVER,
      dueAt: canRenew ? refreshAt(record) : NEVER,
      usedAt: Date.now(),
    })
  }

  #noteUse(cached: CachedTokens, now: number): void {
    cached.usedAt = now
    if (cached.record) this.#options.recent.add(cached.record)
  }

  /** Replaces tokens that the server refuses, or that end soon. Rejects with StateError. */
  async renew(principal: string | undefined, record: TokenRecord): Promise<RefreshResult> {
    const { refresher, tokenIssuer } = this.#options
    const [key, { access }] = [this.keyOf(principal), record]
    const failure = this.#failures.get(key)
    if (failure?.access === access && Date.now() < failure.until) return failure.result
    const result = await refresher.refresh(key, record, tokenIssuer)
    // A grant without a browser could be tried again and again.
    const isFinal = result.kind === 'ended' && isMachine(this.#server.oauth)
    if (isFinal || result.kind === 'unavailable')
      this.#failures.set(key, { result, access, until: Date.now() + (isFinal ? REFUSED_MS : RETRY_MS) })
    if (result.kind !== 'unavailable') this.put(principal, result.kind === 'gone' ? undefined : result.record)
    return result
  }

  /** A login came or went. */
  drop(change: LoginChange | undefined): void {
    this.#version++
    if (change) this.#cached.delete(change.principal ?? '')
    else this.#cached.clear()
  }

  keyOf(principal: string | undefined): string {
    return tokenKey(this.#server.name, this.ownerOf(principal))
  }

  /** While the tokens are valid, callers do not wait for their refresh. */
  #whenDue(name: string, cached: CachedTokens): string | undefined | Promise<string | undefined> {
    const { record } = cached
    if (!record) return cached.token
    cached.renewing ??= this.#renewInTurn(name, record, cached)
    return Date.now() < cached.endsAt ? cached.token : cached.renewing
  }

  /** Without an answer of the authorization server the old token is sent: the server decides. */
  async #renewInTurn(name: string, record: TokenRecord, cached: CachedTokens): Promise<string | undefined> {
    const wait = (reason: string): string | undefined => {
      this.#options.log.debug({ server: this.#server.name, reason }, 'access token not refreshed')
      const current = this.#cached.get(name) ?? cached
      current.dueAt = Math.max(current.dueAt, Date.now() + RETRY_MS)
      return current.token
    }
    try {
      const result = await this.renew(name, record)
      if (result.kind === 'unavailable') return wait(result.reason)
      if (result.kind === 'ended') return wait(result.error)
      return this.#cached.get(name)?.token
    } catch (error) {
      return wait(error instanceof Error ? error.message : String(error))
    } finally {
      cached.renewing = undefined
    }
  }

  #load(name: string): Promise<string | undefined> {
    const running = this.#loading.get(name)
    if (running) return running
    const loading = this.newest(name)
      .then(
        record => (this.#cached.get(name) ? this.bearerOf(name) : record?.access),
        (error: Error) => {
          this.#options.log.warn({ server: this.#server.name, reason: error.message }, 'login could not be read')
          return undefined
        },
      )
      .finally(() => this.#loading.delete(name))
    this.#loading.set(name, loading)
    return loading
  }
}
