import type { IncomingHttpHeaders } from 'node:http'
import type { Message } from '../../wire/json-rpc.ts'
import { isEventStream } from '../../wire/media-type.ts'
import type { PendingRequest } from '../http/http-client.ts'
import type { HttpLink } from '../http/http-link.ts'
import { type ResponseEnd, type ResponseHandler, ResponseReader, type ResumePoint } from '../http/response-reader.ts'

interface Hooks {
  readonly link: HttpLink
  headers(): readonly string[]
  message(message: Message): void
  /** The server says that the session is over; rejects if there will be no new one yet. */
  gone(): Promise<void>
  /** The stream broke off, and what it would have said is lost. */
  cut(): void
}

const RETRY_MS = 1000
const LONGEST_MS = 30_000
const MOST_UNREACHABLE = 2 // attempts that find nothing listening, until answers are no longer expected
const NO_SUCH_STREAM: ReadonlySet<number> = new Set([405, 501])

/** Keeps the GET stream of a session open, for as long as the server offers one. */
export class Listening implements ResponseHandler {
  readonly #hooks: Hooks
  #sending: PendingRequest | undefined
  #timer: NodeJS.Timeout | undefined
  #lastEventId: string | undefined
  #retryMs = RETRY_MS
  #isStopped = true
  #isOpen = false
  #hasOpened = false // in this session
  #failures = 0
  #unreachable = 0 // attempts in a row that found nothing listening
  #settled: (() => void) | undefined

  constructor(hooks: Hooks) {
    this.#hooks = hooks
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  /** Opens the stream; settles when the server has taken or refused it, or soon in any case. */
  start(patienceMs: number): Promise<void> {
    if (!this.#hooks.link.hasGetStream) return Promise.resolve()
    this.#isStopped = false
    return new Promise(resolve => {
      const timer = setTimeout(resolve, patienceMs)
      this.#settled = () => {
        clearTimeout(timer)
        resolve()
      }
      this.#connect()
    })
  }

  /** Tries again what was refused; some servers want to be told first that the client is ready. */
  insist(): void {
    if (this.#hasOpened || !this.#isStopped || !this.#hooks.link.hasGetStream) return
    this.#isStopped = false
    this.#connect()
  }

  stop(): void {
    this.#isStopped = true
    this.#isOpen = this.#hasOpened = false
    this.#lastEventId = undefined
    this.#failures = 0
    clearTimeout(this.#timer)
    this.#sending?.abort()
    this.#settled?.()
  }

  started(status: number, headers: IncomingHttpHeaders): void {
    this.#isOpen = status < 300 && isEventStream(headers['content-type'])
    if (!this.#isOpen) return
    this.#hasOpened = true
    this.#failures = 0
    this.#settled?.()
  }

  message(message: Message): void {
    this.#hooks.message(message)
  }

  ended(end: ResponseEnd): void {
    const wasOpen = this.#isOpen
    this.#isOpen = false
    this.#sending?.abort()
    if ('resume' in end) this.#remember(end.resume)
    const isUnreachable = end.kind === 'failed' && end.failure.reason === 'upstream_unreachable'
    this.#unreachable = isUnreachable ? this.#unreachable + 1 : 0
    const isLost = (wasOpen && this.#lastEventId === undefined) || this.#unreachable === MOST_UNREACHABLE
    if (isLost && !this.#isStopped) this.#hooks.cut()
    this.#next(end, wasOpen)
    this.#settled?.()
  }

  #remember(resume: ResumePoint | undefined): void {
    this.#lastEventId = resume?.lastEventId ?? this.#lastEventId
    this.#retryMs = resume?.retryMs ?? this.#retryMs
  }

  #next(end: ResponseEnd, wasOpen: boolean): void {
    if (this.#isStopped) return
    const isRefused = end.kind === 'refused' && end.status < 500
    if (wasOpen || end.kind === 'failed' || (end.kind === 'refused' && !isRefused)) return this.#again(wasOpen)
    if (isRefused && this.#hasOpened && end.status === 404) return this.#gone()
    if (isRefused && this.#hasOpened) {
      this.#lastEventId = undefined // perhaps it no longer knows that event
      return this.#again(false)
    }
    if (isRefused && NO_SUCH_STREAM.has(end.status)) this.#hooks.link.hasGetStream = false
    this.stop()
  }

  #gone(): void {
    this.#hooks.gone().catch(() => {
      if (!this.#isStopped) this.#again(false)
    })
  }

  #again(wasOpen: boolean): void {
    const backoff = wasOpen ? 0 : Math.min(LONGEST_MS, RETRY_MS * 2 ** this.#failures++)
    const wait = Math.max(this.#retryMs, backoff * (0.5 + Math.random() / 2))
    this.#timer = setTimeout(() => this.#connect(), wait)
    this.#timer.unref()
  }

  #connect(): void {
    const { link } = this.#hooks
    const headers = [...this.#hooks.headers(), 'accept', 'text/event-stream']
    if (this.#lastEventId !== undefined) headers.push('last-event-id', this.#lastEventId)
    // Some servers write not even a header before their first event.
    const responseTimeouts = { headersMs: link.timeoutMs, bodyMs: 0 }
    const request = {
      method: 'GET' as const,
      target: link.target,
      headers,
      body: null,
      responseTimeouts,
      isLongLived: true,
    }
    this.#sending = link.http.send(request, new ResponseReader(this, link.maxBytes))
  }
}
