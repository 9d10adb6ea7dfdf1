import type {
  DeclaredEndpoints,
  LoginFailed,
  LoginNeeded,
  RefusalOutcome,
  ServerCredentials,
  TokenRefusal,
} from '../../protocol/oauth.ts'
import { BoundedCache } from '../../std/bounded-cache.ts'
import { within } from '../../std/time.ts'
import { Listeners } from '../../stores/state/listeners.ts'
import { StateError } from '../../stores/state/state-store.ts'
import type { Log } from '../../telemetry/log.ts'
import { type BeginContext, beginLogin, beginSignIn, findClient } from './begin-login.ts'
import { type BearerChallenge, readBearerChallenge } from './challenge.ts'
import { fetchChallenge } from './challenge-request.ts'
import type { DiscoveredIssuer } from './discover.ts'
import type { LoginChange } from './login-changes.ts'
import type { LoginRecord } from './login-records.ts'
import {
  CLIENT_CHANGED,
  configuredClient,
  isMachine,
  type MachineContext,
  requestMachineTokens,
  SIGN_IN_MISSING,
  SignInMissing,
} from './machine.ts'
import { LOGIN_FAILURES, LoginProblem } from './messages.ts'
import { OAuthUnsupported } from './register.ts'
import { chooseScopes, repeatedScopes } from './scopes.ts'
import type { ServerDiscovery } from './server-discovery.ts'
import { isSharedLogin, type LoginServer, type ServerTokens } from './server-tokens.ts'
import { isFresh, type StoredClient, saveTokens, type TokenRecord } from './token-records.ts'
import { TokenRefused, TokenUnavailable } from './token-request.ts'

interface CredentialsOptions {
  readonly tokens: ServerTokens
  readonly discovery: ServerDiscovery
  readonly begin: BeginContext
  readonly machine: MachineContext
  readonly log: Log
}

const MOST_MS = 50_000 // for an answer to a refusal
const MOST = 10_000 // principals that something is kept for
const REFUSED_MS = 30_000 // a grant without a browser is not tried again
const ASKED_MS = 10 * 60_000
const UNSUPPORTED_MS = 5 * 60_000
/** Refusals of a renewal that say nothing about a grant without a browser that begins anew. */
const ACQUIRED_ANEW: ReadonlySet<string> = new Set([SIGN_IN_MISSING, CLIENT_CHANGED])

/** The credentials of one server: which token to send, and what to do when the server refuses it. */
export class Credentials implements ServerCredentials {
  readonly #server: LoginServer
  readonly #options: CredentialsOptions
  readonly #listeners = new Listeners<string | undefined>()
  readonly #acquiring = new Map<string | undefined, Promise<RefusalOutcome>>()
  readonly #refused = new BoundedCache<{ readonly outcome: LoginFailed; readonly until: number }>(MOST, REFUSED_MS)
  readonly #stepUps = new BoundedCache<BearerChallenge>(MOST, Number.POSITIVE_INFINITY) // that no login has answered
  #asked: { readonly challenge: BearerChallenge | undefined; readonly until: number } | undefined // by the server
  #unsupportedUntil = 0

  constructor(server: LoginServer, options: CredentialsOptions) {
    this.#server = server
    this.#options = options
  }

  bearerOf(principal: string | undefined): string | undefined | Promise<string | undefined> {
    return this.#options.tokens.bearerOf(principal)
  }

  onChanged(listener: (principal: string | undefined) => void): () => void {
    return this.#listeners.add(listener)
  }

  declare(endpoints: DeclaredEndpoints): void {
    this.#options.discovery.declare(endpoints)
  }

  /** A login of this server came or went. */
  changed(change: LoginChange | undefined): void {
    this.#options.tokens.drop(change)
    this.#refused.clear()
    if (change) this.#stepUps.delete(change.principal ?? '')
    else this.#stepUps.clear()
    this.#listeners.call(change?.principal)
  }

  rejected(principal: string | undefined, refusal: TokenRefusal): Promise<RefusalOutcome> {
    const answer = this.#answer(principal, refusal).catch((error: unknown) => this.#failure(error))
    return within(MOST_MS, answer, () => LOGIN_FAILURES.timedOut())
  }

