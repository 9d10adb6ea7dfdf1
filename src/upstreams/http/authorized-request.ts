import type { IncomingHttpHeaders } from 'node:http'
import type { TokenRefusal } from '../../protocol/oauth.ts'
import type { FailureDetails } from '../failures.ts'
import { namesUnknownSession } from '../session/session-gone.ts'
import type { HttpRequest, PendingRequest, ResponseReceiver } from './http-client.ts'
import type { Redirect } from './redirect.ts'

/** The access tokens with which one upstream calls its server. */
export interface BearerTokens {
  /** The token to send; undefined: none. A promise only while a token is read or refreshed. Never rejects. */
  current(): string | undefined | Promise<string | undefined>
  /** The server refused a request with a token, or one without. Never rejects. */
  refused(refusal: TokenRefusal): Promise<AfterRefusal>
}

/** What follows a refusal: the request is sent with another token, the caller gets the refusal, or the request fails. */
export type AfterRefusal = 'retry' | 'pass' | FailureDetails

const MOST_REPEATS = 2 // of one request; then the server refuses every token it is given
const HELD_BYTES = 64 * 1024 // of the body of a refusal
const INSUFFICIENT = /\binsufficient_scope\b/

const KEEPS_REFUSING: FailureDetails = {
  reason: 'upstream_auth',
  text: 'refuses every access token that its authorization server issues: log in again, or check its "oauth"',
}

/** A refusal that is held back until it is known whether another token helps. */
interface HeldRefusal {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly from: Redirect
  readonly sent: readonly string[]
  readonly body: Buffer[]
  bytes: number
}

/**
 * Sends a request with an access token. If the server refuses it, the same bytes are sent again as soon as there is
 * another token. Otherwise it fails: the server has not acted on it.
 */
export class AuthorizedRequest implements PendingRequest, ResponseReceiver {
  readonly #send: (request: HttpRequest, receiver: ResponseReceiver) => PendingRequest
  readonly #tokens: BearerTokens
  readonly #request: HttpRequest
  readonly #receiver: ResponseReceiver
  #sending: PendingRequest | undefined
  #token: string | undefined
  #held: HeldRefusal | undefined
  #repeats = 0
  #isAborted = false

  constructor(
    send: (request: HttpRequest, receiver: ResponseReceiver) => PendingRequest,
    tokens: BearerTokens,
    request: HttpRequest,
    receiver: ResponseReceiver,
  ) {
    this.#send = send
    this.#tokens = tokens
    this.#request = request
    this.#receiver = receiver
  }

  start(): this {
    const token = this.#tokens.current()
    if (token instanceof Promise) void token.then(given => this.#sendWith(given))
    else this.#sendWith(token)
    return this
  }

  abort(): void {
    this.#isAborted = true
    this.#sending?.abort()
  }

  status(status: number, headers: IncomingHttpHeaders, from: Redirect, sent: readonly string[]): void {
    // Elsewhere the token was not sent: the refusal says nothing about it, and its challenge is not that of the server.
    if (from.keepsSecrets && isRefusal(status, headers))
      this.#held = { status, headers, from, sent, body: [], bytes: 0 }
    else this.#receiver.status(status, headers, from, sent)
  }

  bytes(chunk: Buffer): void | Promise<void> {
    if (!this.#held) return this.#receiver.bytes(chunk)
    this.#held.bytes += chunk.length
    if (this.#held.bytes <= HELD_BYTES) return void this.#held.body.push(chunk)
    this.#sending?.abort() // it may never end
    this.end()
  }

  end(): void {
    if (this.#held) void this.#decide(this.#held)
    else this.#receiver.end()
  }

  failed(failure: FailureDetails): void {
    if (this.#held)
      this.end() // the server has refused the request, even if it broke off its explanation
    else this.#receiver.failed(failure)
  }

  #sendWith(token: string | undefined): void {
    if (this.#isAborted) return
    this.#token = token
    const { headers } = this.#request
    const request =
      token === undefined
        ? this.#request
        : { ...this.#request, headers: [...headers, 'authorization', `Bearer ${token}`] }
    this.#sending = this.#send(request, this)
  }

  async #decide(held: HeldRefusal): Promise<void> {
    const { status, headers } = held
    if (headers['www-authenticate'] === undefined && namesUnknownSession(Buffer.concat(held.body).toString()))
      return this.#passOn(held)
    const outcome = await this.#tokens.refused({
      token: this.#token,
      status,
      wwwAuthenticate: headers['www-authenticate'],
    })
    if (this.#isAborted) return
    if (outcome === 'pass') return this.#passOn(held)
    if (outcome !== 'retry') return this.#receiver.failed(outcome)
    if (++this.#repeats > MOST_REPEATS) return this.#receiver.failed(KEEPS_REFUSING)
    this.#held = undefined
    this.start()
  }

  #passOn({ status, headers, from, sent, body }: HeldRefusal): void {
    this.#receiver.status(status, headers, from, sent)
    for (const chunk of body) void this.#receiver.bytes(chunk)
    this.#receiver.end()
  }
}

const isRefusal = (status: number, headers: IncomingHttpHeaders): boolean =>
  status === 401 || (status === 403 && INSUFFICIENT.test(headers['www-authenticate'] ?? ''))
