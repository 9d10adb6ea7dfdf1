import type { Caller, Dispatch, Exchange, Frame, Peer } from '../protocol/exchange.ts'
import { META } from '../protocol/meta.ts'
import { manners, type Revision, SERVED } from '../protocol/revisions.ts'
import { Json } from '../wire/json.ts'
import { join, type Message, notificationPieces, resultPieces } from '../wire/json-rpc.ts'
import { ask } from './ask.ts'
import { DISCONNECTED, type Loss, toError } from './failures.ts'
import { type Handshake, shakeHands } from './handshake.ts'
import { type Link, POST_HEADERS } from './link.ts'
import { Listening } from './listening.ts'
import { Questions } from './questions.ts'
import { type Reader, Reply } from './reply.ts'
import { Standing } from './standing.ts'
import { type Home, StreamableCall } from './streamable-call.ts'
import { forgetful } from './unanswered.ts'

interface Options {
  readonly holdMs: number // a question nobody can be asked yet
  readonly isDedicated: boolean // belongs to one client session and ends with its standing exchange
  readonly onClosed: () => void
}

const LISTENING_MS = 500 // a server that asks right after the handshake needs a stream to ask on

/** A legacy session over Streamable HTTP, as one caller. */
export class Session implements Home, Peer {
  readonly asks = true
  readonly link: Link
  readonly questions = new Questions((pieces, what) => this.post(pieces, what))
  lastUsed = Date.now()

  readonly #caller: Caller
  readonly #options: Options
  readonly #standing: Standing
  readonly #listening: Listening
  readonly #calls: StreamableCall[] = [] // a Map would keep dead calls alive, as SilenceWatch explains
  readonly #subscriptions = new Map<string, Json>()
  #level: Json | undefined
  #handshake: Handshake
  #renewing: Promise<void> | undefined
  #closing: Promise<void> | undefined
  #lastId: number

