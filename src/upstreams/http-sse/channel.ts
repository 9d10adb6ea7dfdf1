import type { IncomingHttpHeaders } from 'node:http'
import { manners, type Revision } from '../../protocol/revisions.ts'
import type { Json } from '../../wire/json/json.ts'
import { join, type Message, requestPieces } from '../../wire/json-rpc.ts'
import { isEventStream } from '../../wire/media-type.ts'
import type { SseEvent } from '../../wire/sse.ts'
import { DISCONNECTED, type FailureDetails, UpstreamFailure } from '../failures.ts'
import type { PendingRequest, ResponseTimeouts } from '../http/http-client.ts'
import { failureOfStatus } from '../http/http-failures.ts'
import { type HttpLink, POST_HEADERS } from '../http/http-link.ts'
import type { Redirect } from '../http/redirect.ts'
import { type ResponseEnd, type ResponseHandler, ResponseReader } from '../http/response-reader.ts'
import type { Answered } from '../session/ask.ts'
import { tell } from '../session/tell.ts'
import { readClue } from './endpoint.ts'

/** Receives the messages of a channel. */
interface Hooks {
  message(message: Message): void
  /** The channel is over, after it was open. */
  lost(loss: FailureDetails): void
}

/** There is no channel; `isStream`: something that looked like one was. */
export class NoChannel extends UpstreamFailure {
  readonly isStream: boolean

  constructor(server: string, loss: FailureDetails, isStream: boolean) {
    super(server, loss)
    this.isStream = isStream
  }
}

const SILENT_MS = 1000 // for a first event of a server that accepted a request already
const CLOSED: FailureDetails = { reason: 'upstream_stream_lost', text: 'closed its event stream' }

/** An event stream of a server, and the address where it takes messages. */
export class Channel implements ResponseHandler {
  isHere = false // messages go to the address of the stream itself
  readonly #link: HttpLink
  #hooks: Hooks
  readonly #asked = new Map<number, (answered: Answered) => void>()
  #state: 'opening' | 'open' | 'over' = 'opening'
  #opened: (loss: FailureDetails | undefined) => void = () => {}
  #isStream = false
  #hasAccepted = false
  #sending: PendingRequest | undefined
  #timer: NodeJS.Timeout | undefined
  #from: Redirect
  #session: readonly string[] = []
  #posting: HttpLink
  #postHeaders: readonly string[] = []

  constructor(link: HttpLink, hooks: Hooks) {
    this.#link = link
    this.#hooks = hooks
    this.#posting = link
    this.#from = { target: link.target, keepsSecrets: true }
  }

  get isOpen(): boolean {
    return this.#state === 'open'
  }

