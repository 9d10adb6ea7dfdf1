import { deliver } from '../../protocol/deliver.ts'
import type { Caller, Dispatch, Exchange, Frame } from '../../protocol/exchange.ts'
import { isCall } from '../../protocol/methods.ts'
import { NOTIFICATIONS } from '../../protocol/notifications.ts'
import type { Revision } from '../../protocol/revisions.ts'
import { Json } from '../../wire/json/json.ts'
import { encodeNotification, encodeRequest, type Message } from '../../wire/json-rpc.ts'
import { DISCONNECTED, errorOfFailure, UpstreamFailure } from '../failures.ts'
import { recordNotification, tappedServer } from '../record-messages.ts'
import { type CallOwner, UpstreamCall } from './call.ts'
import { discoverResult, type Handshake } from './handshake.ts'
import type { Pooled, PoolSlot } from './pool.ts'
import { QuestionRouter } from './question-router.ts'
import type { ServerRequest } from './questions.ts'
import { SessionListeners } from './session-listeners.ts'
import { SessionReplay } from './session-replay.ts'
import type { SessionTransport } from './session-transport.ts'
import { type Sharer, Sharers, sharerOf } from './sharers.ts'

/** What a session is opened with. */
export interface SessionOptions extends PoolSlot {
  readonly holdMs: number // how long a question of the server waits for a listener
  /** Whether another session serves the exchange. */
  readonly redirect?: (exchange: Exchange) => boolean
}

/** What a client has on a session, so that another session can serve it instead. */
export interface ReleasedClient {
  readonly caller: Caller
  readonly sharer: Sharer
  readonly listeners: readonly Exchange[]
}

