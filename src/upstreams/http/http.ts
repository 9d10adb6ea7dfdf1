import type { IncomingHttpHeaders } from 'node:http'
import type { Dispatcher } from 'undici'
import type { Log } from '../../telemetry/log.ts'
import { type Loss, lossOfError, type Phase } from '../failures.ts'
import { Connections, type ReachOptions } from './reach.ts'
import { type Hop, hopTo, isCrossOrigin, type Target, withoutSecrets } from './redirect.ts'
import type { SilenceWatch, Watched } from './silence.ts'

/** One HTTP request; `headers` is flat: name, value, name, value. */
export interface HttpRequest {
  readonly method: 'POST' | 'GET' | 'DELETE'
  readonly target: Target
  readonly headers: readonly string[]
  readonly body: Buffer | null
  readonly patience?: Patience | undefined // absent: whoever sends keeps watch itself
  readonly stays?: boolean // a stream that stays open for long
}

/** How long a phase may be silent; 0: for ever. */
export interface Patience {
  readonly headersMs: number
  readonly bodyMs: number
}

/** What a reply is read by. Exactly one of `end` and `lost` is last, unless the request is aborted. */
export interface Receiver {
  /** `from` is where redirects have led to, `sent` the headers of the request. */
  status(status: number, headers: IncomingHttpHeaders, from: Hop, sent: readonly string[]): void
  /** A promise stops the reading until it settles. */
  bytes(chunk: Buffer): void | Promise<void>
  end(): void
  lost(loss: Loss): void
}

/** A request under way. After `abort` its receiver hears nothing more. */
export interface Sending {
  abort(): void
}

interface Options extends ReachOptions {
  readonly secrets: Iterable<string> // names of headers that belong to the configured origin alone
  readonly mayCross?: boolean | undefined // redirects to other origins are followed
  readonly watch: SilenceWatch
  readonly log: Log
}

const MOST_HOPS = 5
const MOST_SHOWN = 200 // characters of a location
const ALWAYS_SECRET = ['authorization', 'cookie', 'proxy-authorization']
const ABORTED = Object.assign(new Error('aborted'), { code: 'ABORTED' })
const LEADS_NOWHERE: ReadonlySet<Loss['reason']> = new Set(['upstream_unreachable', 'upstream_redirect'])
const FOREVER = Number.POSITIVE_INFINITY

/** Speaks HTTP with one server; the only place that does. */
export class Http {
  readonly watch: SilenceWatch
  readonly log: Log
  readonly #secrets: ReadonlySet<string>
  readonly #connections: Connections
  readonly #mayCross: boolean
  readonly #moved = new Map<string, Hop>()
  #underWay = 0
  #closing: Promise<void> | undefined

  constructor(options: Options) {
    this.watch = options.watch
    this.log = options.log
    this.#secrets = new Set([...ALWAYS_SECRET, ...[...options.secrets].map(name => name.toLowerCase())])
    this.#connections = new Connections(options)
    this.#mayCross = options.mayCross === true
  }

  /** Whether nothing has been sent that is not over. */
  get isIdle(): boolean {
    return this.#underWay === 0
  }

  send(request: HttpRequest, receiver: Receiver): Sending {
    this.#underWay++
    const { target } = request
    const moved = this.#moved.size > 0 ? this.#moved.get(target.origin + target.path) : undefined
    const flight = new Flight(this, request, receiver, moved)
    this.dispatch(request, moved, flight)
    return flight
  }

  dispatch(request: HttpRequest, hop: Hop | undefined, handler: Dispatcher.DispatchHandler): void {
    const { origin, path, reach = 'configured' } = hop?.target ?? request.target
    const headers = hop ? this.headersFor(hop, request.headers) : request.headers
    const agent = this.#connections.agent(reach, request.stays === true)
    // The client only reads the list, though its types do not say so.
    agent.dispatch({ origin, path, method: request.method, headers: headers as string[], body: request.body }, handler)
  }

