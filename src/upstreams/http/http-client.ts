import type { IncomingHttpHeaders } from 'node:http'
import type { Dispatcher } from 'undici'
import type { Log } from '../../telemetry/log.ts'
import type { ByteText } from '../../wire/json-rpc.ts'
import type { DeadlineEntry, Deadlines } from '../deadlines.ts'
import type { FailureDetails, FailureReason } from '../failures.ts'
import { AuthorizedRequest, type BearerTokens } from './authorized-request.ts'
import { type ConnectionOptions, Connections } from './connections.ts'
import type { DispatchController, DispatchHandler } from './dispatch.ts'
import { failureOfError, type RequestPhase } from './http-failures.ts'
import { type HttpTarget, isCrossOrigin, type Redirect, resolveRedirect, withoutSecretHeaders } from './redirect.ts'

/** One HTTP request; `headers` is flat: name, value, name, value. */
export interface HttpRequest {
  readonly method: Dispatcher.HttpMethod
  readonly target: HttpTarget
  readonly headers: readonly string[]
  readonly body: Buffer | ByteText | null
  readonly responseTimeouts?: ResponseTimeouts | undefined // absent: the sender has a deadline of its own
  readonly isLongLived?: boolean // a stream that stays open
  readonly isOneOff?: boolean // of an API: every URL is another, so no redirect is remembered, and reading follows all of them
}

/** How long the server may be silent before and during its response; 0: without a limit. */
export interface ResponseTimeouts {
  readonly headersMs: number
  readonly bodyMs: number
}

/** Receives a response. Either `end` or `failed` is called last, unless the request is aborted. */
export interface ResponseReceiver {
  /** `from` is the target after redirects, `sent` the headers of the request. */
  status(status: number, headers: IncomingHttpHeaders, from: Redirect, sent: readonly string[]): void
  /** Reading pauses until a returned promise settles. */
  bytes(chunk: Buffer): void | Promise<void>
  end(): void
  failed(failure: FailureDetails): void
}

/** After `abort` nothing more is delivered to the receiver. */
export interface PendingRequest {
  abort(): void
}

interface HttpClientOptions extends ConnectionOptions {
  readonly secretHeaders: Iterable<string> // names of headers for the configured origin only
  readonly allowsCrossOrigin?: boolean | undefined // follow redirects to other origins
  readonly access?: { readonly origin: string; readonly tokens: BearerTokens } | undefined // sent to that origin only
  readonly deadlines: Deadlines
  readonly log: Log
}

const MAX_REDIRECTS = 5
const SHOWN_CHARACTERS = 200 // of a location
const ALWAYS_SECRET = ['authorization', 'cookie', 'proxy-authorization']
const ABORTED = Object.assign(new Error('aborted'), { code: 'ABORTED' })
/** After these a permanent redirect is no longer used. */
const UNUSABLE_REDIRECT: ReadonlySet<FailureReason> = new Set(['upstream_unreachable', 'upstream_redirect'])
const NEVER = Number.POSITIVE_INFINITY

/** Sends HTTP requests to one server and follows its redirects. */
export class HttpClient {
  readonly deadlines: Deadlines
  readonly log: Log
  readonly #secretHeaders: ReadonlySet<string>
  readonly #connections: Connections
  readonly #allowsCrossOrigin: boolean
  readonly #access: HttpClientOptions['access']
  readonly #permanentRedirects = new Map<string, Redirect>() // by URL
  #pending = 0
  #closing: Promise<void> | undefined

  constructor(options: HttpClientOptions) {
    this.deadlines = options.deadlines
    this.log = options.log
    this.#secretHeaders = new Set([...ALWAYS_SECRET, ...[...options.secretHeaders].map(name => name.toLowerCase())])
    this.#connections = new Connections(options)
    this.#allowsCrossOrigin = options.allowsCrossOrigin === true
    this.#access = options.access
  }

  /** Whether no request is pending. */
  get isIdle(): boolean {
    return this.#pending === 0
  }

