import { deliver } from '../../protocol/deliver.ts'
import { ERRORS } from '../../protocol/errors.ts'
import type { Caller, Dispatch, Exchange, Frame } from '../../protocol/exchange.ts'
import { NOTIFICATIONS } from '../../protocol/notifications.ts'
import type { Revision } from '../../protocol/revisions.ts'
import type { Log } from '../../telemetry/log.ts'
import { Json } from '../../wire/json/json.ts'
import { encodeNotification, encodeResult, type Message } from '../../wire/json-rpc.ts'
import { DISCONNECTED, errorOfFailure, UpstreamFailure } from '../failures.ts'
import type { ResponseEnd } from '../http/response-reader.ts'
import { type CallOwner, type CallTransport, UpstreamCall } from './call.ts'
import { discoverResult, type Handshake } from './handshake.ts'
import type { Pooled, PoolSlot } from './pool.ts'
import { Questions, type ServerRequest } from './questions.ts'
import { SessionListeners } from './session-listeners.ts'
import { SessionReplay } from './session-replay.ts'

/** What a session is opened with. */
export interface SessionOptions extends PoolSlot {
  readonly holdMs: number // how long a question of the server waits for a listener
}

/** How a legacy session travels: Streamable HTTP, HTTP+SSE or stdio. `T` is what a call is sent to. */
export interface SessionTransport<T> extends CallTransport<T> {
  readonly link: CallTransport<T>['link'] & { readonly log: Log }
  readonly isShared: boolean // all messages of the server come on one stream
  readonly correlates: boolean // false: a question does not tell which call it belongs to
  readonly hasBackChannel: boolean // the server can send messages outside the streams of calls
  readonly isBusy?: boolean // it needs the session although no call is under way
  readonly unsent?: number // messages the server has not taken yet
  /** Connects, and reports the handshake to the session; rejects with UpstreamFailure. */
  open(): Promise<void>
  /** Sends a message that has no answer; drops it where nothing is connected. */
  post(pieces: Buffer[], what: string): void
  /** Sends a notification of the client, and connects for it; by default as `post` does. */
  notify?(pieces: Buffer[], method: string): void
  noteUser?(caller: Caller): void
  /** The call for a question that came on no stream of a call; undefined: the listeners get it. */
  findAsked(calls: readonly UpstreamCall<T>[]): UpstreamCall<T> | undefined
  /** A question arrived; the returned function is called once it is settled. */
  questionAsked?(method: string): (() => void) | undefined
  /** Ends the conversation. All calls have ended already. */
  close(): Promise<void>
}

