import type { Caller, Exchange } from '../../protocol/exchange.ts'
import { manners, type Revision } from '../../protocol/revisions.ts'
import { Json } from '../../wire/json/json.ts'
import { notificationPieces } from '../../wire/json-rpc.ts'
import { errorOfThrown, type FailureDetails, UpstreamFailure } from '../failures.ts'
import { type HttpLink, POST_HEADERS } from '../http/http-link.ts'
import { type Answered, ask } from '../session/ask.ts'
import { type Handshake, shakeHands } from '../session/handshake.ts'
import { LegacySession, type SessionOptions } from '../session/session.ts'
import { tell } from '../session/tell.ts'
import { Listening } from './listening.ts'
import { StreamableCall, type StreamableHome } from './streamable-call.ts'

const LISTENING_MS = 500 // a server that asks right after the handshake needs a stream to ask on
const GONE: FailureDetails = { reason: 'upstream_lost', text: 'ended the session this belonged to: start again' }
const CUT: FailureDetails = { reason: 'upstream_stream_lost', text: 'broke off the stream the answer was to come on' }

/** A legacy session over Streamable HTTP, as one caller. */
export class StreamableSession extends LegacySession<StreamableCall> implements StreamableHome {
  headers: readonly string[] = []
  postHeaders: readonly string[] = []
  readonly #listening: Listening
  #handshake: Handshake | undefined
  #renewing: Promise<void> | undefined

  private constructor(link: HttpLink, caller: Caller, options: SessionOptions) {
    super(link, caller, options)
    this.#listening = new Listening({
      link,
      headers: () => this.headers,
      message: message => this.strayed(message),
      gone: () => this.renew(this.sessionId),
      cut: () => this.#cut(),
    })
  }

  /** Shakes hands and opens the GET stream; rejects with UpstreamFailure. */
  static async open(link: HttpLink, caller: Caller, options: SessionOptions): Promise<StreamableSession> {
    const session = new StreamableSession(link, caller, options)
    session.#adopt(await session.#shakeHands())
    await session.#settleIn()
    return session
  }

  get revision(): Revision {
    return this.#agreed.revision
  }

  get correlates(): boolean {
    return this.link.correlates
  }

  get hasBackChannel(): boolean {
    return this.sessionId !== undefined && this.link.hasGetStream
  }

  get sessionId(): string | undefined {
    return this.#handshake?.sessionId
  }

  get hearsAnswersElsewhere(): boolean {
    return this.#listening.isOpen
  }

  renew(lost: string | undefined): Promise<void> {
    if (lost !== this.sessionId) return this.#renewing ?? Promise.resolve()
    this.#renewing ??= this.#startOver().finally(() => {
      this.#renewing = undefined
    })
    return this.#renewing
  }

  protected get introduction(): Json {
    return this.#agreed.result
  }

  protected createCall(exchange: Exchange, id: number): StreamableCall {
    return new StreamableCall(this, exchange, id)
  }

  protected begin(call: StreamableCall): void {
    if (!this.#renewing) return call.start()
    this.#renewing.then(
      () => call.start(),
      (thrown: unknown) => call.fail(errorOfThrown(this.link.name, thrown)),
    )
  }

  protected callAsked(): StreamableCall | undefined {
    const call = this.calls.findLast(({ canBeAsked, isElsewhere }) => canBeAsked && isElsewhere)
    if (!call && this.calls.some(({ canBeAsked }) => canBeAsked)) this.link.correlates = false
    return call
  }

  protected callTold(): undefined {}

  protected transmit(pieces: Buffer[], what: string, done: () => void): void {
    tell(this.link, 'POST', this.postHeaders, pieces, what, done)
  }

  protected async disconnect(): Promise<void> {
    this.#listening.stop()
    // A session that is being opened in place of this one ends as soon as it is there.
    await Promise.all([this.#delete(), this.#renewing?.catch(() => {})])
  }

  get #agreed(): Handshake {
    if (!this.#handshake) throw new Error('a session without a handshake')
    return this.#handshake
  }

  #adopt(handshake: Handshake): void {
    const { revision, sessionId } = handshake
    const version = manners(revision).versionHeader ? ['mcp-protocol-version', revision] : []
    const session = sessionId === undefined ? [] : ['mcp-session-id', sessionId]
    this.headers = [...this.link.headers, ...version, ...session]
    this.postHeaders = [...this.headers, ...POST_HEADERS]
    this.#handshake = handshake
  }

  async #settleIn(): Promise<void> {
    if (this.#agreed.isImplied) return
    await this.#listening.start(LISTENING_MS)
    const pieces = notificationPieces('notifications/initialized', Json.empty)
    await new Promise<void>(resolve => tell(this.link, 'POST', this.postHeaders, pieces, 'readiness', resolve))
    if (!this.isClosing) this.#listening.insist()
  }

  async #startOver(): Promise<void> {
    const lost = this.sessionId
    this.link.log.info({}, 'the server forgot the session; starting a new one')
    this.#adopt(await this.#shakeHandsAgain())
    if (this.isClosing) return this.#delete()
    this.link.hasGetStream = true
    this.#listening.stop()
    this.questions.clear()
    this.postbox.clear()
    for (const call of [...this.calls]) if (call.isBoundTo(lost)) call.lose(GONE)
    await this.#settleIn()
    for (const [method, params] of this.told.again()) await this.#ask(this.postHeaders, method, params)
    this.announceChanges()
  }

  async #shakeHandsAgain(): Promise<Handshake> {
    try {
      return await this.#shakeHands()
    } catch (error) {
      // It answers, but is no server of this kind any more: whoever comes next has to find out what it is.
      if (error instanceof UpstreamFailure && error.reason === 'upstream_protocol') void this.close()
      throw error
    }
  }

  #shakeHands(): Promise<Handshake> {
    const { requiresHandshake: isRequired = false } = this.options
    const headers = [...this.link.headers, ...POST_HEADERS]
    // A server that is known to be modern may want this header on every POST, whatever the era of the request.
    const headersOf = (method: string) => (isRequired ? [...headers, 'mcp-method', method] : headers)
    const say = (method: string, params: Json) => this.#ask(headersOf(method), method, params)
    return shakeHands(this.link, this.caller, say, { isRequired })
  }

  #ask(headers: readonly string[], method: string, params: Json): Promise<Answered> {
    return ask(this.link, headers, method, params, this.nextId())
  }

  /** Nothing will bring the answers that were to come on the GET stream. */
  #cut(): void {
    for (const call of this.calls.filter(({ isElsewhere }) => isElsewhere)) call.lose(CUT)
  }

  #delete(): Promise<void> {
    if (this.sessionId === undefined) return Promise.resolve()
    return new Promise(resolve => tell(this.link, 'DELETE', this.headers, [], 'end of session', resolve))
  }
}
