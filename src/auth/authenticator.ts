import type { ServerResponse } from 'node:http'
import type { Admission, RequestInfo } from '../protocol/admission.ts'
import { absentPolicy, type Policy } from '../protocol/policy.ts'
import { LONGEST_TIMER_MS } from '../std/time.ts'
import type { Log } from '../telemetry/log.ts'
import { FailedLogins } from './failed-logins.ts'
import { LastUsed } from './last-used.ts'
import {
  type AuthRejection,
  invalidToken,
  missingToken,
  restrictedToken,
  tooManyFailures,
  wrongWorkspace,
} from './rejections.ts'
import { canAccess, EVERY_WORKSPACE, findToken, isExpired, type Token } from './token.ts'
import { TokenStore } from './token-store.ts'

/** Authenticates requests by bearer token. A token that is revoked or expires ends everything opened with it, at once. */
export class Authenticator {
  readonly #options: AuthenticatorOptions
  readonly #store: TokenStore | undefined
  readonly #lastUsed: LastUsed | undefined
  readonly #connections = new OpenConnections()
  readonly #failures: FailedLogins
  readonly #warnedTokens = new Set<string>() // ids of tokens whose policy is not in the configuration
  #tokens: ReadonlyMap<string, Token> = new Map() // by hash
  #nextExpiry: NodeJS.Timeout | undefined

  static async open(options: AuthenticatorOptions): Promise<Authenticator> {
    const { data, log } = options
    return new Authenticator(options, data === undefined ? undefined : await TokenStore.open(data, log))
  }

  private constructor(options: AuthenticatorOptions, store: TokenStore | undefined) {
    const { data, log } = options
    this.#options = options
    this.#failures = new FailedLogins(log)
    this.#store = store
    this.#lastUsed = data === undefined ? undefined : new LastUsed(data, id => this.#isStored(id), log)
    store?.onChange(() => this.#update())
    this.#update()
  }

  /** Whether a token is needed now. */
  get isRequired(): boolean {
    return this.#options.required || (this.#store?.exists ?? false)
  }

  check(request: RequestInfo, workspace: string, response?: ServerResponse): Admission {
    const token = this.#authenticate(request, workspace)
    if ('kind' in token) return token
    if (!canAccess(token, workspace))
      return this.#recordFailure(wrongWorkspace(request, workspace), request, workspace, token)
    this.#trackResponse(request, token, response)
    if (token.policy === undefined) return { kind: 'in', principal: token.principal }
    return { kind: 'in', principal: token.principal, policy: this.#policyOf(token, token.policy) }
  }

  /** Whether a request may see the state of the whole gateway: only with an unrestricted token. */
  checkOperator(request: RequestInfo): Admission {
    const token = this.#authenticate(request, EVERY_WORKSPACE)
    if ('kind' in token) return token
    if (!canAccess(token, EVERY_WORKSPACE) || token.policy !== undefined) return restrictedToken(request)
    return { kind: 'in', principal: token.principal }
  }

  /** Tracks a request admitted without a token; its connection is destroyed when the first token is created. */
  trackAnonymous(request: RequestInfo, response?: ServerResponse): void {
    this.#trackResponse(request, this.#tokenOf(request), response)
  }

  /** Calls `end` when the token of this request is no longer valid. */
  onRevoked(request: RequestInfo, end: () => void): () => void {
    return this.#connections.add(this.#tokenOf(request), end)
  }

  /** Whether `check` would admit a request; counts and logs nothing. */
  canAccess(request: RequestInfo, workspace: string): boolean {
    const token = this.#tokenOf(request)
    return token !== undefined && !isExpired(token, Date.now()) && canAccess(token, workspace)
  }

  async close(): Promise<void> {
    this.#store?.close()
    this.#failures.close()
    clearTimeout(this.#nextExpiry)
    await this.#lastUsed?.close()
  }

  /** A policy that was removed from the configuration allows nothing, so that removing it never grants more. */
  #policyOf({ id }: Token, name: string): Policy {
    const policy = this.#options.policyOf(name)
    if (policy) {
      this.#warnedTokens.delete(id)
      return policy
    }
    if (!this.#warnedTokens.has(id)) {
      const fields = { security: true, token: id, policy: name }
      this.#options.log.warn(fields, 'the policy of a token is not in the configuration: nothing is allowed')
      this.#warnedTokens.add(id)
    }
    return absentPolicy(name)
  }

  /** The valid token of a request, or the rejection. */
  #authenticate(request: RequestInfo, workspace: string): Token | AuthRejection {
    const secret = bearerOf(request)
    if (secret === undefined) return missingToken(request)
    const token = findToken(this.#tokens, secret)
    const now = Date.now()
    if (token && !isExpired(token, now)) {
      this.#lastUsed?.record(token.id, now)
      return token
    }
    const reason = token ? 'The token has expired' : 'The token is unknown or revoked'
    return this.#recordFailure(invalidToken(request, reason), request, workspace, token)
  }

  #recordFailure(
    rejection: AuthRejection,
    request: RequestInfo,
    workspace: string,
    token: Token | undefined,
  ): AuthRejection {
    const fields = { reason: rejection.error.message, workspace, token: token?.id }
    const waitMs = this.#failures.record(request.socket.remoteAddress, fields)
    return waitMs === undefined ? rejection : tooManyFailures(request, waitMs)
  }

  /** The token of a request, valid or not; while none is required, only the local token is known. */
  #tokenOf(request: RequestInfo): Token | undefined {
    const secret = bearerOf(request)
    return secret === undefined ? undefined : findToken(this.#tokens, secret)
  }

  #trackResponse({ socket }: RequestInfo, token: Token | undefined, response: ServerResponse | undefined): void {
    if (response && !socket.destroyed) this.#connections.addResponse(token, response)
  }

