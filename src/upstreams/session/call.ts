import type { IncomingHttpHeaders } from 'node:http'
import type { AbortReason } from '../../protocol/cancellation.ts'
import { deliver, thrownError } from '../../protocol/deliver.ts'
import type { RpcError } from '../../protocol/errors.ts'
import type { Exchange, Frame, Question } from '../../protocol/exchange.ts'
import { httpReply } from '../../protocol/http-reply.ts'
import { methodInfo } from '../../protocol/methods.ts'
import { NOTIFICATIONS } from '../../protocol/notifications.ts'
import type { Json } from '../../wire/json/json.ts'
import type { Message } from '../../wire/json-rpc.ts'
import type { DeadlineEntry, Deadlines } from '../deadlines.ts'
import { errorOfFailure, errorOfThrown, type FailureDetails, withQuote } from '../failures.ts'
import type { PendingRequest } from '../http/http-client.ts'
import { failureOfStatus, readRetryAfter } from '../http/http-failures.ts'
import type { ResponseEnd, ResponseHandler } from '../http/response-reader.ts'
import { type RecordedTransport, recordReceived, recordRefusal, tappedServer } from '../record-messages.ts'
import { FrameBuffer } from './frame-buffer.ts'
import type { ServerRequest } from './questions.ts'

/** What follows when a reply ended without a response; undefined: the call fails. */
export type Recovery = 'handled' | 'elsewhere' | undefined // elsewhere: the response comes on another stream

/** How calls travel; one object carries all calls of a session or server. `T` is what a call is sent to. */
export interface CallTransport<T> extends RecordedTransport {
  readonly link: { readonly name: string; readonly deadlines: Deadlines; readonly timeoutMs: number }
  readonly isShared?: boolean // all calls are answered on one stream, which never waits for the reader of one call
  /** Sends the request after `call.begin`; without a connection, arranges that it is sent later. */
  send(call: UpstreamCall<T>): PendingRequest | undefined
  recover?(call: UpstreamCall<T>, end: ResponseEnd): Recovery
  timedOut?(call: UpstreamCall<T>): void
}

/** The session or server a call belongs to. */
export interface CallOwner<T> {
  /** Handles a request of the server about this call; dropped by default. */
  asked?(call: UpstreamCall<T>, message: ServerRequest): void | Promise<void>
  /** Handles a message on the call's stream that is not about it; dropped by default. */
  otherMessage?(call: UpstreamCall<T>, message: Message): void
  /** Tells the server that the result is no longer wanted. */
  cancel(call: UpstreamCall<T>, reason: string): void
  /** Called last, just before the final frame; without a frame if the call was aborted. */
  finished(call: UpstreamCall<T>, frame: Frame | undefined): void
}

const NEVER = Number.POSITIVE_INFINITY
const DRAIN_MS = 5000 // for a server to end its stream after the response
const LONGEST_WAIT_MS = 2000 // of a Retry-After that a call waits for

/** One request to a server, from the first byte sent to the frame that ends its exchange. */
export class UpstreamCall<T = unknown> implements ResponseHandler, DeadlineEntry {
  readonly id: number // also its progress token
  readonly exchange: Exchange
  readonly isListen: boolean
  readonly canBeAsked: boolean
  deadline = NEVER
  slot = -1
  readonly #transport: CallTransport<T>
  readonly #owner: CallOwner<T>
  readonly #clientToken: Json | undefined // the client's own progress token
  readonly #buffer: FrameBuffer | undefined
  #target: T | undefined
  #sending: PendingRequest | undefined
  #openQuestions = 0
  #isDone = false
  #isAccepted = false
  #isElsewhere = false
  #hasRepeated = false
  #hasRenewed = false
  #hasWaited = false
  #sawInvalid = false
  #reply: readonly string[] | undefined // the head of the response, if it is recorded
  #timer: NodeJS.Timeout | undefined
  #stopListening: () => void = () => {}

