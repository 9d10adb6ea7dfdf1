import type { IncomingHttpHeaders } from 'node:http'
import { type Revision, transportRulesOf } from '../../protocol/revisions.ts'
import type { Json } from '../../wire/json/json.ts'
import { type ByteText, type Message, requestBody } from '../../wire/json-rpc.ts'
import { isEventStream } from '../../wire/media-type.ts'
import type { SseEvent } from '../../wire/sse.ts'
import { DISCONNECTED, type FailureDetails, UpstreamFailure } from '../failures.ts'
import type { PendingRequest, ResponseTimeouts } from '../http/http-client.ts'
import { failureOfStatus } from '../http/http-failures.ts'
import { type HttpLink, POST_HEADERS } from '../http/http-link.ts'
import type { Redirect } from '../http/redirect.ts'
import { type ResponseEnd, type ResponseHandler, ResponseReader } from '../http/response-reader.ts'
import { type Answered, answeredBy, type SendOutcome, sendMessage } from '../session/gateway-request.ts'
import { readEndpoint } from './endpoint.ts'

/** Receives the messages of a channel. */
interface ChannelListener {
  message(message: Message): void
  /** The channel was open and has ended. */
  lost(failure: FailureDetails): void
}

/** The server opened no channel; `isStream`: it opened an event stream, but named no endpoint that can be used. */
export class NoChannel extends UpstreamFailure {
  readonly isStream: boolean

  constructor(server: string, failure: FailureDetails, isStream: boolean) {
    super(server, failure)
    this.isStream = isStream
  }
}

const SILENT_MS = 1000 // for the first event of a server that accepted a POST at the same URL already
const CLOSED: FailureDetails = { reason: 'upstream_stream_lost', text: 'closed its event stream' }

/** The event stream of an HTTP+SSE server, and the endpoint where the server takes messages. */
export class SseChannel implements ResponseHandler {
  readonly #link: HttpLink
  readonly #pending = new Map<number, (answered: Answered) => void>() // the gateway's own requests, by id
  #listener: ChannelListener = { message: () => {}, lost: () => {} }
  #state: 'opening' | 'open' | 'over' = 'opening'
  #opened: (failure: FailureDetails | undefined) => void = () => {}
  #isStream = false
  #hasAccepted = false
  #postsToItself = false
  #sending: PendingRequest | undefined
  #timer: NodeJS.Timeout | undefined
  #from: Redirect
  #sessionHeaders: readonly string[] = []
  #endpoint: HttpLink
  #postHeaders: readonly string[] = []

  constructor(link: HttpLink) {
    this.#link = link
    this.#endpoint = link
    this.#from = { target: link.target, keepsSecrets: true }
  }

  get isOpen(): boolean {
    return this.#state === 'open'
  }

  /** The headers of every message. */
  get headers(): readonly string[] {
    return this.#postHeaders
  }

  /** Messages are posted to the URL of the stream itself. */
  get postsToItself(): boolean {
    return this.#postsToItself
  }

