import type { IncomingHttpHeaders } from 'node:http'
import type { Dispatcher } from 'undici'
import type { Log } from '../../telemetry/log.ts'
import type { DeadlineEntry, Deadlines } from '../deadlines.ts'
import type { FailureDetails } from '../failures.ts'
import { type ConnectionOptions, Connections } from './connections.ts'
import { failureOfError, type RequestPhase } from './http-failures.ts'
import { type HttpTarget, isCrossOrigin, type Redirect, resolveRedirect, withoutSecretHeaders } from './redirect.ts'

/** One HTTP request; `headers` is flat: name, value, name, value. */
export interface HttpRequest {
  readonly method: 'POST' | 'GET' | 'DELETE'
  readonly target: HttpTarget
  readonly headers: readonly string[]
  readonly body: Buffer | null
  readonly responseTimeouts?: ResponseTimeouts | undefined // absent: whoever sends keeps watch itself
  readonly isLongLived?: boolean // a stream that stays open for long
}

/** How long a phase may be silent; 0: for ever. */
export interface ResponseTimeouts {
  readonly headersMs: number
  readonly bodyMs: number
}

/** What a reply is read by. Exactly one of `end` and `lost` is last, unless the request is aborted. */
export interface ResponseReceiver {
  /** `from` is where redirects have led to, `sent` the headers of the request. */
  status(status: number, headers: IncomingHttpHeaders, from: Redirect, sent: readonly string[]): void
  /** A promise stops the reading until it settles. */
  bytes(chunk: Buffer): void | Promise<void>
  end(): void
  failed(loss: FailureDetails): void
}

/** A request under way. After `abort` its receiver hears nothing more. */
export interface PendingRequest {
  abort(): void
}

interface Options extends ConnectionOptions {
  readonly secrets: Iterable<string> // names of headers that belong to the configured origin alone
  readonly allowsCrossOrigin?: boolean | undefined // redirects to other origins are followed
  readonly deadlines: Deadlines
  readonly log: Log
}

const MOST_HOPS = 5
const MOST_SHOWN = 200 // characters of a location
const ALWAYS_SECRET = ['authorization', 'cookie', 'proxy-authorization']
const ABORTED = Object.assign(new Error('aborted'), { code: 'ABORTED' })
const LEADS_NOWHERE: ReadonlySet<FailureDetails['reason']> = new Set(['upstream_unreachable', 'upstream_redirect'])
const FOREVER = Number.POSITIVE_INFINITY

/** Speaks HTTP with one server; the only place that does. */
export class HttpClient {
  readonly deadlines: Deadlines
  readonly log: Log
  readonly #secrets: ReadonlySet<string>
  readonly #connections: Connections
  readonly #mayCross: boolean
  readonly #moved = new Map<string, Redirect>()
  #underWay = 0
  #closing: Promise<void> | undefined

  constructor(options: Options) {
    this.deadlines = options.deadlines
    this.log = options.log
    this.#secrets = new Set([...ALWAYS_SECRET, ...[...options.secrets].map(name => name.toLowerCase())])
    this.#connections = new Connections(options)
    this.#mayCross = options.allowsCrossOrigin === true
  }

  /** Whether nothing has been sent that is not over. */
  get isIdle(): boolean {
    return this.#underWay === 0
  }

  send(request: HttpRequest, receiver: ResponseReceiver): PendingRequest {
    this.#underWay++
    const { target } = request
    const moved = this.#moved.size > 0 ? this.#moved.get(target.origin + target.path) : undefined
    const flight = new InFlightRequest(this, request, receiver, moved)
    this.dispatch(request, moved, flight)
    return flight
  }

  dispatch(request: HttpRequest, hop: Redirect | undefined, handler: Dispatcher.DispatchHandler): void {
    const { origin, path, scope: reach = 'configured' } = hop?.target ?? request.target
    const headers = hop ? this.headersFor(hop, request.headers) : request.headers
    const agent = this.#connections.agent(reach, request.isLongLived === true)
    // The client only reads the list, though its types do not say so.
    agent.dispatch({ origin, path, method: request.method, headers: headers as string[], body: request.body }, handler)
  }

