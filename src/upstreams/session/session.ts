import { deliver } from '../../protocol/deliver.ts'
import type { Caller, Dispatch, Exchange, Frame } from '../../protocol/exchange.ts'
import type { Revision } from '../../protocol/revisions.ts'
import { Json } from '../../wire/json/json.ts'
import { type Message, notificationPieces, resultPieces } from '../../wire/json-rpc.ts'
import { DISCONNECTED, toRpcError } from '../failures.ts'
import type { HttpLink } from '../http/http-link.ts'
import { discovered } from './discovered.ts'
import type { Place, Pooled } from './pool.ts'
import { Questions } from './questions.ts'
import { SendQueue } from './send-queue.ts'
import type { Home, SessionCall } from './session-call.ts'
import { SessionReplay } from './session-replay.ts'
import { Standing } from './standing.ts'

/** What a session is opened with. */
export interface SessionOptions extends Place {
  readonly holdMs: number // a question nobody can be asked yet
  readonly requiresHandshake?: boolean | undefined // the server is modern and may refuse one
}

/** A legacy session with a remote server, as one caller; how it travels is said by those who extend it. */
export abstract class LegacySession<C extends SessionCall> implements Pooled, Home {
  readonly asks = true
  readonly link: HttpLink
  readonly questions = new Questions(
    (pieces, what) => this.post(pieces, what),
    () => this.postbox.size,
  )
  lastUsed = Date.now()

  protected readonly caller: Caller
  protected readonly standing: Standing
  protected readonly postbox: SendQueue
  protected readonly told = new SessionReplay()
  protected readonly calls: C[] = [] // a Map would keep dead calls alive, as SilenceWatch explains
  protected readonly options: SessionOptions
  #closing: Promise<void> | undefined
  #lastId = 0

  constructor(link: HttpLink, caller: Caller, options: SessionOptions) {
    this.link = link
    this.caller = caller
    this.options = options
    this.standing = new Standing({ holdMs: options.holdMs, expectsSomebody: options.isDedicated })
    this.postbox = new SendQueue({ post: (pieces, what, done) => this.transmit(pieces, what, done), log: link.log })
  }

  abstract get revision(): Revision
  abstract get correlates(): boolean
  /** Whether the server can say something outside the streams of calls. */
  abstract get hasBackChannel(): boolean
  /** The InitializeResult as it came. */
  protected abstract get introduction(): Json
  protected abstract createCall(exchange: Exchange, id: number): C
  /** Starts the call as soon as there is somebody to send it to. */
  protected abstract begin(call: C): void
  /** The call a question belongs to that came on no stream of a call; undefined: none. */
  protected abstract callAsked(): C | undefined
  /** The call a notice belongs to that came on no stream of a call; undefined: none. */
  protected abstract callTold(method: string): C | undefined
  /** Sends something that has no answer; `done` is called once the server has taken or refused it. */
  protected abstract transmit(pieces: Buffer[], what: string, done: () => void): void
  /** Ends the conversation; all calls were told already. */
  protected abstract disconnect(): Promise<void>

  get isBusy(): boolean {
    return this.calls.length > 0 || this.questions.size > 0 || this.standing.isNeeded
  }

  protected get isClosing(): boolean {
    return this.#closing !== undefined
  }

  protected nextId(): number {
    return ++this.#lastId
  }

  protected get lastId(): number {
    return this.#lastId
  }

  /** Requests of another session on the same channel had ids up to this one. */
  protected startAfter(id: number): void {
    this.#lastId = Math.max(this.#lastId, id)
  }

