import type {
  ForgottenLogin,
  LoginFailed,
  LoginNeeded,
  LoginPage,
  LoginStatus,
  LoginStep,
  Logins,
  LoginVisitor,
  StoredLogin,
} from '../../protocol/oauth.ts'
import type { Claim, StateStore } from '../../stores/state/state-store.ts'
import type { WriteAuditEvent } from '../../telemetry/audit-log.ts'
import type { Log } from '../../telemetry/log.ts'
import type { GuardedFetch } from '../fetch/guarded-fetch.ts'
import { authorizationUrl, createRandomText, readAuthorizationResponse } from './authorize.ts'
import { isCallback } from './callback.ts'
import type { Credentials } from './credentials.ts'
import type { LoginChanges } from './login-changes.ts'
import { LOGIN_PAGES } from './login-pages.ts'
import {
  decodeLogin,
  hashText,
  isLinkSecret,
  type LoginRecord,
  type OpenedLogin,
  seemsLost,
  splitLoginId,
  withOpened,
} from './login-records.ts'
import type { LoginSteps } from './login-steps.ts'
import { SignInMissing } from './machine.ts'
import { LOGIN_FAILURES, LoginProblem } from './messages.ts'
import { redeemCode, revokeTokens } from './redeem.ts'
import { type ClientRegistry, OAuthUnsupported } from './register.ts'
import { isSharedLogin, type LoginServer } from './server-tokens.ts'
import { decodeTokens, encodeRecord, saveTokens, type TokenRecord, tokenKey } from './token-records.ts'
import { TokenRefused, TokenUnavailable } from './token-request.ts'

interface LoginsOptions {
  readonly store: StateStore
  readonly fetch: GuardedFetch
  readonly steps: LoginSteps
  readonly registry: ClientRegistry
  readonly changes: LoginChanges
  /** A server of the current configuration that uses OAuth. */
  readonly serverOf: (name: string) => LoginServer | undefined
  readonly credentialsOf: (server: LoginServer) => Credentials
  readonly writeAudit?: WriteAuditEvent | undefined // undefined: there is no audit log
  readonly log: Log
}

const MOST_LISTED = 5000
const ATTEMPTS = 10
const COOKIE = /^[A-Za-z0-9_-]{43}$/

/** The logins of users at servers. Every step may happen at another replica: all that it needs is in the store. */
export class ServerLogins implements Logins {
  readonly #options: LoginsOptions

  constructor(options: LoginsOptions) {
    this.#options = options
  }

  async begin(name: string, principal: string | undefined): Promise<LoginNeeded | LoginFailed> {
    const { serverOf, credentialsOf, log } = this.#options
    const server = serverOf(name)
    if (!server) return LOGIN_FAILURES.noOAuth()
    try {
      const outcome = await credentialsOf(server).begin(principal)
      if (outcome.kind === 'login' || outcome.kind === 'failed') return outcome
      return outcome.kind === 'retry' ? LOGIN_FAILURES.noBrowser() : LOGIN_FAILURES.noOAuth()
    } catch (error) {
      if (error instanceof LoginProblem) return error.failure
      if (error instanceof OAuthUnsupported) return LOGIN_FAILURES.noOffer()
      log.warn({ err: error, server: name }, 'login could not be started')
      return LOGIN_FAILURES.internal()
    }
  }

  open(id: string, visitor: LoginVisitor): Promise<LoginPage> {
    return this.#page(() => this.#open(id, visitor))
  }

  finish(address: URL, visitor: LoginVisitor): Promise<LoginPage> {
    return this.#page(() => this.#finish(address, visitor))
  }