  private constructor(link: Link, caller: Caller, handshake: Handshake, options: Options) {
    this.link = link
    this.#caller = caller
    this.#handshake = handshake
    this.#options = options
    this.#lastId = 1
    this.#standing = new Standing({ holdMs: options.holdMs, expectsSomebody: options.isDedicated })
    this.#listening = new Listening({
      link,
      headers: () => this.headers(),
      message: message => this.strayed(message),
      gone: () => this.renew(this.sessionId),
    })
  }

  /** Shakes hands and opens the GET stream; rejects with UpstreamFailure. */
  static async open(link: Link, caller: Caller, options: Options): Promise<Session> {
    const session = new Session(link, caller, await shakeHands(link, caller, 1), options)
    await session.#settleIn()
    return session
  }

  get revision(): Revision {
    return this.#handshake.revision
  }

  get sessionId(): string | undefined {
    return this.#handshake.sessionId
  }

  get hearsAnswersElsewhere(): boolean {
    return this.#listening.isOpen
  }

  get isBusy(): boolean {
    return this.#calls.length > 0 || this.#standing.size > 0
  }

  readonly dispatch: Dispatch = exchange => {
    this.lastUsed = Date.now()
    if (exchange.kind === 'notification') return this.#notify(exchange)
    const local = LOCAL[exchange.method]
    if (this.#closing) return void exchange.sink({ kind: 'failure', error: toError(this.link.name, DISCONNECTED) })
    if (local && Object.hasOwn(LOCAL, exchange.method)) return local(this, exchange)
    const call = new StreamableCall(this, exchange, ++this.#lastId)
    this.#calls.push(call)
    call.start()
  }

  headers(): string[] {
    const { revision, sessionId } = this.#handshake
    const headers = [...this.link.headers]
    if (manners(revision).versionHeader) headers.push('mcp-protocol-version', revision)
    if (sessionId !== undefined) headers.push('mcp-session-id', sessionId)
    return headers
  }

  post(pieces: Buffer[], what: string): void {
    this.#send(pieces, forgetful(this.link, what))
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
        this.link.log.debug({ reason: message.reason }, 'dropped something that is no message')
    }
  }

  renew(lost: string | undefined): Promise<void> {
    if (lost !== this.sessionId) return this.#renewing ?? Promise.resolve()
    this.#renewing ??= this.#startOver().finally(() => {
      this.#renewing = undefined
    })
    return this.#renewing
  }

  finished(call: StreamableCall, frame: Frame | undefined): void {
    const at = this.#calls.indexOf(call)
    if (at >= 0) this.#calls.splice(at, 1)
    this.lastUsed = Date.now()
    if (frame?.kind === 'result') this.#remember(call.exchange)
  }

  /** The InitializeResult as a modern server would say it. */
  discover(exchange: Exchange): void {
    const { result } = this.#handshake
    const serverInfo = result.get('serverInfo')
    const meta = result.get('_meta') ?? Json.empty
    const discovered = result
      .without('protocolVersion', 'serverInfo')
      .with('resultType', 'complete')
      .with('supportedVersions', SERVED)
      .with('ttlMs', 0)
      .with('cacheScope', 'private')
      .with('_meta', serverInfo ? meta.with(META.serverInfo, serverInfo) : meta)
    void exchange.sink({ kind: 'result', result: discovered })
  }

  listen(exchange: Exchange): void {
    this.#standing.attach(exchange, this.#capabilities, () => {
      this.questions.abandon(exchange)
      this.lastUsed = Date.now()
      if (this.#options.isDedicated && this.#standing.size === 0) void this.close()
    })
  }

  /** Ends everything; the server is told, if it takes no longer than a request may. */
  close(): Promise<void> {
    this.#closing ??= this.#end()
    return this.#closing
  }

  get #capabilities(): Json | undefined {
    return this.#handshake.result.get('capabilities')
  }

  async #settleIn(): Promise<void> {
    if (this.#handshake.isImplied) return
    await this.#listening.start(LISTENING_MS)
    await new Promise<void>(resolve => {
      const pieces = notificationPieces('notifications/initialized', Json.empty)
      this.#send(pieces, forgetful(this.link, 'notifications/initialized', resolve))
    })
    if (!this.#closing) this.#listening.insist()
  }

  async #startOver(): Promise<void> {
    const lost = this.sessionId
    this.link.log.info({}, 'the server forgot the session; starting a new one')
    this.#handshake = await shakeHands(this.link, this.#caller, ++this.#lastId)
    if (this.#closing) return this.#delete()
    this.link.listens = true
    this.#listening.stop()
    this.questions.clear()
    for (const call of [...this.#calls]) if (call.isBoundTo(lost)) call.lose(GONE)
    await this.#settleIn()
    const again: [string, Json][] = [...this.#subscriptions.values()].map(params => ['resources/subscribe', params])
    if (this.#level) again.push(['logging/setLevel', this.#level])
    for (const [method, params] of again)
      await ask(this.link, [...this.headers(), ...POST_HEADERS], method, params, ++this.#lastId)
    this.#standing.changed(this.#capabilities)
  }

  #notify({ method, params }: Exchange): void {
    // Ours was sent with the handshake.
    if (method !== 'notifications/initialized') this.post(notificationPieces(method, params), method)
  }

  #asked(message: Extract<Message, { kind: 'request' }>): void {
    if (message.method === 'ping') return this.post(resultPieces(message.id, Json.empty), 'answer to ping')
    const question = this.questions.ask(message, this.#standing.last ?? this)
    if (question) this.#standing.ask(question)
  }

  #noticed(method: string, params: Json, message: Message): void {
    if (method === 'notifications/cancelled') return this.questions.withdraw(params.get('requestId'))
    if (method !== 'notifications/progress') return this.#standing.notice(method, params)
    void this.#callOf(params.get('progressToken'))?.message(message)
  }

  #answered(message: Extract<Message, { kind: 'response' | 'error' }>): void {
    const { id } = message
    if (id) return void this.#callOf(id)?.message(message)
    for (const call of [...this.#calls]) void call.message(message)
  }

  #callOf(id: Json | undefined): StreamableCall | undefined {
    const number = id?.asNumber()
    return this.#calls.find(call => call.id === number)
  }

  #remember({ method, params }: Exchange): void {
    const uri = params.get('uri')?.asString() ?? ''
    if (method === 'logging/setLevel') this.#level = params
    else if (method === 'resources/subscribe') this.#subscriptions.set(uri, params)
    else if (method === 'resources/unsubscribe') this.#subscriptions.delete(uri)
  }

  #send(pieces: Buffer[], reader: Reader): void {
    const { link } = this
    const headers = [...this.headers(), ...POST_HEADERS]
    const request = {
      method: 'POST' as const,
      target: link.target,
      headers,
      body: join(pieces),
      patience: link.patience,
    }
    link.http.send(request, new Reply(reader, link.maxBytes))
  }

  async #end(): Promise<void> {
    this.#options.onClosed()
    this.#listening.stop()
    for (const call of [...this.#calls]) call.lose(DISCONNECTED)
    this.questions.clear()
    this.#standing.close({ kind: 'result', result: Json.of({ resultType: 'complete' }) })
    if (this.sessionId !== undefined) await this.#delete()
  }

  #delete(): Promise<void> {
    const { link } = this
    const request = {
      method: 'DELETE' as const,
      target: link.target,
      headers: this.headers(),
      body: null,
      patience: link.patience,
    }
    return new Promise(resolve => {
      link.http.send(request, new Reply(forgetful(link, 'end of session', resolve), link.maxBytes))
    })
  }
}

const GONE: Loss = { reason: 'upstream_lost', text: 'ended the session this belonged to: start again' }

/** What a legacy server has no word for and the session answers itself. */
const LOCAL: Readonly<Record<string, (session: Session, exchange: Exchange) => void>> = {
  'server/discover': (session, exchange) => session.discover(exchange),
  'subscriptions/listen': (session, exchange) => session.listen(exchange),
}