  constructor(transport: CallTransport<T>, owner: CallOwner<T>, exchange: Exchange, id: number) {
    this.#transport = transport
    this.#owner = owner
    this.exchange = exchange
    this.id = id
    this.isListen = exchange.method === 'subscriptions/listen'
    this.canBeAsked = methodInfo(exchange.method)?.asks === true
    this.#clientToken = exchange.params.get('_meta')?.get('progressToken')
    if (transport.isShared) this.#buffer = new FrameBuffer(exchange.sink, error => this.#cancelAndFail(error))
  }

  get isDone(): boolean {
    return this.#isDone
  }

  /** The session, channel or process it was sent to; undefined before that, and while it waits for another. */
  get target(): T | undefined {
    return this.#target
  }

  /** The server took the POST that carried it. */
  get isAccepted(): boolean {
    return this.#isAccepted
  }

  /** The reply to its POST is over, and its response comes on a stream of the session. */
  get isElsewhere(): boolean {
    return this.#isElsewhere
  }

  /** The request's params with our progress token in place of the client's. */
  get params(): Json {
    const { params } = this.exchange
    const meta = this.#clientToken && params.get('_meta')
    return meta ? params.with('_meta', meta.with('progressToken', this.id)) : params
  }

  start(): void {
    const { signal } = this.exchange
    if (signal.reason) return this.#owner.finished(this, undefined)
    this.#stopListening = signal.onAbort(reason => this.#abort(reason))
    this.#transport.link.deadlines.add(this)
    this.post()
  }

