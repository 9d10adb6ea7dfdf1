import type { ServerResponse } from 'node:http'
import type { Admission, RequestInfo } from '../protocol/admission.ts'
import { absentPolicy, type Policy } from '../protocol/policy.ts'
import { LONGEST_TIMER_MS } from '../std/time.ts'
import type { Log } from '../telemetry/log.ts'
import { FailedLogins } from './failed-logins.ts'
import { LastUsed } from './last-used.ts'
import { OpenConnections } from './open-connections.ts'
import { invalidToken, limitedToken, noToken, otherWorkspace, tooManyFailures } from './refusals.ts'
import { canAccess, EVERY_WORKSPACE, findToken, isExpired, type Token } from './token.ts'
import { TokenStore } from './token-store.ts'

interface Options {
  readonly data: string | undefined // the data directory
  readonly required: boolean // a token is needed even while there is none
  readonly own: Token // good besides those in the data directory
  readonly policyOf: PolicyOf
  readonly log: Log
}

/** The policy of that name as the configuration has it now. */
export type PolicyOf = (name: string) => Policy | undefined

/** Asks for tokens. Whoever's token is revoked or expires is out from that moment, open streams included. */
export class Authenticator {
  readonly #options: Options
  readonly #store: TokenStore | undefined
  readonly #lastUsed: LastUsed | undefined
  readonly #connections = new OpenConnections()
  readonly #failures: FailedLogins
  #tokens: ReadonlyMap<string, Token> = new Map() // by hash
  #nextExpiry: NodeJS.Timeout | undefined
  #complained = new Set<string>() // tokens whose policy was not to be found

  static async open(options: Options): Promise<Authenticator> {
    const { data, log } = options
    return new Authenticator(options, data === undefined ? undefined : await TokenStore.open(data, log))
  }

  private constructor(options: Options, store: TokenStore | undefined) {
    const { data, log } = options
    this.#options = options
    this.#failures = new FailedLogins(log)
    this.#store = store
    this.#lastUsed = data === undefined ? undefined : new LastUsed(data, id => this.#knows(id), log)
    store?.onChange(() => this.#update())
    this.#update()
  }

  /** Whether a token is needed now. */
  get isRequired(): boolean {
    return this.#options.required || (this.#store?.exists ?? false)
  }

  check(request: RequestInfo, workspace: string, response?: ServerResponse): Admission {
    const token = this.#identify(request, workspace)
    if ('kind' in token) return token
    if (!canAccess(token, workspace))
      return this.#turnAway(otherWorkspace(request, workspace), request, workspace, token)
    this.#holdResponse(request, token, response)
    if (token.policy === undefined) return { kind: 'in', principal: token.principal }
    return { kind: 'in', principal: token.principal, policy: this.#policyOf(token, token.policy) }
  }

  /** Whether a request may see the state of the whole gateway: only with a token that nothing limits. */
  checkOperator(request: RequestInfo): Admission {
    const token = this.#identify(request, EVERY_WORKSPACE)
    if ('kind' in token) return token
    if (!canAccess(token, EVERY_WORKSPACE) || token.policy !== undefined) return limitedToken(request)
    return { kind: 'in', principal: token.principal }
  }

  /** Records a request admitted without a token; it ends when the first token is created. */
  trackAnonymous(request: RequestInfo, response?: ServerResponse): void {
    this.#holdResponse(request, this.#tokenOf(request), response)
  }

  /** Calls `end` when the token of this request is no longer good. */
  onRevoked(request: RequestInfo, end: () => void): () => void {
    return this.#connections.hold(this.#tokenOf(request), end)
  }

  /** What `check` would say, without a trace: for lists of what a caller may see. */
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

  /** A policy nobody knows any more allows nothing: what it had forbidden must not come back with its name gone. */
  #policyOf({ id }: Token, name: string): Policy {
    const policy = this.#options.policyOf(name)
    if (policy) {
      this.#complained.delete(id)
      return policy
    }
    if (!this.#complained.has(id)) {
      const fields = { security: true, token: id, policy: name }
      this.#options.log.warn(fields, 'the policy of a token is not in the configuration: nothing is allowed')
      this.#complained.add(id)
    }
    return absentPolicy(name)
  }

  /** The token of a request, or why it has none that is good. */
  #identify(request: RequestInfo, workspace: string): Token | Refusal {
    const secret = bearerOf(request)
    if (secret === undefined) return noToken(request)
    const token = findToken(this.#tokens, secret)
    const now = Date.now()
    if (token && !isExpired(token, now)) {
      this.#lastUsed?.record(token.id, now)
      return token
    }
    const why = token ? 'The token has expired' : 'The token is unknown or revoked'
    return this.#turnAway(invalidToken(request, why), request, workspace, token)
  }

  #turnAway(refusal: Refusal, request: RequestInfo, workspace: string, token: Token | undefined): Refusal {
    const rejection = { reason: refusal.error.message, workspace, token: token?.id }
    const waitMs = this.#failures.record(request.socket.remoteAddress, rejection)
    return waitMs === undefined ? refusal : tooManyFailures(request, waitMs)
  }

  /** The token of a request without a judgement; while none is needed, only the process's own is known. */
  #tokenOf(request: RequestInfo): Token | undefined {
    const secret = bearerOf(request)
    return secret === undefined ? undefined : findToken(this.#tokens, secret)
  }

  #holdResponse({ socket }: RequestInfo, token: Token | undefined, response: ServerResponse | undefined): void {
    if (response && !socket.destroyed) this.#connections.holdResponse(token, response)
  }

  #knows(id: string): boolean {
    return [...(this.#store?.tokens.values() ?? [])].some(token => token.id === id)
  }

  #update(): void {
    const { own } = this.#options
    this.#tokens = new Map([...(this.#store?.tokens ?? []), [own.hash, own]])
    this.#review()
  }

  /** Cuts off whoever is out, and looks again when the next token expires. */
  #review(): void {
    const now = Date.now()
    this.#connections.review(held => {
      if (!held) return !this.isRequired
      const token = this.#tokens.get(held.hash)
      return token !== undefined && !isExpired(token, now)
    })
    clearTimeout(this.#nextExpiry)
    const ends = [...this.#tokens.values()].map(({ expires }) => Date.parse(expires ?? '')).filter(end => end > now)
    if (ends.length === 0) return
    this.#nextExpiry = setTimeout(() => this.#review(), Math.min(Math.min(...ends) - now, LONGEST_TIMER_MS))
    this.#nextExpiry.unref()
  }
}

type Refusal = Admission & { readonly kind: 'out' }

const bearerOf = ({ headers: { authorization } }: RequestInfo): string | undefined =>
  authorization === undefined ? undefined : /^Bearer +(\S+) *$/i.exec(authorization)?.[1]