  /** The headers that may be sent there. */
  headersFor(hop: Hop, headers: readonly string[]): readonly string[] {
    return hop.keepsSecrets ? headers : withoutSecrets(headers, this.#secrets)
  }

  /** A place that a server named, with the addresses it may lead to. */
  within(from: Hop, to: Hop): Hop {
    const { reach, origin } = from.target
    if (to.target.origin === origin) return reach ? { ...to, target: { ...to.target, reach } } : to
    return { ...to, target: { ...to.target, reach: reach === 'public' ? reach : this.#connections.from(origin) } }
  }

  /** Why a redirect is not followed; undefined where it is. */
  refusalOf(from: Hop, to: Hop): Loss | undefined {
    if (this.#mayCross || !isCrossOrigin(from, to)) return undefined
    const text =
      `redirected to another origin (${to.target.origin}): if that is right, use the new URL in the configuration ` +
      'or set "allowCrossOriginRedirect": true for it'
    return { reason: 'upstream_redirect', text }
  }

  /** The server said for good where it lives now. */
  remember(target: Target, hop: Hop): void {
    this.#moved.set(target.origin + target.path, hop)
  }

  forget(target: Target): void {
    this.#moved.delete(target.origin + target.path)
  }

  /** A request is over. */
  finished(): void {
    this.#underWay--
  }

  close(): Promise<void> {
    this.#closing ??= this.#connections.destroy().then(() => this.watch.close())
    return this.#closing
  }
}

class Flight implements Sending, Watched, Dispatcher.DispatchHandler {
  deadline = FOREVER
  slot = -1
  readonly #http: Http
  readonly #request: HttpRequest
  readonly #receiver: Receiver
  #controller: Dispatcher.DispatchController | undefined
  #phase: Phase = 'connect'
  #isDone = false
  #hop: Hop | undefined
  #next: Hop | undefined // where a redirect sends us once its body is over
  #hops = 0
  #isForGood = true // every redirect so far was a 308

  constructor(http: Http, request: HttpRequest, receiver: Receiver, hop: Hop | undefined) {
    this.#http = http
    this.#request = request
    this.#receiver = receiver
    this.#hop = hop
    if (request.patience) http.watch.add(this)
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
    this.#allow(this.#request.patience?.headersMs)
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (status < 200) return
    this.#phase = 'body'
    this.#allow(this.#request.patience?.bodyMs)
    if ((status === 307 || status === 308) && headers.location !== undefined) this.#redirect(status, headers.location)
    else this.#receiver.status(status, headers, this.#from, this.#request.headers)
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#isDone || this.#next) return
    this.#allow(this.#request.patience?.bodyMs)
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
    this.#lose(lossOfError(error, this.#phase))
  }

  get #from(): Hop {
    return this.#hop ?? { target: this.#request.target, keepsSecrets: true }
  }

  #allow(ms: number | undefined): void {
    if (ms !== undefined) this.deadline = ms > 0 ? Date.now() + ms : FOREVER
  }

  #redirect(status: number, location: string): void {
    const next = hopTo(this.#from, location)
    this.#hops++
    if (status !== 308) this.#isForGood = false
    const refusal = this.#refusalOf(next, location)
    if (next && !refusal) {
      this.#next = this.#http.within(this.#from, next)
      return
    }
    if (refusal) this.#lose(refusal)
    this.#controller?.abort(ABORTED)
  }

  #refusalOf(next: Hop | undefined, location: string): Loss | undefined {
    const said = (text: string): Loss => ({ reason: 'upstream_protocol', text })
    if (!next) return said(`redirected to "${location.slice(0, MOST_SHOWN)}", which is no HTTP URL`)
    if (this.#hops > MOST_HOPS) return said(`redirected more than ${MOST_HOPS} times`)
    return this.#http.refusalOf(this.#from, next)
  }

  #follow(hop: Hop): void {
    this.#hop = hop
    this.#next = undefined
    this.#phase = 'connect'
    this.#controller = undefined
    if (this.#isForGood) this.#http.remember(this.#request.target, hop)
    this.#http.dispatch(this.#request, hop, this)
  }

  #lose(loss: Loss): void {
    if (this.#isDone) return
    this.#finish()
    if (this.#hop && LEADS_NOWHERE.has(loss.reason)) this.#http.forget(this.#request.target)
    this.#receiver.lost(loss)
  }

  #finish(): void {
    this.#isDone = true
    this.#http.finished()
    if (this.#request.patience) this.#http.watch.delete(this)
  }
}