/** A legacy session with one server on behalf of one caller, whatever transport it uses. */
export class LegacySession<T = unknown> implements Pooled, CallOwner<T> {
  readonly asks = true
  readonly #transport: SessionTransport<T>
  readonly #options: SessionOptions
  readonly #listeners: SessionListeners
  readonly #replay = new SessionReplay()
  readonly #calls: UpstreamCall<T>[] = [] // a Map would keep dead calls alive, as Deadlines explains
  readonly #questions = new Questions(
    (pieces, what) => this.#transport.post(pieces, what),
    () => this.#transport.unsent ?? 0,
  )
  #handshake: Handshake | undefined
  #closing: Promise<void> | undefined
  #lastId = 0
  #lastUsed = Date.now()

  constructor(options: SessionOptions, createTransport: (session: LegacySession<T>) => SessionTransport<T>) {
    this.#options = options
    this.#listeners = new SessionListeners({ holdMs: options.holdMs, expectsListener: options.isDedicated })
    this.#transport = createTransport(this)
  }

  get correlates(): boolean {
    return this.#transport.correlates
  }

  get hasBackChannel(): boolean {
    return this.#transport.hasBackChannel
  }

  get revision(): Revision {
    return this.handshake.revision
  }

  get handshake(): Handshake {
    if (!this.#handshake) throw new Error('a session without a handshake')
    return this.#handshake
  }

  get calls(): readonly UpstreamCall<T>[] {
    return this.#calls
  }

  get lastUsed(): number {
    return this.#lastUsed
  }

  get isClosing(): boolean {
    return this.#closing !== undefined
  }

  /** Calls are under way, or the server waits for an answer. */
  get isWorking(): boolean {
    return this.#calls.length > 0 || this.#questions.size > 0
  }

  get isBusy(): boolean {
    return this.isWorking || this.#transport.isBusy === true || this.#listeners.isNeeded
  }

  /** The client is subscribed to a resource. */
  get hasSubscriptions(): boolean {
    return this.#replay.hasSubscriptions
  }

  /** A listener waits for updates, which the server can send only while it is connected. */
  get needsConnection(): boolean {
    return this.hasSubscriptions && this.#listeners.size > 0 && !this.isClosing
  }

  get lastId(): number {
    return this.#lastId
  }

  nextId(): number {
    return ++this.#lastId
  }

  /** Skips the ids that another session used on the same channel. */
  startAfter(id: number): void {
    this.#lastId = Math.max(this.#lastId, id)
  }

  touch(): void {
    this.#lastUsed = Date.now()
  }

  async open(): Promise<this> {
    await this.#transport.open()
    return this
  }

  /** The server has initialized a session, the first or one in place of it. */
  initialized(handshake: Handshake): void {
    this.#handshake = handshake
  }

  readonly dispatch: Dispatch = exchange => {
    this.touch()
    this.#transport.noteUser?.(exchange.caller)
    if (exchange.kind === 'notification') return this.#notify(exchange)
    if (this.#closing)
      return void deliver(exchange.sink, {
        kind: 'failure',
        error: errorOfFailure(this.#transport.link.name, DISCONNECTED),
      })
    if (exchange.method === 'server/discover')
      return void deliver(exchange.sink, { kind: 'result', result: discoverResult(this.handshake.result) })
    if (exchange.method === 'subscriptions/listen') return this.#listen(exchange)
    const call = new UpstreamCall<T>(this.#transport, this, exchange, this.nextId())
    this.#calls.push(call)
    call.start()
  }

  /** Passes a request of the server on to the client: on that call, or to the latest listener. */
  asked(call: UpstreamCall<T> | undefined, message: ServerRequest): void | Promise<void> {
    if (message.method === 'ping') return this.#transport.post(encodeResult(message.id, Json.empty), 'answer to ping')
    const settled = this.#transport.questionAsked?.(message.method)
    const question = this.#questions.ask(message, call ?? this.#listeners.last ?? this, () => {
      call?.settleQuestion()
      settled?.()
    })
    if (!question) return settled?.()
    if (call) return call.ask(question)
    this.#listeners.ask(question)
  }

  otherMessage(_: UpstreamCall<T>, message: Message): void {
    this.received(message)
  }

  cancel(call: UpstreamCall<T>, reason: string): void {
    if (call.target === undefined) return // the server has not seen the request
    const params = Json.of({ requestId: call.id, reason })
    this.#transport.post(encodeNotification(NOTIFICATIONS.cancelled, params), 'cancellation')
  }

  finished(call: UpstreamCall<T>, frame: Frame | undefined): void {
    const at = this.#calls.indexOf(call)
    if (at >= 0) this.#calls.splice(at, 1)
    this.touch()
    if (this.#questions.size > 0) this.#reassignQuestions(call, frame !== undefined)
    if (frame?.kind === 'result') this.#replay.remember(call.exchange)
  }

  /** Handles a message that belongs to no call by the stream it came on. */
  received(message: Message): void {
    switch (message.kind) {
      case 'request':
        return void this.asked(this.#transport.findAsked(this.#calls), message)
      case 'notification':
        return this.#notified(message.method, message.params, message)
      case 'response':
      case 'error':
        return this.#answered(message)
      case 'invalid':
        if (message.id) void this.#callOf(message.id)?.message(message)
        else this.#transport.link.log.debug({ reason: message.reason }, 'dropped an invalid message')
    }
  }

  /** The server has lost its state, and with it what it asked. */
  clearQuestions(): void {
    this.#questions.clear()
  }

  /** The requests that restore the state of the session at a new server: method and params. */
  replayRequests(): [string, Json][] {
    return this.#replay.requests()
  }

  /** The server behind the session is a new one. */
  serverReplaced(): void {
    this.#listeners.notifyListsChanged(this.#capabilities)
  }

  /** Ends the session if the failure says that the server is of another kind now; the next caller detects its era. */
  closeIfReplaced(error: unknown): void {
    if (error instanceof UpstreamFailure && error.reason === 'upstream_protocol') void this.close()
  }

  /** Ends everything: here at once, at the server as soon as it answers. */
  close(): Promise<void> {
    if (this.#closing) return this.#closing
    this.#closing = Promise.resolve().then(() => this.#end())
    this.#options.onClosed(this.#closing)
    return this.#closing
  }

  get #capabilities(): Json | undefined {
    return this.handshake.result.get('capabilities')
  }

  #listen(exchange: Exchange): void {
    this.#listeners.add(exchange, this.#capabilities, () => {
      this.#questions.leave(exchange)
      this.touch()
      if (this.#options.isDedicated && this.#listeners.size === 0) void this.close()
    })
  }

  #notify({ method, params }: Exchange): void {
    if (method === NOTIFICATIONS.initialized || this.#closing) return // the gateway sent its own after the handshake
    const pieces = encodeNotification(method, params)
    if (this.#transport.notify) this.#transport.notify(pieces, method)
    else this.#transport.post(pieces, method)
  }

  /** A call with a response did not own the questions that are still open; a cancelled one may not have, either. */
  #reassignQuestions(call: UpstreamCall<T>, hasResponse: boolean): void {
    const newOwner = this.#listeners.last ?? this
    const mayBeAnothers = !this.correlates && this.#calls.some(({ canBeAsked }) => canBeAsked)
    if (hasResponse || mayBeAnothers) this.#questions.handOver(call, newOwner)
    else this.#questions.abandon(call, newOwner)
  }

  #notified(method: string, params: Json, message: Message): void {
    if (method === NOTIFICATIONS.cancelled) return this.#questions.withdraw(params.get('requestId'))
    if (method === NOTIFICATIONS.progress) return void this.#callOf(params.get('progressToken'))?.message(message)
    // On a shared stream a log line names no call: it belongs to the only one, if there is only one.
    const isOnly = this.#transport.isShared && method === NOTIFICATIONS.message && this.#calls.length === 1
    if (isOnly) void this.#calls[0]?.message(message)
    else this.#listeners.notify(method, params)
  }

  /** Our ids are numbers: an error with any other id, or none, is about everything under way. */
  #answered(message: Extract<Message, { kind: 'response' | 'error' }>): void {
    const { kind, id } = message
    if (id && (kind === 'response' || id.kind === 'number')) return void this.#callOf(id)?.message(message)
    for (const call of [...this.#calls]) void call.message(message)
  }

  #callOf(id: Json | undefined): UpstreamCall<T> | undefined {
    const number = id?.asNumber()
    return this.#calls.find(call => call.id === number)
  }

  async #end(): Promise<void> {
    for (const call of [...this.#calls]) call.failOrRetry(DISCONNECTED)
    this.#questions.clear()
    this.#listeners.close({ kind: 'result', result: Json.of({ resultType: 'complete' }) })
    await this.#transport.close()
  }
}

const METHOD_NOT_FOUND = ERRORS.methodNotFound.code

/** Whether a refusal says that the server does not know the session any more. */
export const isSessionGone = ({ status, error }: Extract<ResponseEnd, { kind: 'refused' }>): boolean =>
  (status === 404 && error?.error.code !== METHOD_NOT_FOUND) ||
  (status === 400 && error !== undefined && /session/i.test(error.error.message))