  readonly dispatch: Dispatch = exchange => {
    this.lastUsed = Date.now()
    if (exchange.kind === 'notification') return this.#notify(exchange)
    if (this.#closing)
      return void deliver(exchange.sink, { kind: 'failure', error: toRpcError(this.link.name, DISCONNECTED) })
    if (exchange.method === 'server/discover') return this.#discover(exchange)
    if (exchange.method === 'subscriptions/listen') return this.#listen(exchange)
    const call = this.createCall(exchange, this.nextId())
    this.calls.push(call)
    this.begin(call)
  }

  /** Sends something that has no answer, as soon as it is its turn. */
  post(pieces: Buffer[], what: string): void {
    this.postbox.put(pieces, what)
  }

  /** A message that belongs to no call by the stream it came on. */
  strayed(message: Message): void {
    switch (message.kind) {
      case 'request':
        return this.#asked(message)
      case 'notification':
        return this.#noticed(message.method, message.params, message)
      case 'response':
      case 'error':
        return this.#answered(message)
      case 'invalid':
        if (message.id) void this.#callOf(message.id)?.message(message)
        else this.link.log.debug({ reason: message.reason }, 'dropped something that is no message')
    }
  }

  finished(call: C, frame: Frame | undefined): void {
    const at = this.calls.indexOf(call)
    if (at >= 0) this.calls.splice(at, 1)
    this.lastUsed = Date.now()
    const heir = this.standing.last ?? this
    // A call the server has answered did not own what it still asks; a cancelled one may not have, either.
    const mayBeAnothers = !this.correlates && this.calls.some(({ canBeAsked }) => canBeAsked)
    if (frame || mayBeAnothers) this.questions.handOver(call, heir)
    else this.questions.abandon(call, heir)
    if (frame?.kind === 'result') this.told.remember(call.exchange)
  }

  /** Ends everything, here at once and at the server as soon as it answers. */
  close(): Promise<void> {
    if (this.#closing) return this.#closing
    this.#closing = Promise.resolve().then(() => this.#end())
    this.options.onClosed(this.#closing)
    return this.#closing
  }

  /** Says that every list may have changed: the server behind the session is a new one. */
  protected announceChanges(): void {
    this.standing.changed(this.introduction.get('capabilities'))
  }

  #discover(exchange: Exchange): void {
    void deliver(exchange.sink, { kind: 'result', result: discovered(this.introduction) })
  }

  #listen(exchange: Exchange): void {
    this.standing.attach(exchange, this.introduction.get('capabilities'), () => {
      this.questions.leave(exchange)
      this.lastUsed = Date.now()
      if (this.options.isDedicated && this.standing.size === 0) void this.close()
    })
  }

  #notify({ method, params }: Exchange): void {
    // Ours was sent with the handshake.
    if (method !== 'notifications/initialized') this.post(notificationPieces(method, params), method)
  }

  #asked(message: Extract<Message, { kind: 'request' }>): void {
    if (message.method === 'ping') return this.post(resultPieces(message.id, Json.empty), 'answer to ping')
    const call = this.callAsked()
    if (call) return void call.message(message)
    const question = this.questions.ask(message, this.standing.last ?? this)
    if (question) this.standing.ask(question)
  }

  #noticed(method: string, params: Json, message: Message): void {
    if (method === 'notifications/cancelled') return this.questions.withdraw(params.get('requestId'))
    const isProgress = method === 'notifications/progress'
    const call = isProgress ? this.#callOf(params.get('progressToken')) : this.callTold(method)
    if (call) void call.message(message)
    else if (!isProgress) this.standing.notice(method, params)
  }

  /** Our ids are numbers: an error with any other, or none, is about whatever is under way. */
  #answered(message: Extract<Message, { kind: 'response' | 'error' }>): void {
    const { kind, id } = message
    if (id && (kind === 'response' || id.kind === 'number')) return void this.#callOf(id)?.message(message)
    for (const call of [...this.calls]) void call.message(message)
  }

  #callOf(id: Json | undefined): C | undefined {
    const number = id?.asNumber()
    return this.calls.find(call => call.id === number)
  }

  async #end(): Promise<void> {
    for (const call of [...this.calls]) call.lose(DISCONNECTED)
    this.questions.clear()
    this.standing.close({ kind: 'result', result: Json.of({ resultType: 'complete' }) })
    this.postbox.clear(true)
    await this.disconnect()
  }
}