  #isStored(id: string): boolean {
    return [...(this.#store?.tokens.values() ?? [])].some(token => token.id === id)
  }

  #update(): void {
    const { localToken } = this.#options
    this.#tokens = new Map([...(this.#store?.tokens ?? []), [localToken.hash, localToken]])
    this.#endInvalid()
  }

  /** Ends everything whose token is no longer valid; runs again when the next token expires. */
  #endInvalid(): void {
    const now = Date.now()
    this.#connections.endInvalid(used => {
      if (!used) return !this.isRequired
      const token = this.#tokens.get(used.hash)
      return token !== undefined && !isExpired(token, now)
    })
    clearTimeout(this.#nextExpiry)
    const ends = [...this.#tokens.values()].map(({ expires }) => Date.parse(expires ?? '')).filter(end => end > now)
    if (ends.length === 0) return
    const delayMs = Math.min(Math.min(...ends) - now, LONGEST_TIMER_MS)
    this.#nextExpiry = setTimeout(() => this.#endInvalid(), delayMs).unref()
  }
}

interface AuthenticatorOptions {
  readonly data: string | undefined // the data directory
  readonly required: boolean // a token is needed even while there is none
  readonly localToken: Token // valid besides those in the data directory
  readonly policyOf: PolicyOf
  readonly log: Log
}

/** The policy of that name in the current configuration. */
export type PolicyOf = (name: string) => Policy | undefined

const bearerOf = ({ headers: { authorization } }: RequestInfo): string | undefined =>
  authorization === undefined ? undefined : /^Bearer +(\S+) *$/i.exec(authorization)?.[1]

/** The sessions and responses that are open, with their tokens; undefined if they were admitted while none was needed. */
class OpenConnections {
  readonly #sessions = new Map<() => void, Token | undefined>() // by the function that ends it
  readonly #responses = new Map<ServerResponse, Token | undefined>()
  readonly #onClose: (this: ServerResponse) => void

  constructor() {
    const responses = this.#responses
    // One listener for all responses: this runs for every request.
    this.#onClose = function () {
      responses.delete(this)
    }
  }

  /** `end` is called when the token becomes invalid, unless the returned function was called before. */
  add(token: Token | undefined, end: () => void): () => void {
    this.#sessions.set(end, token)
    return () => this.#sessions.delete(end)
  }

  /** The connection of a response is destroyed when the token becomes invalid, unless the response has closed before. */
  addResponse(token: Token | undefined, response: ServerResponse): void {
    this.#responses.set(response, token)
    response.on('close', this.#onClose)
  }

  endInvalid(isValid: (token: Token | undefined) => boolean): void {
    for (const [end, token] of [...this.#sessions]) if (!isValid(token) && this.#sessions.delete(end)) end()
    for (const [{ req }, token] of [...this.#responses]) if (!isValid(token)) req.socket.destroy()
  }
}
