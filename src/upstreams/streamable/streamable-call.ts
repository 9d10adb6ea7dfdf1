import type { Exchange } from '../../protocol/exchange.ts'
import { join, requestPieces } from '../../wire/json-rpc.ts'
import { errorOfThrown } from '../failures.ts'
import type { PendingRequest } from '../http/http-client.ts'
import { addCallerHeaders } from '../http/http-link.ts'
import { type ResponseEnd, ResponseReader, type ResumePoint } from '../http/response-reader.ts'
import { type Home, isSessionGone, SessionCall } from '../session/session-call.ts'

/** What a call needs of the session it belongs to. */
export interface StreamableHome extends Home {
  readonly sessionId: string | undefined
  readonly hearsAnswersElsewhere: boolean // a GET stream is open, and answers may come there
  readonly headers: readonly string[]
  readonly postHeaders: readonly string[]
  /** Starts a new session in place of that one, together with everybody who found out. */
  renew(lost: string | undefined): Promise<void>
}

const RETRY_MS = 1000
const MOST_WAIT_MS = 2000 // between attempts, whatever time the server asked for while it was there
const MOST_FAILURES = 3
const MOST_UNREACHABLE = 2 // nothing listens there: waiting for longer would only delay the bad news

/** A call within a legacy session over Streamable HTTP. */
export class StreamableCall extends SessionCall {
  isElsewhere = false // accepted; its answer comes on the GET stream
  readonly #home: StreamableHome
  #sessionId: string | undefined
  #hasBegun = false
  #hasRenewed = false
  #resume: ResumePoint | undefined
  #failures = 0 // resumes in a row that came to nothing
  #unreachable = 0 // those of them that found nothing listening

  constructor(home: StreamableHome, exchange: Exchange, id: number) {
    super(home, exchange, id)
    this.#home = home
  }

  /** The server took the call in that session, so it goes down with it. */
  isBoundTo(sessionId: string | undefined): boolean {
    return this.#hasBegun && this.#sessionId === sessionId
  }

  started(status: number): void {
    this.#hasBegun = status < 300
    if (this.#hasBegun) this.#failures = this.#unreachable = 0
  }

  protected send(): PendingRequest {
    const { method, caller } = this.exchange
    const { link } = this.#home
    this.#sessionId = this.#home.sessionId
    this.#hasBegun = this.isElsewhere = false
    this.#resume = undefined
    this.#failures = this.#unreachable = 0
    const headers = addCallerHeaders([...this.#home.postHeaders], caller)
    const body = join(requestPieces(this.id, method, this.params))
    return link.http.send(
      { method: 'POST', target: link.target, headers, body },
      new ResponseReader(this, link.maxBytes),
    )
  }

  protected recover(end: ResponseEnd): boolean {
    switch (end.kind) {
      case 'accepted':
        this.isElsewhere = this.#home.hearsAnswersElsewhere
        return this.isElsewhere
      case 'refused':
        return this.#resume ? this.#resumeFailed(end.status >= 500) : this.#recoverSession(end)
      case 'closed':
        return this.#takeUp(end.resume)
      case 'failed':
        if (this.#takeUp(end.resume)) return true
        if (end.failure.reason === 'upstream_unreachable') this.#unreachable++
        return this.#resume ? this.#resumeFailed(true) : false
    }
  }

  /** A session the server does not know any more did not run the request: a new one may. */
  #recoverSession(end: Extract<ResponseEnd, { kind: 'refused' }>): boolean {
    if (!isSessionGone(end) || this.#sessionId === undefined || this.#hasRenewed) return false
    this.#hasRenewed = true
    this.#home.renew(this.#sessionId).then(
      () => this.post(),
      (thrown: unknown) => this.fail(errorOfThrown(this.link.name, thrown)),
    )
    return true
  }

  /** A stream that ended before the response and had ids goes on elsewhere. */
  #takeUp(resume: ResumePoint | undefined): boolean {
    const lastEventId = resume?.lastEventId ?? this.#resume?.lastEventId
    if (!resume || lastEventId === undefined) return false
    this.#resume = { lastEventId, retryMs: resume.retryMs ?? this.#resume?.retryMs }
    this.#resumeLater(this.#resume.retryMs ?? RETRY_MS)
    return true
  }

  #resumeFailed(isWorthTrying: boolean): boolean {
    const isGone = this.#unreachable >= MOST_UNREACHABLE
    if (!isWorthTrying || isGone || ++this.#failures >= MOST_FAILURES) {
      const cause = isGone ? ' and cannot be reached (is it running?)' : ''
      this.lose({ reason: 'upstream_stream_lost', text: `lost the stream of ${this.exchange.method}${cause}` })
      return true
    }
    const wait = (this.#resume?.retryMs ?? RETRY_MS) * 2 ** (this.#failures - 1)
    this.#resumeLater(Math.min(MOST_WAIT_MS, wait))
    return true
  }

  #resumeLater(ms: number): void {
    this.later(ms, () => {
      const { link } = this.#home
      const lastEventId = this.#resume?.lastEventId ?? ''
      const headers = [...this.#home.headers, 'accept', 'text/event-stream', 'last-event-id', lastEventId]
      this.sending = link.http.send(
        { method: 'GET', target: link.target, headers, body: null },
        new ResponseReader(this, link.maxBytes),
      )
    })
  }
}
