import type { AbortReason } from '../../protocol/cancellation.ts'
import { deliver, faultOf } from '../../protocol/deliver.ts'
import type { RpcError } from '../../protocol/errors.ts'
import type { Exchange, Frame } from '../../protocol/exchange.ts'
import { methodRow } from '../../protocol/methods.ts'
import type { Json } from '../../wire/json/json.ts'
import type { Message } from '../../wire/json-rpc.ts'
import type { DeadlineEntry } from '../deadlines.ts'
import { type FailureDetails, toRpcError, withQuote } from '../failures.ts'
import type { PendingRequest } from '../http/http-client.ts'
import { failureOfStatus, retryAfterMs } from '../http/http-failures.ts'
import type { HttpLink } from '../http/http-link.ts'
import type { ResponseEnd, ResponseHandler } from '../http/response-reader.ts'

const NEVER = Number.POSITIVE_INFINITY
const DRAIN_MS = 5000 // for a server to end its stream after the response
const LONGEST_WAIT_MS = 2000

/** One request under way to a server, from the first byte sent to the one frame that ends its exchange. */
export abstract class Call implements ResponseHandler, DeadlineEntry {
  readonly id: number // also its progress token
  readonly exchange: Exchange
  deadline = NEVER
  slot = -1
  protected readonly link: HttpLink
  protected sending: PendingRequest | undefined
  protected silenceMs: number
  readonly #token: Json | undefined // the client's own progress token
  #isDone = false
  #hasRepeated = false
  #hasWaited = false
  #sawNonsense = false
  #timer: NodeJS.Timeout | undefined
  #release: () => void = () => {}

  constructor(link: HttpLink, exchange: Exchange, id: number) {
    this.link = link
    this.exchange = exchange
    this.id = id
    this.silenceMs = link.timeoutMs
    this.#token = exchange.params.get('_meta')?.get('progressToken')
  }

  /** Sends the request, the first time or again. */
  protected abstract send(): PendingRequest
  /** A request of the server on this call's stream. */
  protected abstract asked(message: Extract<Message, { kind: 'request' }>): void | Promise<void>
  /** A message on this call's stream that is not for it. */
  protected abstract strayed(message: Message): void
  /** May take care of an end that came before the response; true if so. */
  protected abstract recover(end: ResponseEnd): boolean
  /** Nobody waits any more; the server should know. */
  protected abstract cancelled(text: string): void
  /** The last thing that happens to a call, just before its final frame; none if it was aborted. */
  protected abstract finished(frame: Frame | undefined): void

  get isDone(): boolean {
    return this.#isDone
  }

  /** The request's params with our progress token in place of the client's. */
  protected get params(): Json {
    const { params } = this.exchange
    const meta = this.#token && params.get('_meta')
    return meta ? params.with('_meta', meta.with('progressToken', this.id)) : params
  }