  /**
   * Opens the stream and learns where to post; rejects with NoChannel.
   * `hasAccepted`: the server took a request at this very address, so that it need not name another.
   */
  open(hasAccepted: boolean): Promise<void> {
    this.#hasAccepted = hasAccepted
    return new Promise((resolve, reject) => {
      this.#opened = loss => {
        this.#opened = () => {}
        if (!loss) return resolve()
        this.close()
        reject(new NoChannel(this.#link.name, loss, this.#isStream))
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

  /** From now on another session hears what comes here. */
  handTo(hooks: Hooks): void {
    this.#hooks = hooks
  }

  /** From now on the server is told which revision was agreed on, if that revision wants it. */
  agree(revision: Revision): void {
    const version = manners(revision).versionHeader ? ['mcp-protocol-version', revision] : []
    this.#postHeaders = [...this.#posting.headers, ...this.#session, ...version, ...POST_HEADERS]
  }

  /** Sends one request of the gateway's own and waits for its answer, wherever it comes; never rejects. */
  ask(method: string, params: Json, id: number): Promise<Answered> {
    return new Promise(resolve => {
      const settle = (answered: Answered): void => {
        clearTimeout(timer)
        this.#asked.delete(id)
        resolve(answered)
      }
      const { responseTimeouts, endpointMs } = this.#link
      const ms = this.isHere ? endpointMs : responseTimeouts.headersMs
      const timer = setTimeout(() => settle(silence(method, ms)), ms)
      if (!this.isOpen) return settle(lost(CLOSED))
      this.#asked.set(id, settle)
      this.post(join(requestPieces(id, method, params)), [], this.#answerReader(settle), responseTimeouts)
    })
  }

  /** Posts a message; what comes back for it, if not on the channel, is for that reader. */
  post(
    body: Buffer,
    headers: readonly string[],
    reader: ResponseHandler,
    responseTimeouts?: ResponseTimeouts,
  ): PendingRequest {
    const { http, target, maxBytes } = this.#posting
    const request = {
      method: 'POST' as const,
      target,
      headers: [...this.#postHeaders, ...headers],
      body,
      responseTimeouts,
    }
    return http.send(request, new ResponseReader(reader, maxBytes))
  }

  /** Posts something that has no answer. */
  tell(pieces: readonly Buffer[], what: string, done?: () => void): void {
    tell(this.#posting, 'POST', this.#postHeaders, pieces, what, done)
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
      const type = headers['content-type'] ?? 'nothing that has a type'
      return this.#opened({ reason: 'upstream_protocol', text: `offers ${type} instead of an event stream` })
    }
    this.#from = from
    const session = headers['mcp-session-id']
    if (typeof session === 'string') this.#session = ['mcp-session-id', session]
    this.#timer = setTimeout(() => this.#late(), this.#hasAccepted ? SILENT_MS : this.#link.endpointMs)
  }

  event(event: SseEvent): boolean {
    if (this.#state !== 'opening') return false
    const clue = readClue(event, this.#from, this.#link.allowsCrossOriginEndpoint)
    if (clue.kind === 'there') this.#found(clue.endpoint)
    else if (clue.kind === 'here') this.#foundHere()
    else if (clue.kind === 'bad') this.#opened(clue.loss)
    return clue.kind !== 'here' // then it may be a message already
  }

  message(message: Message): void {
    if (message.kind !== 'response' && message.kind !== 'error') return this.#hooks.message(message)
    const asked = message.id && this.#asked.get(message.id.asNumber() ?? Number.NaN)
    const answered = toAnswered(message)
    if (asked) return asked(answered)
    if (message.kind === 'error' && message.id?.kind !== 'number') this.#settleAll(answered)
    this.#hooks.message(message)
  }

  ended(end: ResponseEnd): void {
    if (this.#state === 'over') return
    const loss = lossOf(end)
    if (this.#state === 'opening') return this.#opened(loss)
    this.#settleAll(lost(loss))
    this.close()
    this.#hooks.lost(loss)
  }

  #late(): void {
    if (this.#hasAccepted) return this.#foundHere()
    const text = `opened an event stream but named no endpoint within ${this.#link.endpointMs / 1000} s`
    this.#opened({ reason: 'upstream_timeout', text })
  }

  #foundHere(): void {
    this.isHere = true
    this.#found(this.#from)
  }

  #found(named: Redirect): void {
    clearTimeout(this.#timer)
    this.#state = 'open'
    if (!this.isHere) this.#session = []
    const { http, headers } = this.#link
    const endpoint = http.withScope(this.#from, named)
    this.#posting = { ...this.#link, target: endpoint.target, headers: http.headersFor(endpoint, headers) }
    this.#postHeaders = [...this.#posting.headers, ...this.#session, ...POST_HEADERS]
    this.#opened(undefined)
  }

  #answerReader(settle: (answered: Answered) => void): ResponseHandler {
    let isTaken = false
    return {
      started: status => {
        isTaken = status < 300
      },
      message: message => {
        // In the body of the very request, whatever is an error is about it.
        if (message.kind === 'error' && message.id?.kind !== 'number') settle(toAnswered(message))
        else this.message(message)
      },
      ended: end => {
        if (!isTaken) settle(end.kind === 'closed' ? lost(CLOSED) : end)
      },
    }
  }

  #settleAll(answered: Answered): void {
    for (const settle of [...this.#asked.values()]) settle(answered)
  }
}

const lost = (loss: FailureDetails): Answered => ({ kind: 'failed', failure: loss, resume: undefined })

const silence = (method: string, ms: number): Answered =>
  lost({ reason: 'upstream_timeout', text: `did not answer ${method} within ${ms / 1000} s` })

const toAnswered = (message: Extract<Message, { kind: 'response' | 'error' }>): Answered =>
  message.kind === 'response'
    ? { kind: 'response', status: 200, headers: {}, result: message.result }
    : { kind: 'error', ...message.error, data: message.error.data }

const lossOf = (end: ResponseEnd): FailureDetails => {
  if (end.kind === 'refused') return failureOfStatus(end)
  return end.kind === 'failed' ? end.failure : CLOSED
}