  async status(name: string, principal: string | undefined): Promise<LoginStatus> {
    const server = this.#options.serverOf(name)
    if (!server) return { kind: 'unneeded' }
    const found = decodeTokens(await this.#options.store.read('token', this.#keyOf(server, principal)))
    return found?.url === server.url ? describeTokens(found) : { kind: 'missing' }
  }

  async all(): Promise<readonly StoredLogin[]> {
    const records = await this.#options.store.list('token', MOST_LISTED)
    return records.flatMap(held => {
      const found = decodeTokens(held)
      if (!found || this.#options.serverOf(found.server)?.url !== found.url) return []
      return { server: found.server, principal: found.principal, ...describeTokens(found) }
    })
  }

  onChanged(listener: Parameters<Logins['onChanged']>[0]): () => void {
    const { changes, log } = this.#options
    changes.follow().catch((error: unknown) => log.debug({ err: error }, 'logins could not be followed'))
    return changes.onChange(listener)
  }

  steps(name: string): readonly LoginStep[] {
    const server = this.#options.serverOf(name)
    return server ? this.#options.steps.of(server.url, server.oauth?.issuer) : []
  }

  async forget(name: string, principal: string | undefined): Promise<ForgottenLogin> {
    const { store, changes, serverOf, fetch, writeAudit, log } = this.#options
    const server = serverOf(name) ?? { name, url: '' }
    const taken = await store.take('token', this.#keyOf(server, principal))
    const record = taken.kind === 'mine' ? decodeTokens(taken.held) : undefined
    if (taken.kind !== 'mine') return { wasPresent: false, isRevoked: false }
    await store.remove(taken.held)
    const owner = isSharedLogin(server.oauth) ? undefined : principal
    await changes.publish({ server: name, principal: owner })
    log.info({ server: name, principal: owner }, 'login removed')
    writeAudit?.('server_logout', { server: name, principal: owner ?? null, issuer: record?.issuer })
    if (!record) return { wasPresent: true, isRevoked: false }
    const from = server.oauth?.issuer ?? record.url
    return { wasPresent: true, isRevoked: await revokeTokens({ fetch, oauth: server.oauth, from }, record) }
  }

  /** A browser gets a page, whatever happens. */
  async #page(work: () => Promise<LoginPage>): Promise<LoginPage> {
    try {
      return await work()
    } catch (error) {
      this.#options.log.error({ err: error }, 'login failed inside the gateway')
      return LOGIN_PAGES.broken()
    }
  }

  async #open(id: string, visitor: LoginVisitor): Promise<LoginPage> {
    const { key, rest } = splitLoginId(id)
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const taken = await this.#options.store.take('login', key)
      const login = taken.kind === 'mine' ? decodeLogin(taken.held) : undefined
      if (taken.kind !== 'mine' || !login || !isLinkSecret(login, rest)) return LOGIN_PAGES.unknown()
      const refusal = this.#refusal(login, visitor)
      if (refusal) return refusal
      if (login.isDone) return LOGIN_PAGES.done(login.server)
      if (login.request.idp !== undefined) return this.#exchange(key, login, login.request.idp)
      const current = seemsLost(login, Date.now()) ? await this.#withNewClient(login) : login
      const page = await this.#redirect(taken.held, current, visitor)
      if (page) return page // otherwise it was opened twice at the same time
    }
    return LOGIN_PAGES.broken()
  }

