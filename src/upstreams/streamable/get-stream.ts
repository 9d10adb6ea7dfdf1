import type { IncomingHttpHeaders } from 'node:http'
import { backoffMs } from '../../std/time.ts'
import type { Message } from '../../wire/json-rpc.ts'
import { isEventStream } from '../../wire/media-type.ts'
import type { PendingRequest } from '../http/http-client.ts'
import type { HttpLink } from '../http/http-link.ts'
import { type ResponseEnd, type ResponseHandler, ResponseReader } from '../http/response-reader.ts'
import { isSessionGone } from '../session/session-gone.ts'
import type { StreamableTraits } from './streamable-transport.ts'

interface GetStreamOptions {
  readonly link: HttpLink
  readonly traits: StreamableTraits
  headers(): readonly string[]
  message(message: Message): void
  /** The server says that the session is over; rejects if no new one could be opened. */
  gone(): Promise<void>
  /** The stream broke off, and what it would have brought is lost. */
  cut(): void
  /** The stream is open again, and what the server sent meanwhile is lost. */
  reopened(): void
}

const RETRY_MS = 1000
const BACKOFF = { firstMs: RETRY_MS, longestMs: 30_000 }
const STEADY_MS = 30_000 // a server that ends streams sooner, and sends nothing on them, is asked less and less often
const MOST_UNSTEADY = 5 // streams in a row that ended sooner; then an interruption is told at most once in this time:
const TELL_MS = 60_000
const MOST_UNREACHABLE = 2 // attempts that find nothing listening, until answers are no longer expected
const NO_SUCH_STREAM: ReadonlySet<number> = new Set([405, 501])

/** Keeps the GET stream of a session open for as long as the server offers one. */
export class GetStream implements ResponseHandler {
  readonly #options: GetStreamOptions
  #sending: PendingRequest | undefined
  #timer: NodeJS.Timeout | undefined
  #lastEventId: string | undefined
  #retryMs = RETRY_MS
  #isStopped = true
  #isOpen = false
  #hasOpened = false // in this session
  #isContinued = false // an earlier process had the stream of this session
  #hasGap = false // messages of the server may have been missed
  #openedAt = 0
  #hasBrought = false // a message, by the stream that was opened last
  #unsteady = 0 // streams in a row that ended soon, brought nothing and cannot be resumed
  #telling: NodeJS.Timeout | undefined
  #toldAt = Number.NEGATIVE_INFINITY // of the last interruption
  #failures = 0
  #unreachable = 0 // attempts in a row that found nothing listening
  #settled: (() => void) | undefined

