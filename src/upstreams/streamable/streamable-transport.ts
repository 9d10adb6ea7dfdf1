import type { Caller } from '../../protocol/exchange.ts'
import { NOTIFICATIONS } from '../../protocol/notifications.ts'
import type { Revision } from '../../protocol/revisions.ts'
import { SingleFlight } from '../../std/single-flight.ts'
import { Json } from '../../wire/json/json.ts'
import { encodeNotification, requestBody } from '../../wire/json-rpc.ts'
import type { FailureDetails } from '../failures.ts'
import type { PendingRequest } from '../http/http-client.ts'
import { addCallerHeaders, type HttpLink, POST_HEADERS } from '../http/http-link.ts'
import { type ResponseEnd, ResponseReader } from '../http/response-reader.ts'
import type { Recovery, UpstreamCall } from '../session/call.ts'
import { type Answered, postRequest, sendMessage } from '../session/gateway-request.ts'
import { type Handshake, performHandshake, sessionIdIn } from '../session/handshake.ts'
import { SendQueue } from '../session/send-queue.ts'
import type { ServerSessionRecord } from '../session/server-session-record.ts'
import type { LegacySession } from '../session/session.ts'
import { isSessionGone } from '../session/session-gone.ts'
import type { SessionTransport } from '../session/session-transport.ts'
import { GetStream } from './get-stream.ts'
import { endSession, endUnusedSession, sessionHeaders } from './session-headers.ts'
import { resumeStream } from './stream-resume.ts'

/** What the sessions with one server have found out about it. */
export class StreamableTraits {
  #hasGetStream = true
  #correlates = true

  /** False once the server has said that it has no GET stream. */
  get hasGetStream(): boolean {
    return this.#hasGetStream
  }

  /** False once the server has asked elsewhere than on the stream of a call. */
  get correlates(): boolean {
    return this.#correlates
  }

  setGetStream(hasGetStream: boolean): void {
    this.#hasGetStream = hasGetStream
  }

  asksElsewhere(): void {
    this.#correlates = false
  }
}

interface StreamableOptions {
  readonly link: HttpLink
  readonly traits: StreamableTraits
  readonly requiresHandshake: boolean // the server is modern and need not accept one
  readonly record: ServerSessionRecord
}

const GET_STREAM_MS = 500 // a server that asks right after the handshake needs a stream to ask on
const SESSION_ENDED: FailureDetails = {
  reason: 'upstream_lost',
  text: 'ended the session this belonged to: start again',
}
const STREAM_CUT: FailureDetails = {
  reason: 'upstream_stream_lost',
  text: 'broke off the stream the answer was to come on',
}

/** Carries a legacy session over Streamable HTTP. A call is sent to the session that a handshake opened. */
export class StreamableTransport implements SessionTransport<Handshake> {
  readonly isShared = false
  readonly dialect = 'streamable'
  readonly link: HttpLink
  readonly #session: LegacySession<Handshake>
  readonly #caller: Caller
  readonly #options: StreamableOptions
  readonly #getStream: GetStream
  readonly #queue: SendQueue
  #headers: readonly string[] = []
  #postHeaders: readonly string[] = []
  readonly #renewing = new SingleFlight()