  /** The login with a client that is registered now; the same one if that is not possible. */
  async #withNewClient(login: LoginRecord): Promise<LoginRecord> {
    const { registry, serverOf, credentialsOf, log } = this.#options
    const { issuer, redirectUri, client } = login.request
    const server = serverOf(login.server)
    const tried = { ...login, hasNewClient: true }
    if (!server || !client || !(await registry.forget(issuer, redirectUri, client.id))) return tried
    try {
      const renewed = await credentialsOf(server).registerFor(login)
      log.info({ server: login.server, issuer }, 'registered again: the first browser did not come back')
      return { ...tried, request: { ...login.request, client: renewed } }
    } catch (error) {
      if (!(error instanceof LoginProblem || error instanceof OAuthUnsupported)) throw error
      return tried
    }
  }

  /** Sends a browser to the authorization server; undefined if the record has changed meanwhile. */
  async #redirect(claim: Claim, login: LoginRecord, { cookie: known }: LoginVisitor): Promise<LoginPage | undefined> {
    const { request } = login
    const cookie = known !== undefined && COOKIE.test(known) ? known : createRandomText()
    const [state, verifier] = [claim.id + createRandomText(), createRandomText()]
    const { client } = request
    const hashes = { stateHash: hashText(state), cookieHash: hashText(cookie) }
    const opened: OpenedLogin = { ...hashes, verifier, client, at: Date.now() }
    if (!(await this.#write(claim, withOpened(login, opened)))) return undefined
    const { authorizationEndpoint: endpoint, redirectUri, scopes, resource } = request
    const authorization = { endpoint, clientId: client?.id ?? '', redirectUri, scopes, resource }
    const url = authorizationUrl(authorization, state, verifier)
    this.#options.steps.redirected(login.url, 'authorization', url)
    return { kind: 'redirect', url, cookie }
  }

  async #finish(address: URL, visitor: LoginVisitor): Promise<LoginPage> {
    const { searchParams: query } = address
    const state = query.get('state') ?? ''
    const { key } = splitLoginId(state)
    const taken = await this.#options.store.take('login', key)
    const login = taken.kind === 'mine' ? decodeLogin(taken.held) : undefined
    const opened = login?.opened.find(({ stateHash }) => stateHash === hashText(state))
    if (taken.kind !== 'mine' || !login || !opened) return LOGIN_PAGES.unknown()
    this.#options.steps.redirected(login.url, 'callback', address.href)
    const isSameBrowser = visitor.isOwner || hashText(visitor.cookie ?? '') === opened.cookieHash
    if (!isSameBrowser) return LOGIN_PAGES.otherBrowser()
    // The cookie proves who opened the link, so a sign-in that has ended meanwhile is not needed again.
    const refusal = visitor.principal === undefined ? undefined : this.#refusal(login, visitor)
    if (refusal) return refusal
    const response = readAuthorizationResponse(query, login.request)
    const isForeign = response.kind === 'foreign' || !isCallback(address, login.request.redirectUri)
    if (isForeign) return LOGIN_PAGES.foreign(login.request.issuer)
    if (response.kind === 'incomplete') return LOGIN_PAGES.incomplete(login.request.issuer)
    // A state is used once, whatever comes of it.
    const used = { ...login, opened: login.opened.filter(each => each !== opened) }
    if (!(await this.#write(taken.held, used))) return LOGIN_PAGES.unknown()
    if (response.kind === 'denied') return LOGIN_PAGES.denied(login.request.issuer, response.error, response.quoted)
    return this.#redeem(key, used, response.code, opened)
  }

  /** Why a visitor may not use a login; undefined if it may. */
  #refusal({ server, principal, request }: LoginRecord, visitor: LoginVisitor): LoginPage | undefined {
    if (!this.#options.serverOf(server)) return LOGIN_PAGES.noServer(server)
    if (visitor.isOwner) return undefined
    if (visitor.principal === undefined) return { kind: 'sign_in', issuer: request.idp }
    // A login of the whole gateway has no principal: any signed-in user may do it.
    const isOther = principal !== undefined && principal !== visitor.principal
    return isOther ? LOGIN_PAGES.otherUser(visitor.principal) : undefined
  }

  async #redeem(key: string, login: LoginRecord, code: string, opened: OpenedLogin): Promise<LoginPage> {
    const { serverOf, fetch, registry } = this.#options
    const server = serverOf(login.server)
    if (server?.url !== login.url) return LOGIN_PAGES.noServer(login.server)
    const { issuer, redirectUri } = login.request
    const { client } = opened
    const from = server.oauth?.issuer ?? server.url
    try {
      return await this.#complete(
        key,
        login,
        await redeemCode({ fetch, oauth: server.oauth, from }, login, code, opened),
      )
    } catch (error) {
      if (error instanceof TokenUnavailable) return LOGIN_PAGES.unavailable(issuer)
      if (!(error instanceof TokenRefused)) throw error
      if (error.error === 'invalid_client' && client?.kind === 'registered') {
        await registry.forget(issuer, redirectUri, client.id)
        await this.#change(key, undefined) // the next link is for another client
      }
      return LOGIN_PAGES.denied(issuer, error.error, error.quoted)
    }
  }

  /** A sign-in at an issuer of the configuration is enough; without one, the visitor is sent there. */
  async #exchange(key: string, login: LoginRecord, idp: string): Promise<LoginPage> {
    const { serverOf, credentialsOf } = this.#options
    const server = serverOf(login.server)
    if (server?.url !== login.url) return LOGIN_PAGES.noServer(login.server)
    const { issuer } = login.request
    try {
      const tokens = await credentialsOf(server).requestFor(login)
      return await this.#complete(key, login, tokens)
    } catch (error) {
      if (error instanceof SignInMissing) return { kind: 'sign_in', issuer: idp }
      if (error instanceof TokenUnavailable || error instanceof LoginProblem) return LOGIN_PAGES.unavailable(issuer)
      if (!(error instanceof TokenRefused)) throw error
      return LOGIN_PAGES.denied(issuer, error.error, error.quoted)
    }
  }

  /** Stores the tokens before any call uses them, and wakes the calls that wait. */
  async #complete(key: string, login: LoginRecord, tokens: TokenRecord): Promise<LoginPage> {
    const { store, changes, writeAudit, log } = this.#options
    const { server, principal } = login
    await saveTokens(store, tokenKey(server, principal), tokens)
    await this.#change(key, { ...login, isDone: true })
    const { issuer, granted: scopes } = tokens
    log.info({ server, principal, issuer, scopes }, 'user logged in to a server')
    writeAudit?.('server_login', { server, principal: principal ?? null, issuer, scopes })
    await changes.publish({ server, principal })
    return LOGIN_PAGES.done(server)
  }

  /** Writes or removes a login; if that fails, it merely stays open until it expires. */
  async #change(key: string, login: LoginRecord | undefined): Promise<void> {
    const taken = await this.#options.store.take('login', key)
    if (taken.kind !== 'mine') return
    if (login) await this.#write(taken.held, login)
    else await this.#options.store.remove(taken.held)
  }

  #write(claim: Claim, login: LoginRecord): Promise<boolean> {
    return this.#options.store.write(claim, encodeRecord(login), { expires: login.expires })
  }

  #keyOf({ name, oauth }: LoginServer, principal: string | undefined): string {
    return tokenKey(name, isSharedLogin(oauth) ? undefined : principal)
  }
}

const describeTokens = (found: TokenRecord): Extract<LoginStatus, { readonly kind: 'present' }> => {
  const { issuer, granted: scopes, since, expires, refresh } = found
  return { kind: 'present', issuer, scopes, since, expires, canRefresh: refresh !== undefined }
}