  /** The headers that may be sent there. */
  headersFor(hop: Redirect, headers: readonly string[]): readonly string[] {
    return hop.keepsSecrets ? headers : withoutSecretHeaders(headers, this.#secrets)
  }

  /** A place that a server named, with the addresses it may lead to. */
  withScope(from: Redirect, to: Redirect): Redirect {
    const { scope: reach, origin } = from.target
    if (to.target.origin === origin) return reach ? { ...to, target: { ...to.target, scope: reach } } : to
    return { ...to, target: { ...to.target, scope: reach === 'public' ? reach : this.#connections.from(origin) } }
  }

  /** Why a redirect is not followed; undefined where it is. */
  redirectRefusal(from: Redirect, to: Redirect): FailureDetails | undefined {
    if (this.#mayCross || !isCrossOrigin(from, to)) return undefined
    const text =
      `redirected to another origin (${to.target.origin}): if that is right, use the new URL in the configuration ` +
      'or set "allowCrossOriginRedirect": true for it'
    return { reason: 'upstream_redirect', text }
  }

  /** The server said for good where it lives now. */
  rememberRedirect(target: HttpTarget, hop: Redirect): void {
    this.#moved.set(target.origin + target.path, hop)
  }

  forgetRedirect(target: HttpTarget): void {
    this.#moved.delete(target.origin + target.path)
  }

  /** A request is over. */
  finished(): void {
    this.#underWay--
  }

  close(): Promise<void> {
    this.#closing ??= this.#connections.destroy().then(() => this.deadlines.close())
    return this.#closing
  }
}

class InFlightRequest implements PendingRequest, DeadlineEntry, Dispatcher.DispatchHandler {
  deadline = FOREVER
  slot = -1
  readonly #http: HttpClient
  readonly #request: HttpRequest
  readonly #receiver: ResponseReceiver
  #controller: Dispatcher.DispatchController | undefined
  #phase: RequestPhase = 'connect'
  #isDone = false
  #hop: Redirect | undefined
  #next: Redirect | undefined // where a redirect sends us once its body is over
  #hops = 0
  #isForGood = true // every redirect so far was a 308

  constructor(http: HttpClient, request: HttpRequest, receiver: ResponseReceiver, hop: Redirect | undefined) {
    this.#http = http
    this.#request = request
    this.#receiver = receiver
    this.#hop = hop
    if (request.responseTimeouts) http.deadlines.add(this)
  }

  abort(): void {
    if (this.#isDone) return
    this.#finish()
    this.#controller?.abort(ABORTED)
  }

  expire(): void {
    const text = this.#phase === 'headers' ? 'did not answer in time' : 'fell silent in the middle of its answer'
    this.#lose({ reason: 'upstream_timeout', text })
    this.#controller?.abort(ABORTED)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#isDone) return controller.abort(ABORTED)
    this.#controller = controller
    this.#phase = 'headers'
    this.#allow(this.#request.responseTimeouts?.headersMs)
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (status < 200) return
    this.#phase = 'body'
    this.#allow(this.#request.responseTimeouts?.bodyMs)
    if ((status === 307 || status === 308) && headers.location !== undefined) this.#redirect(status, headers.location)
    else this.#receiver.status(status, headers, this.#from, this.#request.headers)
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#isDone || this.#next) return
    this.#allow(this.#request.responseTimeouts?.bodyMs)
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

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    // What has no code was thrown by our own reading, inside a callback of the HTTP client.
    if (!('code' in error)) this.#http.log.error({ err: error }, 'reading a reply failed')
    this.#lose(failureOfError(error, this.#phase))
  }

  get #from(): Redirect {
    return this.#hop ?? { target: this.#request.target, keepsSecrets: true }
  }

  #allow(ms: number | undefined): void {
    if (ms !== undefined) this.deadline = ms > 0 ? Date.now() + ms : FOREVER
  }

  #redirect(status: number, location: string): void {
    const next = resolveRedirect(this.#from, location)
    this.#hops++
    if (status !== 308) this.#isForGood = false
    const refusal = this.#refusalOf(next, location)
    if (next && !refusal) {
      this.#next = this.#http.withScope(this.#from, next)
      return
    }
    if (refusal) this.#lose(refusal)
    this.#controller?.abort(ABORTED)
  }

  #refusalOf(next: Redirect | undefined, location: string): FailureDetails | undefined {
    const said = (text: string): FailureDetails => ({ reason: 'upstream_protocol', text })
    if (!next) return said(`redirected to "${location.slice(0, MOST_SHOWN)}", which is no HTTP URL`)
    if (this.#hops > MOST_HOPS) return said(`redirected more than ${MOST_HOPS} times`)
    return this.#http.redirectRefusal(this.#from, next)
  }

  #follow(hop: Redirect): void {
    this.#hop = hop
    this.#next = undefined
    this.#phase = 'connect'
    this.#controller = undefined
    if (this.#isForGood) this.#http.rememberRedirect(this.#request.target, hop)
    this.#http.dispatch(this.#request, hop, this)
  }

  #lose(loss: FailureDetails): void {
    if (this.#isDone) return
    this.#finish()
    if (this.#hop && LEADS_NOWHERE.has(loss.reason)) this.#http.forgetRedirect(this.#request.target)
    this.#receiver.failed(loss)
  }

  #finish(): void {
    this.#isDone = true
    this.#http.finished()
    if (this.#request.responseTimeouts) this.#http.deadlines.delete(this)
  }
}