  /** Starts a login for a user who was not refused just now. Rejects as `#begin` does. */
  async begin(principal: string | undefined): Promise<RefusalOutcome> {
    const { tokens, discovery } = this.#options
    if (principal === undefined && !isSharedLogin(this.#server.oauth)) return LOGIN_FAILURES.noPrincipal()
    const challenge = this.#stepUps.get(tokens.ownerOf(principal) ?? '') ?? (await this.#challenge())
    const record = await tokens.newest(principal)
    const found = await discovery.find(challenge)
    return isMachine(this.#server.oauth)
      ? this.#acquire(principal, found, challenge)
      : this.#begin(principal, found, challenge, record)
  }

  async #answer(principal: string | undefined, refusal: TokenRefusal): Promise<RefusalOutcome> {
    const { tokens, discovery } = this.#options
    const challenge = readBearerChallenge(refusal.wwwAuthenticate)
    if (!isAboutTokens(refusal, challenge) || Date.now() < this.#unsupportedUntil) return { kind: 'unsupported' }
    if (refusal.status === 401) this.#asked = { challenge, until: Date.now() + ASKED_MS }
    if (principal === undefined && !isSharedLogin(this.#server.oauth)) return this.#withoutPrincipal(challenge)
    const record = await tokens.newest(principal)
    if (record && record.access !== refusal.token) return { kind: 'retry' }
    const repeated = repeatedScopes(challenge, record?.requested)
    if (challenge && refusal.status === 403) this.#stepUps.set(tokens.ownerOf(principal) ?? '', challenge)
    if (repeated !== undefined) return LOGIN_FAILURES.scopeLoop(repeated)
    const isStale = record && refusal.status === 401 && !isFresh(record, Date.now())
    if (record && !isStale) discovery.forget(record.obtained)
    if (record && refusal.status === 401 && (await this.#canRenew(record, isStale === true, challenge))) {
      const renewed = await tokens.renew(principal, record)
      if (renewed.kind === 'current') return { kind: 'retry' }
      if (renewed.kind === 'unavailable' && !(await this.#hasMoved(record, challenge)))
        return LOGIN_FAILURES.issuerDown(record.issuer)
      const isFinal = renewed.kind === 'ended' && !ACQUIRED_ANEW.has(renewed.error)
      if (isFinal && isMachine(this.#server.oauth)) return LOGIN_FAILURES.grantRefused(record.issuer, renewed.error)
    }
    const found = await discovery.find(challenge)
    if (!isMachine(this.#server.oauth)) return this.#begin(principal, found, challenge, record)
    return record && !isStale ? LOGIN_FAILURES.tokenRefused(record.issuer) : this.#acquire(principal, found, challenge)
  }

  /**
   * Whether new tokens may help. A token that was issued just now is replaced once, where the server still uses the same
   * issuer: it may have been revoked. If its successor is refused, too, only another login can help.
   */
  async #canRenew(record: TokenRecord, isStale: boolean, challenge: BearerChallenge | undefined): Promise<boolean> {
    const canRenew = record.refresh !== undefined || isMachine(this.#server.oauth)
    if (isStale || !canRenew) return canRenew
    return record.obtained === record.since && !(await this.#hasMoved(record, challenge))
  }

  /** Whether tokens come from elsewhere now: then no refresh will ever be answered. */
  #hasMoved({ issuer, tokenEndpoint }: TokenRecord, challenge: BearerChallenge | undefined): Promise<boolean> {
    return this.#options.discovery.find(challenge).then(
      ({ authServer }) => authServer.issuer !== issuer || authServer.tokenEndpoint !== tokenEndpoint,
      (error: unknown) => {
        if (error instanceof LoginProblem) return false
        throw error
      },
    )
  }

  /** A caller without a name cannot log in; whether a login would help is found out first. */
  async #withoutPrincipal(challenge: BearerChallenge | undefined): Promise<RefusalOutcome> {
    const { authServer } = await this.#options.discovery.find(challenge)
    return authServer.isAssumed ? { kind: 'unsupported' } : LOGIN_FAILURES.noPrincipal()
  }

  #begin(
    principal: string | undefined,
    found: DiscoveredIssuer,
    challenge: BearerChallenge | undefined,
    record: TokenRecord | undefined,
  ): Promise<LoginNeeded> {
    const { begin, tokens } = this.#options
    const isSameIssuer = record?.issuer === found.authServer.issuer
    const scopes = chooseScopes({
      configured: this.#server.oauth?.scopes,
      challenge,
      supported: found.scopes,
      requestedBefore: isSameIssuer ? record?.requested : undefined,
      offered: found.authServer.scopes,
    })
    return beginLogin(begin, this.#server, tokens.ownerOf(principal), found, scopes)
  }

  /** Gets tokens without a browser; calls of one owner at the same time share them. A refusal is kept for a while. */
  #acquire(
    principal: string | undefined,
    found: DiscoveredIssuer,
    challenge: BearerChallenge | undefined,
  ): Promise<RefusalOutcome> {
    const owner = this.#options.tokens.ownerOf(principal)
    const refused = this.#refused.get(owner ?? '')
    if (refused && Date.now() < refused.until) return Promise.resolve(refused.outcome)
    const running = this.#acquiring.get(owner)
    if (running) return running
    const started = this.#acquireOnce(owner, found, challenge).finally(() => this.#acquiring.delete(owner))
    this.#acquiring.set(owner, started)
    return started
  }

  async #acquireOnce(
    owner: string | undefined,
    found: DiscoveredIssuer,
    challenge: BearerChallenge | undefined,
  ): Promise<RefusalOutcome> {
    const { tokens, begin } = this.#options
    const { oauth } = this.#server
    const { issuer } = found.authServer
    const scopes = chooseScopes({ configured: oauth?.scopes, challenge, supported: found.scopes })
    try {
      const record = await this.requestTokens(owner, found, scopes)
      await saveTokens(begin.store, tokens.keyOf(owner), record)
      tokens.put(owner, record)
      return { kind: 'retry' }
    } catch (error) {
      if (error instanceof SignInMissing) {
        const { issuer: idp } = error
        return beginSignIn(begin, this.#server, owner, found, { scopes, idp })
      }
      if (error instanceof TokenUnavailable) return LOGIN_FAILURES.issuerDownBefore(issuer)
      if (!(error instanceof TokenRefused)) throw error
      const outcome = LOGIN_FAILURES.grantRefused(issuer, error.error)
      this.#refused.set(owner ?? '', { outcome, until: Date.now() + REFUSED_MS })
      return outcome
    }
  }

  /** Tokens of a grant without a browser. Rejects as `requestMachineTokens` does, and with LoginProblem. */
  async requestTokens(
    owner: string | undefined,
    { authServer, resource, from }: DiscoveredIssuer,
    scopes: readonly string[],
  ): Promise<TokenRecord> {
    const { name, url, oauth } = this.#server
    if (!isMachine(oauth)) throw new TypeError('a browser is needed')
    const { issuer, tokenEndpoint, signingAlgorithms, revocationEndpoint } = authServer
    const client = configuredClient(oauth, authServer.authMethods)
    await this.#options.begin.registry.bind(name, oauth, issuer)
    const granted = await requestMachineTokens(this.#options.machine, oauth, {
      endpoint: { url: tokenEndpoint, issuer, signingAlgorithms, from },
      client,
      principal: owner,
      resource,
      scopes,
    })
    const now = Date.now()
    const stored: StoredClient | undefined = client && { kind: 'configured', id: client.id, method: client.method }
    return {
      ...{ server: name, url, principal: owner, issuer, tokenEndpoint, signingAlgorithms, revocationEndpoint },
      ...{ client: stored, resource, requested: scopes, granted: granted.scopes ?? scopes, access: granted.access },
      ...{ obtained: now, since: now },
      expires: granted.lifetimeMs === undefined ? undefined : now + granted.lifetimeMs,
    }
  }

  /** The tokens of a login that needed a sign-in only. Rejects as `requestTokens` does. */
  async requestFor({ principal, request }: LoginRecord): Promise<TokenRecord> {
    const found = await this.#options.discovery.find(await this.#challenge())
    return this.requestTokens(principal, found, request.scopes)
  }

  /** The client of a login, registered if it is not known. Rejects with LoginProblem, OAuthUnsupported or StateError. */
  async registerFor({ request }: LoginRecord): Promise<StoredClient> {
    const { discovery, begin } = this.#options
    return findClient(begin, this.#server, await discovery.find(await this.#challenge()), request.scopes)
  }

  /** The latest challenge of the server, which may name its metadata; another replica may have got it. */
  async #challenge(): Promise<BearerChallenge | undefined> {
    const isKnown = this.#asked && Date.now() < this.#asked.until
    return isKnown ? this.#asked?.challenge : fetchChallenge(this.#options.machine.fetch, this.#server.url)
  }

  #failure(error: unknown): RefusalOutcome {
    if (error instanceof LoginProblem) return error.failure
    if (error instanceof OAuthUnsupported) {
      this.#unsupportedUntil = Date.now() + UNSUPPORTED_MS
      return { kind: 'unsupported' }
    }
    if (error instanceof StateError) return LOGIN_FAILURES.storeDown()
    this.#options.log.error({ err: error, server: this.#server.name }, 'login failed inside the gateway')
    return LOGIN_FAILURES.internal()
  }
}

/** A 401 is, unless it asks for another scheme; a 403 if it says so. */
const isAboutTokens = ({ status, wwwAuthenticate }: TokenRefusal, challenge: BearerChallenge | undefined): boolean => {
  if (status === 403) return challenge?.error === 'insufficient_scope'
  return status === 401 && (challenge !== undefined || wwwAuthenticate === undefined || wwwAuthenticate.length === 0)
}