  send(request: HttpRequest, receiver: ResponseReceiver): PendingRequest {
    const access = this.#access
    if (!access || !isWithin(access.origin, request.target)) return this.#send(request, receiver)
    return new AuthorizedRequest((...sent) => this.#send(...sent), access.tokens, request, receiver).start()
  }

  #send(request: HttpRequest, receiver: ResponseReceiver): PendingRequest {
    this.#pending++
    const { target } = request
    const isRedirected = this.#permanentRedirects.size > 0
    const redirect = isRedirected ? this.#permanentRedirects.get(target.origin + target.path) : undefined
    const pending = new InFlightRequest(this, request, receiver, redirect)
    this.dispatch(request, redirect, pending)
    return pending
  }

  dispatch(request: HttpRequest, redirect: Redirect | undefined, handler: DispatchHandler): void {
    const { origin, path, scope = 'configured' } = redirect?.target ?? request.target
    const headers = redirect ? this.headersFor(redirect, request.headers) : request.headers
    const { method, body, isLongLived = false } = request
    this.#connections.dispatch({ origin, path, method, headers, body }, scope, isLongLived, handler)
  }

  /** The headers without secrets, if the redirect leads to another server. */
  headersFor(redirect: Redirect, headers: readonly string[]): readonly string[] {
    return redirect.keepsSecrets ? headers : withoutSecretHeaders(headers, this.#secretHeaders)
  }

  /** The redirect `to` with the addresses that the server at `from` may send the gateway to. */
  withScope(from: Redirect, to: Redirect): Redirect {
    const { scope, origin } = from.target
    if (to.target.origin === origin) return scope ? { ...to, target: { ...to.target, scope } } : to
    return { ...to, target: { ...to.target, scope: scope === 'public' ? scope : this.#connections.scopeAfter(origin) } }
  }

  /** Why a redirect is not followed; undefined if it is. */
  redirectRefusal(from: Redirect, to: Redirect): FailureDetails | undefined {
    if (this.#allowsCrossOrigin || !isCrossOrigin(from, to)) return undefined
    const text =
      `redirected to another origin (${to.target.origin}): if that is right, use the new URL in the configuration ` +
      'or set "allowCrossOriginRedirect": true for it'
    return { reason: 'upstream_redirect', text }
  }

  rememberRedirect(target: HttpTarget, redirect: Redirect): void {
    this.#permanentRedirects.set(target.origin + target.path, redirect)
  }

  forgetRedirect(target: HttpTarget): void {
    this.#permanentRedirects.delete(target.origin + target.path)
  }

  finished(): void {
    this.#pending--
  }

  close(): Promise<void> {
    this.#closing ??= this.#connections.destroy().then(() => this.deadlines.close())
    return this.#closing
  }
}

/** Whether a target belongs to the server at that origin. */
const isWithin = (origin: string, target: HttpTarget): boolean =>
  target.origin === origin ||
  !isCrossOrigin({ target: { origin, path: '' }, keepsSecrets: true }, { target, keepsSecrets: true })

/** 301 to 303 may turn a request into a GET: they are followed where it is one. */
const isFollowed = (status: number, { method, isOneOff }: HttpRequest): boolean =>
  status === 307 ||
  status === 308 ||
  (isOneOff === true && status > 300 && status < 304 && (method === 'GET' || method === 'HEAD'))

class InFlightRequest implements PendingRequest, DeadlineEntry, DispatchHandler {
  deadline = NEVER
  slot = -1
  readonly #http: HttpClient
  readonly #request: HttpRequest
  readonly #receiver: ResponseReceiver
  #controller: DispatchController | undefined
  #phase: RequestPhase = 'connect'
  #isDone = false
  #redirect: Redirect | undefined // the one in use
  #next: Redirect | undefined // followed once the body of the redirect response has ended
  #redirects = 0
  #isPermanent: boolean // every redirect so far was a 308

  constructor(http: HttpClient, request: HttpRequest, receiver: ResponseReceiver, redirect: Redirect | undefined) {
    this.#http = http
    this.#request = request
    this.#receiver = receiver
    this.#redirect = redirect
    this.#isPermanent = request.isOneOff !== true
    if (request.responseTimeouts) http.deadlines.add(this)
  }

  abort(): void {
    if (this.#isDone) return
    this.#finish()
    this.#controller?.abort(ABORTED)
  }

  expire(): void {
    const text = this.#phase === 'headers' ? 'did not answer in time' : 'fell silent in the middle of its answer'
    this.#fail({ reason: 'upstream_timeout', text })
    this.#controller?.abort(ABORTED)
  }

  onRequestStart(controller: DispatchController): void {
    if (this.#isDone) return controller.abort(ABORTED)
    this.#controller = controller
    this.#phase = 'headers'
    this.#extendDeadline(this.#request.responseTimeouts?.headersMs)
  }

  onResponseStart(_: DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (status < 200) return
    this.#phase = 'body'
    this.#extendDeadline(this.#request.responseTimeouts?.bodyMs)
    if (headers.location !== undefined && isFollowed(status, this.#request)) this.#redirected(status, headers.location)
    else this.#receiver.status(status, headers, this.#from, this.#request.headers)
  }

  onResponseData(controller: DispatchController, chunk: Buffer): void {
    if (this.#isDone || this.#next) return
    this.#extendDeadline(this.#request.responseTimeouts?.bodyMs)
    const reading = this.#receiver.bytes(chunk)
    if (!reading) return
    controller.pause()
    const resume = () => controller.resume()
    reading.then(resume, resume)
  }

  onResponseEnd(): void {
    if (this.#isDone) return
    if (this.#next) return this.#follow(this.#next)
    this.#finish()
    this.#receiver.end()
  }

  onResponseError(_: DispatchController, error: Error): void {
    // An error without a code was thrown by the receiver, inside a callback of the HTTP client.
    if (!('code' in error)) this.#http.log.error({ err: error }, 'reading a response failed')
    this.#fail(failureOfError(error, this.#phase))
  }

  get #from(): Redirect {
    return this.#redirect ?? { target: this.#request.target, keepsSecrets: true }
  }

  #extendDeadline(ms: number | undefined): void {
    if (ms !== undefined) this.deadline = ms > 0 ? Date.now() + ms : NEVER
  }

  #redirected(status: number, location: string): void {
    const next = resolveRedirect(this.#from, location)
    this.#redirects++
    if (status !== 308) this.#isPermanent = false
    const refusal = this.#refusalOf(next, location)
    if (next && !refusal) {
      this.#next = this.#http.withScope(this.#from, next)
      return
    }
    if (refusal) this.#fail(refusal)
    this.#controller?.abort(ABORTED)
  }

  #refusalOf(next: Redirect | undefined, location: string): FailureDetails | undefined {
    const invalid = (text: string): FailureDetails => ({ reason: 'upstream_protocol', text })
    if (!next) return invalid(`redirected to "${location.slice(0, SHOWN_CHARACTERS)}", which is no HTTP URL`)
    if (this.#redirects > MAX_REDIRECTS) return invalid(`redirected more than ${MAX_REDIRECTS} times`)
    return this.#http.redirectRefusal(this.#from, next)
  }

  #follow(redirect: Redirect): void {
    this.#redirect = redirect
    this.#next = undefined
    this.#phase = 'connect'
    this.#controller = undefined
    if (this.#isPermanent) this.#http.rememberRedirect(this.#request.target, redirect)
    this.#http.dispatch(this.#request, redirect, this)
  }

  #fail(failure: FailureDetails): void {
    if (this.#isDone) return
    this.#finish()
    if (this.#redirect && UNUSABLE_REDIRECT.has(failure.reason)) this.#http.forgetRedirect(this.#request.target)
    this.#receiver.failed(failure)
  }

  #finish(): void {
    this.#isDone = true
    this.#http.finished()
    if (this.#request.responseTimeouts) this.#http.deadlines.delete(this)
  }
}