  /** Sends the request, the first time or again. */
  post(): void {
    if (this.#isDone) return
    this.deadline = NEVER // until it is sent: a connection has a limit of its own
    this.#target = this.#sending = this.#reply = undefined
    this.#isAccepted = this.#isElsewhere = false
    const sending = this.#transport.send(this)
    if (this.#isDone) sending?.abort()
    else this.#sending ??= sending
  }

  postAfter(ready: Promise<unknown>): void {
    ready.then(
      () => this.post(),
      (thrown: unknown) => this.fail(errorOfThrown(this.#transport.link.name, thrown)),
    )
  }

  /** The request is sent to that target now: the silence of the server counts from here. */
  begin(target: T): void {
    this.#target = target
    this.touch()
  }

  /** Records the request as it is sent; `headers` is flat. */
  recordSent(params: Json, headers?: readonly string[]): void {
    const { record, method } = this.exchange
    const message = record?.tap && ({ kind: 'request', id: this.id, method, params } as const)
    if (message) record?.tap?.serverMessage(tappedServer(this.#transport), 'out', 'request', method, message, headers)
  }

  /** Records that the server is told to stop. */
  recordCancellation(pieces: readonly Buffer[]): void {
    const server = this.exchange.record?.tap && tappedServer(this.#transport)
    if (server) this.exchange.record?.tap?.serverMessage(server, 'out', 'notification', NOTIFICATIONS.cancelled, pieces)
  }

  /** Its stream goes on in another request. */
  continueIn(sending: PendingRequest): void {
    this.#sending = sending
  }

  /** Sends the request once more when the session has been renewed; false if that was done before. */
  renew(renewal: (lost: T | undefined) => Promise<void>): boolean {
    if (this.#hasRenewed) return false
    const lost = this.#target
    this.#hasRenewed = true
    this.#target = undefined
    this.deadline = NEVER
    this.postAfter(renewal(lost))
    return true
  }

  /** Restarts the silence timeout; it stands still while the server waits for a user, and for a listen. */
  touch(): void {
    const { timeoutMs } = this.#transport.link
    const mayBeSilent = timeoutMs === 0 || this.isListen || this.#openQuestions > 0
    this.deadline = mayBeSilent ? NEVER : Date.now() + timeoutMs
  }

  expire(): void {
    if (this.#isDone) return this.#sending?.abort()
    const { link } = this.#transport
    this.#owner.cancel(this, 'timed out')
    this.#transport.timedOut?.(this)
    const text = `was silent for ${link.timeoutMs / 1000} s after ${this.exchange.method}`
    this.failOrRetry({ reason: 'upstream_timeout', text })
  }

  started(status: number, headers: IncomingHttpHeaders): void {
    this.#isAccepted = status < 300
    if (this.exchange.record?.tap) this.#reply = httpReply(status, headers)
  }

  received(): void {
    this.touch()
  }

  message(message: Message): void | Promise<void> {
    if (this.#isDone) return this.#late(message)
    const tap = this.exchange.record?.tap
    if (tap) recordReceived(tap, this.#transport, this.id, message, this.#reply)
    switch (message.kind) {
      case 'notification':
        return this.#notified(message.method, message.params, message)
      case 'request':
        this.touch()
        return this.#owner.asked?.(this, message)
      case 'response':
        if (message.id.asNumber() !== this.id) return this.#owner.otherMessage?.(this, message)
        return this.#finish({ kind: 'result', result: withoutNullCursor(this.exchange.method, message.result) })
      case 'error':
        if (message.id?.kind === 'number' && message.id.asNumber() !== this.id)
          return this.#owner.otherMessage?.(this, message)
        return this.#finish({ kind: 'failure', error: message.error })
      case 'invalid':
        if (message.id?.asNumber() !== this.id) this.#sawInvalid = true
        else this.failOrRetry({ reason: 'upstream_protocol', text: `answered no JSON-RPC: ${message.reason}` })
    }
  }

  notify(method: string, params: Json): void | Promise<void> {
    return this.#deliver({ kind: 'notice', method, params })
  }

  ask(question: Question): void | Promise<void> {
    this.#openQuestions++
    if (this.exchange.record?.tap) question.recordIn?.(this.exchange.record.tap)
    return this.#deliver(question)
  }

  /** A question of this call was answered or withdrawn. */
  settleQuestion(): void {
    this.#openQuestions--
    if (!this.#isDone) this.touch()
  }

  /** The server has not taken the answer to a question of this call, and would wait for it for ever. */
  loseAnswer(): void {
    if (this.#isDone) return
    this.#owner.cancel(this, 'the answer to a question was lost')
    this.failOrRetry({ reason: 'upstream_stream_lost', text: 'did not take the answer to its question' })
  }

  ended(end: ResponseEnd): void {
    const sending = this.#sending
    this.#sending = undefined
    if (this.#isDone) return this.#transport.link.deadlines.delete(this)
    if (end.kind === 'failed') sending?.abort()
    const tap = this.exchange.record?.tap
    if (tap && end.kind === 'refused') recordRefusal(tap, this.#transport, this.id, end, this.#reply)
    const recovery = this.#transport.recover?.(this, end)
    this.#isElsewhere = recovery === 'elsewhere'
    if (!recovery) this.#conclude(end)
  }

  /** Fails with a failure. A request that is safe to repeat is sent once more where its stream was lost. */
  failOrRetry(failure: FailureDetails): void {
    if (failure.reason !== 'upstream_stream_lost' || !this.#mayRepeat())
      return this.fail(errorOfFailure(this.#transport.link.name, failure))
    this.#hasRepeated = true
    this.post()
  }

  /** Its process is gone. A listen goes on in the next process; what is safe to repeat is sent there once more. */
  processEnded(failure: FailureDetails): void {
    const goesOn = failure.reason !== 'too_large' && (this.isListen || this.#mayRepeat())
    if (!goesOn) return this.failOrRetry(failure)
    this.#hasRepeated = true
    this.post()
  }

  fail(error: RpcError): void {
    this.end({ kind: 'failure', error })
  }

  /** Ends the call with that frame, whatever the server still sends. */
  end(frame: Frame): void {
    if (this.#isDone) return
    this.#stop()
    void this.#close(frame)
  }

  #mayRepeat(): boolean {
    return !this.#hasRepeated && methodInfo(this.exchange.method)?.safe === true
  }

  /** After the end, an error that names no other call was about this one. */
  #late(message: Message): void {
    if (message.kind !== 'error' || message.id?.kind === 'number') this.#owner.otherMessage?.(this, message)
  }

  #conclude(end: ResponseEnd): void {
    const { method } = this.exchange
    switch (end.kind) {
      case 'refused':
        return this.#refused(end)
      case 'failed':
        return this.failOrRetry(end.failure)
      case 'accepted':
        return this.failOrRetry({ reason: 'upstream_protocol', text: `accepted ${method} but sent no answer` })
      case 'closed':
        if (!end.isStream || this.#sawInvalid)
          return this.failOrRetry({ reason: 'upstream_protocol', text: `answered without a response to ${method}` })
        return this.failOrRetry({
          reason: 'upstream_stream_lost',
          text: `ended its stream without a response to ${method}`,
        })
    }
  }

  #refused(end: Extract<ResponseEnd, { kind: 'refused' }>): void {
    const { status, headers, error } = end
    if (status === 429) return this.#retryLater(headers['retry-after'])
    const isAuth = status === 401 || status === 403
    const isAnswer = error && !isAuth && (status < 500 || error.id?.asNumber() === this.id)
    if (isAnswer) this.fail(error.error)
    else this.failOrRetry(this.exchange.caller.isHealthCheck ? withQuote(failureOfStatus(end)) : failureOfStatus(end))
  }

  #retryLater(header: string | undefined): void {
    const ms = readRetryAfter(header, Date.now())
    if (ms !== undefined && ms <= LONGEST_WAIT_MS && !this.#hasWaited) {
      this.#hasWaited = true
      this.#timer = setTimeout(() => this.post(), ms)
      return
    }
    const failure: FailureDetails = { reason: 'upstream_busy', text: 'has too much to do (HTTP 429): try again later' }
    this.fail(errorOfFailure(this.#transport.link.name, failure, { retryAfterMs: ms }))
  }

  #notified(method: string, params: Json, message: Message): void | Promise<void> {
    if (method === NOTIFICATIONS.cancelled) return this.#owner.otherMessage?.(this, message)
    if (method !== NOTIFICATIONS.progress) return this.notify(method, params)
    if (params.get('progressToken')?.asNumber() !== this.id) return this.#owner.otherMessage?.(this, message)
    if (this.#clientToken) return this.notify(method, params.with('progressToken', this.#clientToken))
    this.touch()
  }

  /** Sinks a frame that is not the last. While the client is slow, the silence of the server does not count. */
  #deliver(frame: Frame): void | Promise<void> {
    this.touch()
    if (this.#buffer) return this.#buffer.put(frame)
    try {
      const waiting = this.exchange.sink(frame)
      if (!waiting) return
      this.deadline = NEVER
      const go = () => {
        if (!this.#isDone) this.touch()
      }
      return waiting.then(go, (thrown: unknown) => this.#cancelAndFail(thrownError(thrown)))
    } catch (thrown) {
      this.#cancelAndFail(thrownError(thrown))
    }
  }

  /** The client cannot be given what the server sent. */
  #cancelAndFail(error: RpcError): void {
    if (this.#isDone) return
    this.#owner.cancel(this, error.message)
    this.fail(error)
  }

  /** Ends with the server's response. Its stream may still end by itself, which keeps the connection. */
  #finish(frame: Frame): void | Promise<void> {
    if (this.#sending) this.deadline = Date.now() + DRAIN_MS
    else this.#transport.link.deadlines.delete(this)
    return this.#close(frame)
  }

  #close(frame: Frame): void | Promise<void> {
    this.#isDone = true
    clearTimeout(this.#timer)
    this.#stopListening()
    this.#owner.finished(this, frame)
    return this.#buffer ? this.#buffer.put(frame) : deliver(this.exchange.sink, frame)
  }

  #abort(reason: AbortReason): void {
    if (this.#isDone) return
    this.#isDone = true
    this.#stop()
    const text = reason.kind === 'cancelled' ? (reason.text ?? 'cancelled by the client') : reason.kind
    this.#owner.cancel(this, text)
    this.#owner.finished(this, undefined)
  }

  #stop(): void {
    clearTimeout(this.#timer)
    this.#transport.link.deadlines.delete(this)
    this.#sending?.abort()
  }
}

/** `nextCursor: null` makes clients of both SDK generations reject the whole list. */
const withoutNullCursor = (method: string, result: Json): Json =>
  method.endsWith('/list') && result.get('nextCursor')?.kind === 'null' ? result.without('nextCursor') : result