  constructor(session: LegacySession<Handshake>, caller: Caller, options: StreamableOptions) {
    const { link, traits } = options
    this.link = link
    this.#session = session
    this.#caller = caller
    this.#options = options
    this.#queue = new SendQueue({
      post: (pieces, what, done) => sendMessage(link, 'POST', this.#postHeaders, pieces, what, done),
      log: link.log,
    })
    this.#getStream = new GetStream({
      link,
      traits,
      headers: () => this.#headers,
      message: message => session.received(message),
      gone: () => this.#renew(session.handshake),
      cut: () => this.#streamCut(),
      reopened: () => void this.#streamReopened(),
    })
    options.record.onLost(() => void session.close())
  }

  get revision(): Revision {
    return this.#session.revision
  }

  get correlates(): boolean {
    return this.#options.traits.correlates
  }

  get hasBackChannel(): boolean {
    return this.#session.handshake.sessionId !== undefined && this.#options.traits.hasGetStream
  }

  get unsent(): number {
    return this.#queue.size
  }

  async open(): Promise<void> {
    const { stored, lastId } = this.#options.record
    this.#session.startAfter(lastId)
    if (!stored?.handshake) return this.#completeHandshake(await this.#initialize())
    if (!stored.isReady) return this.#completeHandshake(stored.handshake)
    // If the server has forgotten the session, its answer to the first call or to the GET says so.
    this.#adopt(stored.handshake)
    if (stored.hasStream) this.#getStream.continue()
    else void this.#getStream.start(GET_STREAM_MS)
  }

  send(call: UpstreamCall<Handshake>): PendingRequest | undefined {
    if (this.#renewing.running) {
      call.postAfter(this.#renewing.running)
      return undefined
    }
    const { method } = call.exchange
    const { http, target, maxBytes } = this.link
    call.begin(this.#session.handshake)
    const headers = addCallerHeaders([...this.#postHeaders], call.exchange)
    const { params } = call
    const body = requestBody(call.id, method, params)
    call.recordSent(params, headers)
    return http.send({ method: 'POST', target, headers, body }, new ResponseReader(call, maxBytes))
  }

  recover(call: UpstreamCall<Handshake>, end: ResponseEnd): Recovery {
    switch (end.kind) {
      case 'accepted':
        return this.#getStream.isOpen ? 'elsewhere' : undefined
      case 'refused': {
        const hasId = call.target?.sessionId !== undefined
        return hasId && isSessionGone(end) && call.renew(lost => this.#renew(lost)) ? 'handled' : undefined
      }
      default:
        return resumeStream(call, this.link, () => this.#headers, end) ? 'handled' : undefined
    }
  }

  post(pieces: Buffer[], what: string, onLost?: () => void): void {
    this.#queue.put(pieces, what, onLost)
  }

  findAsked(calls: readonly UpstreamCall<Handshake>[]): readonly UpstreamCall<Handshake>[] {
    const askable = calls.filter(({ canBeAsked }) => canBeAsked)
    const elsewhere = askable.filter(({ isElsewhere }) => isElsewhere)
    if (elsewhere.length === 0 && askable.length > 0) this.#options.traits.asksElsewhere()
    return elsewhere
  }

  async close(): Promise<void> {
    this.#getStream.stop()
    await this.#queue.close()
    // A session that is being opened in place of this one ends as soon as it is open.
    await Promise.all([this.#delete(), this.#renewing.running?.catch(() => {})])
  }

  #adopt(handshake: Handshake): void {
    this.#headers = sessionHeaders(this.link, handshake)
    this.#postHeaders = [...this.#headers, ...POST_HEADERS]
    this.#session.initialized(handshake)
  }

  #save(isReady: boolean): void {
    const { handshake } = this.#session
    const { sessionId } = handshake
    if (sessionId === undefined) return
    this.#options.record.save({ sessionId, handshake, isReady, hasStream: this.#getStream.hasOpened })
  }

  async #completeHandshake(handshake: Handshake): Promise<void> {
    this.#adopt(handshake)
    if (handshake.isImplied) return
    this.#save(false)
    await this.#getStream.start(GET_STREAM_MS)
    const pieces = encodeNotification(NOTIFICATIONS.initialized, Json.empty)
    await new Promise<void>(done =>
      sendMessage(this.link, 'POST', this.#postHeaders, pieces, 'initialized', () => done()),
    )
    if (this.#session.isClosing) return
    this.#getStream.retryRefused()
    this.#save(true)
  }

  /** Opens a new session in place of the lost one; callers that lost the same session share the new one. */
  #renew(lost: Handshake | undefined): Promise<void> {
    if (lost !== this.#session.handshake) return this.#renewing.running ?? Promise.resolve()
    return this.#renewing.run(() => this.#startOver(lost))
  }

  async #startOver(lost: Handshake): Promise<void> {
    const { link } = this
    link.log.info({}, 'server lost the session; opening a new one')
    const handshake = await this.#initializeAgain()
    if (this.#session.isClosing) return endUnusedSession(link, handshake, this.#options.record)
    this.#adopt(handshake)
    this.#options.traits.setGetStream(true)
    this.#getStream.stop()
    this.#session.clearQuestions()
    this.#queue.clear()
    const isLost = (call: UpstreamCall<Handshake>) => call.isAccepted && call.target === lost
    for (const call of this.#session.calls.filter(isLost)) call.failOrRetry(SESSION_ENDED)
    await this.#completeHandshake(handshake)
    await this.#replay()
    this.#session.announceMissed()
  }

  async #replay(): Promise<void> {
    for (const [method, params] of this.#session.replayRequests())
      await this.#request(this.#postHeaders, method, params)
  }

  /** The GET stream was interrupted. A server without session ids may be a new one, which knows no subscriptions. */
  async #streamReopened(): Promise<void> {
    if (this.#session.handshake.sessionId === undefined) await this.#replay()
    if (!this.#session.isClosing) this.#session.announceMissed()
  }

  async #initializeAgain(): Promise<Handshake> {
    try {
      return await this.#initialize()
    } catch (error) {
      this.#session.closeIfReplaced(error)
      throw error
    }
  }

  async #initialize(): Promise<Handshake> {
    const { requiresHandshake: isRequired } = this.#options
    let opened: string | undefined
    const headers = [...this.link.headers, ...POST_HEADERS]
    // A server that is known to be modern may want this header on every POST, whatever the era of the request.
    const headersOf = (method: string) => (isRequired ? [...headers, 'mcp-method', method] : headers)
    const send = async (method: string, params: Json): Promise<Answered> => {
      const answered = await this.#request(headersOf(method), method, params)
      if (answered.kind === 'response') opened = sessionIdIn(answered.headers) ?? opened
      return answered
    }
    try {
      return await performHandshake(this.link, this.#caller, send, { isRequired })
    } catch (error) {
      // For example because of its revision: the gateway cannot use the session that the server has opened.
      void endUnusedSession(this.link, { sessionId: opened }, this.#options.record)
      throw error
    }
  }

  #request(headers: readonly string[], method: string, params: Json): Promise<Answered> {
    return postRequest(this.link, headers, method, params, this.#session.nextId())
  }

  #streamCut(): void {
    for (const call of this.#session.calls.filter(({ isElsewhere }) => isElsewhere)) call.failOrRetry(STREAM_CUT)
  }

  /** Ends the session at the server, unless a later process or another replica goes on with it. */
  async #delete(): Promise<void> {
    const { record } = this.#options
    if (this.#session.handshake.sessionId === undefined) return
    const hasEnded = (await record.mayEnd()) && (await endSession(this.link, this.#headers)) === 'ended'
    record.closed(hasEnded)
  }
}