  start(): void {
    const { signal } = this.exchange
    if (this.#isDone) return // while it had to wait
    if (signal.reason) return this.finished(undefined)
    this.#release = signal.onAbort(reason => this.#abort(reason))
    this.link.deadlines.add(this)
    this.post()
  }

  /** Sends now; the silence starts anew. */
  post(): void {
    if (this.#isDone) return
    this.touch()
    const sending = this.send()
    if (this.#isDone) sending.abort()
    else this.sending = sending
  }

  /** Sends, or does whatever else, in a while. */
  later(ms: number, act: () => void): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(act, ms)
  }

  /** The server gave a sign of life. */
  touch(): void {
    this.deadline = this.silenceMs > 0 ? Date.now() + this.silenceMs : NEVER
  }

  /** Nothing is expected of the server until the next touch. */
  hold(): void {
    this.deadline = NEVER
  }

  expire(): void {
    if (this.#isDone) return this.sending?.abort()
    this.cancelled('timed out')
    const seconds = this.silenceMs / 1000
    this.lose({ reason: 'upstream_timeout', text: `was silent for ${seconds} s after ${this.exchange.method}` })
  }

  message(message: Message): void | Promise<void> {
    if (this.#isDone) return this.#late(message)
    switch (message.kind) {
      case 'notification':
        return this.#notified(message.method, message.params, message)
      case 'request':
        this.touch()
        return this.asked(message)
      case 'response':
        if (message.id.asNumber() !== this.id) return this.strayed(message)
        return this.#finish({ kind: 'result', result: tidy(this.exchange.method, message.result) })
      case 'error':
        if (message.id?.kind === 'number' && message.id.asNumber() !== this.id) return this.strayed(message)
        return this.#finish({ kind: 'failure', error: message.error })
      case 'invalid':
        if (message.id?.asNumber() !== this.id) this.#sawNonsense = true
        else this.lose({ reason: 'upstream_protocol', text: `answered no JSON-RPC: ${message.reason}` })
    }
  }

  received(): void {
    this.touch()
  }

  /** An error that is nobody else's was about this call, and this call is over. */
  #late(message: Message): void {
    if (message.kind !== 'error' || message.id?.kind === 'number') this.strayed(message)
  }

  ended(end: ResponseEnd): void {
    if (this.#isDone) return this.link.deadlines.delete(this)
    if (end.kind === 'failed') this.sending?.abort()
    if (!this.recover(end)) this.conclude(end)
  }

  /** What is left to say when nothing recovers the call. */
  protected conclude(end: ResponseEnd): void {
    const { method } = this.exchange
    switch (end.kind) {
      case 'refused':
        return this.#refused(end)
      case 'failed':
        return this.lose(end.failure)
      case 'accepted':
        return this.lose({ reason: 'upstream_protocol', text: `accepted ${method} but sent no answer` })
      case 'closed':
        if (!end.isStream || this.#sawNonsense)
          return this.lose({ reason: 'upstream_protocol', text: `answered without a response to ${method}` })
        return this.lose({ reason: 'upstream_stream_lost', text: `ended its stream without a response to ${method}` })
    }
  }

  /** Fails with a loss; what is safe to repeat is repeated once where the stream was lost. */
  lose(loss: FailureDetails): void {
    const isRepeatable = loss.reason === 'upstream_stream_lost' && methodRow(this.exchange.method)?.safe
    if (!isRepeatable || this.#hasRepeated) return this.fail(toRpcError(this.link.name, loss))
    this.#hasRepeated = true
    this.post()
  }

  fail(error: RpcError): void {
    if (this.#isDone) return
    this.#stop()
    this.#close({ kind: 'failure', error })
  }

  #refused(end: Extract<ResponseEnd, { kind: 'refused' }>): void {
    const { status, headers, error } = end
    if (status === 429) return this.#busy(headers['retry-after'])
    const isAuth = status === 401 || status === 403
    const isAnswer = error && !isAuth && (status < 500 || error.id?.asNumber() === this.id)
    if (isAnswer) this.fail(error.error)
    else this.lose(this.exchange.caller.isHealthCheck ? withQuote(failureOfStatus(end)) : failureOfStatus(end))
  }

  #busy(header: string | undefined): void {
    const ms = retryAfterMs(header, Date.now())
    if (ms !== undefined && ms <= LONGEST_WAIT_MS && !this.#hasWaited) {
      this.#hasWaited = true
      return this.later(ms, () => this.post())
    }
    const loss: FailureDetails = { reason: 'upstream_busy', text: 'has too much to do (HTTP 429): try again later' }
    this.fail(toRpcError(this.link.name, loss, { retryAfterMs: ms }))
  }

  #notified(method: string, params: Json, message: Message): void | Promise<void> {
    if (method === 'notifications/cancelled') return this.strayed(message)
    if (method !== 'notifications/progress') return this.deliver({ kind: 'notice', method, params })
    if (params.get('progressToken')?.asNumber() !== this.id) return this.strayed(message)
    if (this.#token) return this.deliver({ kind: 'notice', method, params: params.with('progressToken', this.#token) })
    this.touch()
  }

  /** Sinks a frame that is not the last; a slow reader is no silence of the server. */
  protected deliver(frame: Frame): void | Promise<void> {
    this.touch()
    try {
      const waiting = this.exchange.sink(frame)
      if (!waiting) return
      this.hold()
      const go = () => {
        if (!this.#isDone) this.touch()
      }
      return waiting.then(go, (thrown: unknown) => this.#broke(thrown))
    } catch (thrown) {
      this.#broke(thrown)
    }
  }

  /** The gateway cannot hand on what the server said: the server is told, the caller gets a failure. */
  #broke(thrown: unknown): void {
    if (this.#isDone) return
    const error = faultOf(thrown)
    this.cancelled(error.message)
    this.fail(error)
  }

  /** The response is here: its stream may still end by itself, and keep the connection. */
  #finish(frame: Frame): void | Promise<void> {
    this.deadline = Date.now() + DRAIN_MS
    return this.#close(frame)
  }

  #close(frame: Frame): void | Promise<void> {
    this.#isDone = true
    clearTimeout(this.#timer)
    this.#release()
    this.finished(frame)
    return deliver(this.exchange.sink, frame)
  }

  #abort(reason: AbortReason): void {
    if (this.#isDone) return
    this.#isDone = true
    this.#stop()
    this.cancelled(reason.kind === 'cancelled' ? (reason.text ?? 'cancelled by the client') : reason.kind)
    this.finished(undefined)
  }

  #stop(): void {
    clearTimeout(this.#timer)
    this.link.deadlines.delete(this)
    this.sending?.abort()
  }
}

/** `nextCursor: null` makes clients of both SDK generations reject the whole list. */
const tidy = (method: string, result: Json): Json =>
  method.endsWith('/list') && result.get('nextCursor')?.kind === 'null' ? result.without('nextCursor') : result
