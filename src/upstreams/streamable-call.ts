import type { Exchange, Frame } from '../protocol/exchange.ts'
import { Json } from '../wire/json.ts'
import { join, type Message, notificationPieces, requestPieces } from '../wire/json-rpc.ts'
import { Call } from './call.ts'
import { errorOf } from './failures.ts'
import type { Sending } from './http.ts'
import { addCallerHeaders, type Link, POST_HEADERS } from './link.ts'
import type { Questions } from './questions.ts'
import { Reply, type ReplyEnd, type Resume } from './reply.ts'

/** What a call needs of the session it belongs to. */
export interface Home {
  readonly link: Link
  readonly questions: Questions
  readonly sessionId: string | undefined
  readonly hearsAnswersElsewhere: boolean // a GET stream is open, and answers may come there
  headers(): string[]
  post(pieces: Buffer[], what: string): void
  strayed(message: Message): void
  /** Starts a new session in place of that one, together with everybody who found out. */
  renew(lost: string | undefined): Promise<void>
  finished(call: StreamableCall, frame: Frame | undefined): void
}

const METHOD_NOT_FOUND = -32601
const RETRY_MS = 1000
const LEAST_RETRY_MS = 50
const MOST_FAILURES = 5

/** A call within a legacy session over Streamable HTTP. */
export class StreamableCall extends Call {
  readonly #home: Home
  #sessionId: string | undefined
  #hasBegun = false
  #hasRenewed = false
  #questions = 0
  #resume: Resume | undefined
  #failures = 0 // resumes in a row that came to nothing

  constructor(home: Home, exchange: Exchange, id: number) {
    super(home.link, exchange, id)
    this.#home = home
  }

  /** The server took the call in that session, so it goes down with it. */
  isBoundTo(sessionId: string | undefined): boolean {
    return this.#hasBegun && this.#sessionId === sessionId
  }

  began(status: number): void {
    this.#hasBegun = status < 300
    if (this.#hasBegun) this.#failures = 0
  }

  protected send(): Sending {
    const { method, caller } = this.exchange
    const { link } = this.#home
    this.#sessionId = this.#home.sessionId
    this.#hasBegun = false
    this.#resume = undefined
    const headers = addCallerHeaders([...this.#home.headers(), ...POST_HEADERS], caller)
    const body = join(requestPieces(this.id, method, this.params))
    return link.http.send({ method: 'POST', target: link.target, headers, body }, new Reply(this, link.maxBytes))
  }

  protected asked(message: Extract<Message, { kind: 'request' }>): void | Promise<void> {
    if (message.method === 'ping') return this.strayed(message)
    const question = this.#home.questions.ask(message, this, () => {
      if (--this.#questions === 0 && !this.isDone) this.touch()
    })
    if (!question) return
    this.#questions++
    const waiting = this.deliver(question)
    // The server waits for a person now: its silence means nothing.
    if (this.#questions > 0) this.hold()
    return waiting
  }

  override touch(): void {
    if (this.#questions > 0) this.hold()
    else super.touch()
  }

  protected strayed(message: Message): void {
    this.#home.strayed(message)
  }

  protected recover(end: ReplyEnd): boolean {
    switch (end.kind) {
      case 'accepted':
        return this.#home.hearsAnswersElsewhere
      case 'refused':
        return this.#resume ? this.#resumeFailed(end.status >= 500) : this.#recoverSession(end)
      case 'closed':
        return this.#takeUp(end.resume)
      case 'lost':
        if (this.#takeUp(end.resume)) return true
        return this.#resume ? this.#resumeFailed(true) : false
    }
  }

  protected cancelled(text: string): void {
    const params = Json.of({ requestId: this.id, reason: text })
    this.#home.post(notificationPieces('notifications/cancelled', params), 'cancellation')
  }

  protected finished(frame: Frame | undefined): void {
    this.#home.questions.abandon(this)
    this.#home.finished(this, frame)
  }

  /** A session the server does not know any more did not run the request: a new one may. */
  #recoverSession({ status, error }: Extract<ReplyEnd, { kind: 'refused' }>): boolean {
    const isGone =
      (status === 404 && error?.error.code !== METHOD_NOT_FOUND) ||
      (status === 400 && error !== undefined && /session/i.test(error.error.message))
    if (!isGone || this.#sessionId === undefined || this.#hasRenewed) return false
    this.#hasRenewed = true
    this.#home.renew(this.#sessionId).then(
      () => this.post(),
      (thrown: unknown) => this.fail(errorOf(this.link.name, thrown)),
    )
    return true
  }

  /** A stream that ended before the response and had ids goes on elsewhere. */
  #takeUp(resume: Resume | undefined): boolean {
    const lastEventId = resume?.lastEventId ?? this.#resume?.lastEventId
    if (!resume || lastEventId === undefined) return false
    this.#resume = { lastEventId, retryMs: resume.retryMs ?? this.#resume?.retryMs }
    this.#resumeLater(this.#resume.retryMs ?? RETRY_MS)
    return true
  }

  #resumeFailed(isWorthTrying: boolean): boolean {
    if (!isWorthTrying || ++this.#failures >= MOST_FAILURES) {
      this.lose({ reason: 'upstream_stream_lost', text: `lost the stream of ${this.exchange.method}` })
      return true
    }
    this.#resumeLater((this.#resume?.retryMs ?? RETRY_MS) * 2 ** this.#failures)
    return true
  }

  #resumeLater(ms: number): void {
    this.later(Math.max(LEAST_RETRY_MS, ms), () => {
      const { link } = this.#home
      const lastEventId = this.#resume?.lastEventId ?? ''
      const headers = [...this.#home.headers(), 'accept', 'text/event-stream', 'last-event-id', lastEventId]
      this.sending = link.http.send(
        { method: 'GET', target: link.target, headers, body: null },
        new Reply(this, link.maxBytes),
      )
    })
  }
}