  constructor(options: GetStreamOptions) {
    this.#options = options
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  get hasOpened(): boolean {
    return this.#hasOpened || this.#isContinued
  }

  /** Opens the stream; resolves when the server has accepted or refused it, at the latest after `ms`. */
  start(ms: number): Promise<void> {
    if (!this.#options.traits.hasGetStream) return Promise.resolve()
    this.#isStopped = false
    return new Promise(resolve => {
      const timer = setTimeout(resolve, ms)
      this.#settled = () => {
        clearTimeout(timer)
        resolve()
      }
      this.#connect()
    })
  }

  /**
   * Opens the stream of a session that an earlier process had. It starts now: with a Last-Event-ID, questions that were
   * answered would come again.
   */
  continue(): void {
    if (!this.#options.traits.hasGetStream) return
    this.#isStopped = false
    this.#isContinued = true
    this.#connect()
  }

  /** Tries a stream again that was refused; some servers offer it only after `notifications/initialized`. */
  retryRefused(): void {
    if (this.#hasOpened || !this.#isStopped || !this.#options.traits.hasGetStream) return
    this.#isStopped = false
    this.#connect()
  }

  stop(): void {
    this.#isStopped = true
    this.#isOpen = this.#hasOpened = this.#isContinued = this.#hasGap = false
    this.#lastEventId = undefined
    this.#failures = 0
    clearTimeout(this.#timer)
    clearTimeout(this.#telling)
    this.#sending?.abort()
    this.#settled?.()
  }

  started(status: number, headers: IncomingHttpHeaders): void {
    this.#isOpen = status < 300 && isEventStream(headers['content-type'])
    if (!this.#isOpen) return
    this.#hasOpened = true
    this.#failures = 0
    this.#openedAt = Date.now()
    this.#hasBrought = false
    this.#settled?.()
    if (!this.#hasGap) return
    const waitMs = this.#unsteady < MOST_UNSTEADY ? 0 : this.#toldAt + TELL_MS - Date.now()
    if (waitMs <= 0) this.#reopened()
    else this.#telling = setTimeout(() => this.#reopened(), waitMs).unref()
  }

  get #isSteady(): boolean {
    return this.#hasBrought || Date.now() - this.#openedAt >= STEADY_MS
  }

  #reopened(): void {
    this.#hasGap = false
    this.#toldAt = Date.now()
    this.#options.reopened()
  }

  message(message: Message): void {
    this.#hasBrought = true
    this.#options.message(message)
  }

  ended(end: ResponseEnd): void {
    const wasOpen = this.#isOpen
    this.#isOpen = false
    this.#sending?.abort()
    if ('resume' in end) {
      this.#lastEventId = end.resume?.lastEventId ?? this.#lastEventId
      this.#retryMs = end.resume?.retryMs ?? this.#retryMs
    }
    const isUnreachable = end.kind === 'failed' && end.failure.reason === 'upstream_unreachable'
    this.#unreachable = isUnreachable ? this.#unreachable + 1 : 0
    const isLost = (wasOpen && this.#lastEventId === undefined) || this.#unreachable === MOST_UNREACHABLE
    const isLate = this.#isContinued && !this.#hasOpened // the client has been told of changes up to now only
    const isCut = wasOpen && this.#lastEventId === undefined
    this.#hasGap ||= isLate || isCut
    if (isCut) this.#unsteady = this.#isSteady ? 0 : this.#unsteady + 1
    clearTimeout(this.#telling)
    if (isLost && !this.#isStopped) this.#options.cut()
    this.#reconnectAfter(end, wasOpen)
    this.#settled?.()
  }

  #reconnectAfter(end: ResponseEnd, wasOpen: boolean): void {
    if (this.#isStopped) return
    const isRefused = end.kind === 'refused' && end.status < 500
    if (wasOpen || end.kind === 'failed' || (end.kind === 'refused' && !isRefused)) return this.#connectLater(wasOpen)
    if (isRefused && this.#isLost(end)) return this.#sessionGone()
    const isGone = isRefused && NO_SUCH_STREAM.has(end.status) && !this.#hasOpened
    if (isRefused && this.hasOpened && !isGone) {
      this.#lastEventId = undefined // the server may no longer know that event
      this.#hasGap = true
      return this.#connectLater(false) // it may still have the connection of an earlier process
    }
    if (isGone) this.#options.traits.setGetStream(false)
    this.stop()
  }

  /** The server does not know a session whose stream it has served; some servers say no more than 400. */
  #isLost(end: Extract<ResponseEnd, { kind: 'refused' }>): boolean {
    const isUnknown = this.#hasOpened && end.status === 400 && this.#lastEventId === undefined
    return this.hasOpened && (isUnknown || isSessionGone(end))
  }

  #sessionGone(): void {
    this.#options.gone().catch(() => {
      if (!this.#isStopped) this.#connectLater(false)
    })
  }

  #connectLater(wasOpen: boolean): void {
    const failures = wasOpen ? this.#unsteady - 1 : this.#failures++
    const backoff = failures < 0 ? 0 : backoffMs(BACKOFF, failures)
    this.#timer = setTimeout(() => this.#connect(), Math.max(this.#retryMs, backoff)).unref()
  }

  #connect(): void {
    const { http, target, timeoutMs, maxBytes } = this.#options.link
    const headers = [...this.#options.headers(), 'accept', 'text/event-stream']
    if (this.#lastEventId !== undefined) headers.push('last-event-id', this.#lastEventId)
    // Some servers write not even a header before their first event.
    const responseTimeouts = { headersMs: timeoutMs, bodyMs: 0 }
    this.#sending = http.send(
      { method: 'GET', target, headers, body: null, responseTimeouts, isLongLived: true },
      new ResponseReader(this, maxBytes),
    )
  }
}