  /**
   * Opens the stream and reads its endpoint; rejects with NoChannel.
   * `hasAccepted`: the server accepted a POST at the URL of the stream, so it need not name another endpoint.
   */
  open(hasAccepted: boolean): Promise<void> {
    this.#hasAccepted = hasAccepted
    return new Promise((resolve, reject) => {
      this.#opened = failure => {
        this.#opened = () => {}
        if (!failure) return resolve()
        this.close()
        reject(new NoChannel(this.#link.name, failure, this.#isStream))
      }
      const { http, target, headers, responseTimeouts, maxBytes } = this.#link
      const request = {
        method: 'GET' as const,
        target,
        headers: [...headers, 'accept', 'text/event-stream'],
        body: null,
        responseTimeouts: { headersMs: responseTimeouts.headersMs, bodyMs: 0 },
        isLongLived: true,
      }
      this.#sending = http.send(request, new ResponseReader(this, maxBytes))
      if (this.#state === 'over') this.#sending.abort()
    })
  }

  /** From now on that listener receives the messages. */
  handTo(listener: ChannelListener): void {
    this.#listener = listener
  }

  /** From now on requests carry the agreed revision, if that revision has a header for it. */
  setRevision(revision: Revision): void {
    const version = transportRulesOf(revision).versionHeader ? ['mcp-protocol-version', revision] : []
    this.#postHeaders = [...this.#endpoint.headers, ...this.#sessionHeaders, ...version, ...POST_HEADERS]
  }

  /** Sends a request of the gateway's own and waits for its answer, in the reply or on the channel; never rejects. */
  sendRequest(method: string, params: Json, id: number): Promise<Answered> {
    return new Promise(resolve => {
      const settle = (answered: Answered): void => {
        clearTimeout(timer)
        this.#pending.delete(id)
        resolve(answered)
      }
      const { responseTimeouts, endpointMs } = this.#link
      const ms = this.#postsToItself ? endpointMs : responseTimeouts.headersMs
      const timer = setTimeout(() => settle(timedOut(method, ms)), ms)
      if (!this.isOpen) return settle(lost(CLOSED))
      this.#pending.set(id, settle)
      this.post(requestBody(id, method, params), [], this.#answerReader(settle), responseTimeouts)
    })
  }

  /** Sends a message that has no answer. */
  sendMessage(pieces: readonly Buffer[], what: string, done?: (outcome: SendOutcome) => void): void {
    sendMessage(this.#endpoint, 'POST', this.#postHeaders, pieces, what, done)
  }

  /** Posts a message; `reader` reads the reply to the POST. */
  post(
    body: Buffer | ByteText,
    headers: readonly string[],
    reader: ResponseHandler,
    responseTimeouts?: ResponseTimeouts,
  ): PendingRequest {
    const { http, target, maxBytes } = this.#endpoint
    const request = {
      method: 'POST' as const,
      target,
      headers: [...this.#postHeaders, ...headers],
      body,
      responseTimeouts,
    }
    return http.send(request, new ResponseReader(reader, maxBytes))
  }

  close(): void {
    this.#state = 'over'
    clearTimeout(this.#timer)
    this.#sending?.abort()
    this.#opened(DISCONNECTED)
    this.#settleAll(lost(DISCONNECTED))
  }

  started(status: number, headers: IncomingHttpHeaders, from: Redirect): void {
    if (status >= 300) return
    this.#isStream = isEventStream(headers['content-type'])
    if (!this.#isStream) {
      const type = headers['content-type'] ?? 'a body without a type'
      return this.#opened({ reason: 'upstream_protocol', text: `offers ${type} instead of an event stream` })
    }
    this.#from = from
    const session = headers['mcp-session-id']
    if (typeof session === 'string') this.#sessionHeaders = ['mcp-session-id', session]
    this.#timer = setTimeout(() => this.#noEndpoint(), this.#hasAccepted ? SILENT_MS : this.#link.endpointMs)
  }

  event(event: SseEvent): boolean {
    if (this.#state !== 'opening') return false
    const clue = readEndpoint(event, this.#from, this.#link.allowsCrossOriginEndpoint)
    if (clue.kind === 'named') this.#found(clue.endpoint)
    else if (clue.kind === 'same') this.#foundSame()
    else if (clue.kind === 'invalid') this.#opened(clue.failure)
    return clue.kind !== 'same' // then the event may be a message already
  }

  message(message: Message): void {
    if (message.kind !== 'response' && message.kind !== 'error') return this.#listener.message(message)
    const settle = message.id && this.#pending.get(message.id.asNumber() ?? Number.NaN)
    if (settle) return settle(answeredBy(message))
    if (message.kind === 'error' && message.id?.kind !== 'number') this.#settleAll(answeredBy(message))
    this.#listener.message(message)
  }

  ended(end: ResponseEnd): void {
    if (this.#state === 'over') return
    const failure = failureOf(end)
    if (this.#state === 'opening') return this.#opened(failure)
    this.#settleAll(lost(failure))
    this.close()
    this.#listener.lost(failure)
  }

  #noEndpoint(): void {
    if (this.#hasAccepted) return this.#foundSame()
    const text = `opened an event stream but named no endpoint within ${this.#link.endpointMs / 1000} s`
    this.#opened({ reason: 'upstream_timeout', text })
  }

  #foundSame(): void {
    this.#postsToItself = true
    this.#found(this.#from)
  }

  #found(named: Redirect): void {
    clearTimeout(this.#timer)
    this.#state = 'open'
    if (!this.#postsToItself) this.#sessionHeaders = []
    const { http, headers } = this.#link
    const endpoint = http.withScope(this.#from, named)
    this.#endpoint = { ...this.#link, target: endpoint.target, headers: http.headersFor(endpoint, headers) }
    this.#postHeaders = [...this.#endpoint.headers, ...this.#sessionHeaders, ...POST_HEADERS]
    this.#opened(undefined)
  }

  #answerReader(settle: (answered: Answered) => void): ResponseHandler {
    let isAccepted = false
    return {
      started: status => {
        isAccepted = status < 300
      },
      message: message => {
        // In the reply to the request itself, an error without a usable id is about that request.
        if (message.kind === 'error' && message.id?.kind !== 'number') settle(answeredBy(message))
        else this.message(message)
      },
      ended: end => {
        if (!isAccepted) settle(end.kind === 'closed' ? lost(CLOSED) : end)
      },
    }
  }

  #settleAll(answered: Answered): void {
    for (const settle of [...this.#pending.values()]) settle(answered)
  }
}

const lost = (failure: FailureDetails): Answered => ({ kind: 'failed', failure, resume: undefined })

const timedOut = (method: string, ms: number): Answered =>
  lost({ reason: 'upstream_timeout', text: `did not answer ${method} within ${ms / 1000} s` })

const failureOf = (end: ResponseEnd): FailureDetails => {
  if (end.kind === 'refused') return failureOfStatus(end)
  return end.kind === 'failed' ? end.failure : CLOSED
}