/** A legacy session with one server, whatever transport it uses, on behalf of one client or of several that share it. */
export class LegacySession<T = unknown> implements Pooled, CallOwner<T> {
  readonly asks = true
  lastUsed = Date.now() // others only read it
  readonly #transport: SessionTransport<T>
  readonly #options: SessionOptions
  readonly #listeners: SessionListeners
  readonly #replay = new SessionReplay()
  readonly #sharers = new Sharers({
    send: exchange => this.#call(exchange),
    unsubscribe: uri => this.#send('resources/unsubscribe', Json.of({ uri })),
  })
  #waiting: { readonly caller: Caller; readonly resolve: () => void }[] = [] // until no other client can be asked
  readonly #calls: UpstreamCall<T>[] = [] // in order of arrival; no Map, as SlotList explains
  readonly #questions: QuestionRouter
  #handshake: Handshake | undefined
  #closing: Promise<void> | undefined
  #lastId = 0
  #hasCalled = false

  constructor(options: SessionOptions, createTransport: (session: LegacySession<T>) => SessionTransport<T>) {
    this.#options = options
    this.#listeners = new SessionListeners(options.holdMs, caller => this.#sharers.serve(caller))
    this.#transport = createTransport(this)
    this.#questions = new QuestionRouter({
      listeners: this.#listeners,
      sharers: this.#sharers,
      post: (pieces, what, onLost) => this.#transport.post(pieces, what, onLost),
      unsent: () => this.#transport.unsent ?? 0,
      asked: method => this.#transport.questionAsked?.(method),
      server: () => tappedServer(this.#transport),
    })
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

  get runsTasks(): boolean {
    return this.handshake.runsTasks === true
  }

  get calls(): readonly UpstreamCall<T>[] {
    return this.#calls
  }

  /** A client has called the server: it did more than list what it has. */
  get hasCalled(): boolean {
    return this.#hasCalled
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

  /** A client waits for updates of resources: a connection or process is kept for them. */
  get needsConnection(): boolean {
    return this.hasSubscriptions && this.isListenedTo
  }

  /** A client waits for changes, which the server can send only while it is connected: a lost connection is replaced. */
  get isListenedTo(): boolean {
    return this.#listeners.isNeeded && this.#listeners.hasClient && !this.isClosing
  }

  /** A client is subscribed to a resource. */
  get hasSubscriptions(): boolean {
    return this.#replay.hasSubscriptions
  }

  /** Whether a question of the server may be for another client than that. */
  isAskedByOthers(caller: Caller): boolean {
    const key = sharerOf(caller)
    return this.#calls.some(({ canBeAsked, exchange }) => canBeAsked && sharerOf(exchange.caller) !== key)
  }

  /** Resolves when no question of the server can be for another client than that. */
  onceAskedByNoOther(caller: Caller): Promise<void> {
    return new Promise(resolve => this.#waiting.push({ caller, resolve }))
  }

  /** The roots that the server was given; undefined if it has not asked for any. */
  get roots(): Json | undefined {
    return this.#questions.roots
  }

  get hasSeveralClients(): boolean {
    return this.#sharers.areSeveral
  }

  /** Whether that client has the roots that the server was given, as far as is known. */
  hasSameRoots(caller: Caller): boolean {
    return this.#sharers.hasSameRoots(caller)
  }

  setSameRoots(caller: Caller): void {
    this.#sharers.setSameRoots(caller)
  }

  /** Whether the server may hold state of that client. */
  hasServed(caller: Caller): boolean {
    return this.#sharers.isServed(caller)
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
    this.lastUsed = Date.now()
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
    if (exchange.kind === 'notification') return this.#options.redirect?.(exchange) ? undefined : this.#notify(exchange)
    if (this.#closing)
      return void deliver(exchange.sink, {
        kind: 'failure',
        error: errorOfFailure(this.#transport.link.name, DISCONNECTED),
      })
    if (exchange.method === 'server/discover')
      return void deliver(exchange.sink, { kind: 'result', result: discoverResult(this.handshake.result) })
    if (exchange.method === 'subscriptions/listen') return this.#listen(exchange)
    if (this.#options.redirect?.(exchange)) return
    const admitted = this.#sharers.admit(exchange)
    if (!admitted) return
    this.#hasCalled ||= isCall(exchange.method)
    this.#call(admitted)
  }

  asked(call: UpstreamCall<T>, message: ServerRequest): void | Promise<void> {
    return this.#questions.ask(call, message)
  }

  otherMessage(_: UpstreamCall<T>, message: Message): void {
    this.received(message)
  }

  cancel(call: UpstreamCall<T>, reason: string): void {
    this.#questions.cancelled(call)
    if (call.target === undefined) return // the server has not seen the request
    const pieces = encodeNotification(NOTIFICATIONS.cancelled, Json.of({ requestId: call.id, reason }))
    call.recordCancellation(pieces)
    this.#transport.post(pieces, 'cancellation')
  }

  finished(call: UpstreamCall<T>, frame: Frame | undefined): void {
    const at = this.#calls.indexOf(call)
    if (at >= 0) this.#calls.splice(at, 1)
    this.touch()
    this.#questions.finished(call, frame !== undefined, this.correlates ? [] : this.#calls)
    if (frame?.kind === 'result') this.#replay.remember(call.exchange)
    if (this.#waiting.length > 0) this.#wake()
  }

  /** Handles a message that belongs to no call by the stream it came on. */
  received(message: Message): void {
    switch (message.kind) {
      case 'request':
        return this.#questions.askOneOf(this.#transport.findAsked(this.#calls), message)
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

  /** Gives up a client, with what it has here, so that another session can serve it. */
  release(caller: Caller): ReleasedClient | undefined {
    const key = sharerOf(caller)
    const listeners = this.#listeners.take(key)
    const sharer = this.#leave(key)
    return sharer && { caller, sharer, listeners }
  }

  /** Serves a client that another session has released. */
  adopt({ caller, sharer, listeners }: ReleasedClient): void {
    this.#sharers.adopt(caller, sharer)
    for (const uri of sharer.uris) this.#replay.remember({ method: 'resources/subscribe', params: Json.of({ uri }) })
    if (sharer.level) this.#replay.remember({ method: 'logging/setLevel', params: Json.of({ level: sharer.level }) })
    for (const exchange of listeners) this.#listeners.adopt(exchange, () => this.#listenerLeft(exchange))
  }

  /** The requests that restore the state of the session at a new server: method and params. */
  replayRequests(): [string, Json][] {
    return this.#replay.requests()
  }

  /** Changes may have been missed: the server behind the session is a new one, or its stream was interrupted. */
  announceMissed(): void {
    this.#listeners.notifyListsChanged(this.#capabilities)
    for (const uri of this.#replay.uris) this.#notifyAll(NOTIFICATIONS.resourceUpdated, Json.of({ uri }))
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

  #call(exchange: Exchange): void {
    const call = new UpstreamCall<T>(this.#transport, this, exchange, this.nextId())
    this.#calls.push(call)
    call.start()
  }

  #listen(exchange: Exchange): void {
    this.#sharers.join(exchange.caller)
    this.#listeners.add(exchange, this.#capabilities, () => this.#listenerLeft(exchange))
  }

  #listenerLeft(exchange: Exchange): void {
    const key = sharerOf(exchange.caller)
    this.#questions.leave(exchange)
    this.touch()
    if (this.#options.isDedicated && this.#listeners.size === 0) return void this.close()
    if (!this.#listeners.latest(key)) this.#leave(key)
  }

  #wake(): void {
    const due = this.#waiting.filter(({ caller }) => this.isClosing || !this.isAskedByOthers(caller))
    this.#waiting = this.#waiting.filter(waiting => !due.includes(waiting))
    for (const { resolve } of due) resolve()
  }

  /** Undoes at the server what only that sharer wanted. */
  #leave(key: string): Sharer | undefined {
    const { level: before } = this.#sharers
    const sharer = this.#sharers.leave(key)
    const { level } = this.#sharers
    for (const uri of sharer?.uris ?? [])
      if (!this.#sharers.isSubscribed(uri)) this.#send('resources/unsubscribe', Json.of({ uri }))
    if (level !== before && level) this.#send('logging/setLevel', Json.of({ level }))
    return sharer
  }

  /** Sends a request of the gateway's own whose answer does not matter; a server that starts later gets it then. */
  #send(method: string, params: Json): void {
    this.#replay.remember({ method, params })
    this.#transport.post(encodeRequest(this.nextId(), method, params), method)
  }

  #notify({ method, params, record }: Exchange): void {
    if (method === NOTIFICATIONS.initialized || this.#closing) return // the gateway sent its own after the handshake
    const pieces = encodeNotification(method, params)
    recordNotification({ method, record }, this.#transport, pieces)
    if (this.#transport.notify) this.#transport.notify(pieces, method)
    else this.#transport.post(pieces, method)
  }

  #notified(method: string, params: Json, message: Message): void {
    if (method === NOTIFICATIONS.cancelled) return this.#questions.withdraw(params.get('requestId'))
    if (method === NOTIFICATIONS.progress) return void this.#callOf(params.get('progressToken'))?.message(message)
    if (this.#transport.isShared && method === NOTIFICATIONS.message) return this.#logged(params, message)
    this.#notifyAll(method, params)
  }

  #notifyAll(method: string, params: Json): void {
    this.#listeners.notify(method, params, listener => this.#sharers.isFor(listener, method, params))
  }

  /** On a shared stream a log message names no call: it belongs to the only one, if there is only one. */
  #logged(params: Json, message: Message): void {
    const [first, ...others] = this.#calls
    const callers = this.#calls.map(({ exchange }) => exchange.caller)
    const isFor = this.#sharers.logFilter(callers, params)
    if (!first || others.length > 0) this.#listeners.notify(NOTIFICATIONS.message, params, isFor)
    else if (isFor(first.exchange.caller)) void first.message(message)
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
