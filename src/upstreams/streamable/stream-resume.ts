import type { Message } from '../../wire/json-rpc.ts'
import type { FailureDetails } from '../failures.ts'
import type { PendingRequest } from '../http/http-client.ts'
import type { HttpLink } from '../http/http-link.ts'
import { type ResponseEnd, type ResponseHandler, ResponseReader } from '../http/response-reader.ts'
import type { UpstreamCall } from '../session/call.ts'

const RETRY_MS = 1000
const LONGEST_RETRY_MS = 2000 // between attempts, whatever `retry` the server sent
const MOST_FAILURES = 3
const MOST_UNREACHABLE = 2 // nothing listens there: more attempts would only delay the failure

type StreamEnd = Extract<ResponseEnd, { readonly kind: 'closed' | 'failed' }>

/** Resumes the stream of a call that ended before its response; false if its events had no ids. */
export const resumeStream = (
  call: UpstreamCall,
  link: HttpLink,
  headers: () => readonly string[],
  end: StreamEnd,
): boolean => {
  if (end.resume?.lastEventId === undefined) return false
  const stream = new ResumedStream(call, link, headers)
  call.continueIn(stream)
  return stream.resume(end)
}

/** Reads the rest of a call's stream by GET requests with `Last-Event-ID`, with backoff (2025-11-25, Resumability). */
class ResumedStream implements ResponseHandler, PendingRequest {
  readonly #call: UpstreamCall
  readonly #link: HttpLink
  readonly #headers: () => readonly string[]
  #lastEventId: string | undefined
  #retryMs = RETRY_MS
  #isPolled = false // the server has said when it wants to be asked again
  #failures = 0 // attempts in a row that read nothing
  #unreachable = 0 // attempts in a row that found nothing listening
  #sending: PendingRequest | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(call: UpstreamCall, link: HttpLink, headers: () => readonly string[]) {
    this.#call = call
    this.#link = link
    this.#headers = headers
  }

  /** Goes on after the last event; false where that is not known. */
  resume({ kind, resume: from }: StreamEnd): boolean {
    this.#lastEventId = from?.lastEventId ?? this.#lastEventId
    if (!from || this.#lastEventId === undefined) return false
    this.#retryMs = from.retryMs ?? this.#retryMs
    this.#isPolled ||= from.retryMs !== undefined
    // The server wants to be polled (2025-11-25, Streamable HTTP): so does the gateway, where its client can poll.
    if (kind === 'closed' && this.#isPolled) this.#call.exchange.closeStream?.(this.#retryMs)
    this.#connectIn(this.#retryMs)
    return true
  }

  abort(): void {
    clearTimeout(this.#timer)
    this.#sending?.abort()
  }

  started(status: number): void {
    if (status < 300) this.#failures = this.#unreachable = 0
  }

  received(): void {
    this.#call.touch()
  }

  message(message: Message): void | Promise<void> {
    return this.#call.message(message)
  }

  ended(end: ResponseEnd): void {
    if (this.#call.isDone) return this.#call.ended(end)
    if (end.kind === 'failed') this.#sending?.abort()
    if (end.kind === 'refused') return this.#failed(end.status >= 500)
    if (end.kind === 'accepted') return this.#call.ended(end)
    if (this.resume(end)) return
    if (end.kind === 'closed') return this.#call.ended(end)
    if (end.failure.reason === 'upstream_unreachable') this.#unreachable++
    this.#failed(true)
  }

  #failed(mayRetry: boolean): void {
    const isGone = this.#unreachable >= MOST_UNREACHABLE
    if (mayRetry && !isGone && ++this.#failures < MOST_FAILURES)
      return this.#connectIn(Math.min(LONGEST_RETRY_MS, this.#retryMs * 2 ** (this.#failures - 1)))
    const cause = isGone ? ' and cannot be reached (is it running?)' : ''
    const text = `lost the stream of ${this.#call.exchange.method}${cause}`
    const failure: FailureDetails = { reason: 'upstream_stream_lost', text }
    this.#call.failOrRetry(failure)
  }

  #connectIn(ms: number): void {
    this.#timer = setTimeout(() => {
      const { http, target, maxBytes } = this.#link
      const headers = [...this.#headers(), 'accept', 'text/event-stream', 'last-event-id', this.#lastEventId ?? '']
      this.#sending = http.send({ method: 'GET', target, headers, body: null }, new ResponseReader(this, maxBytes))
    }, ms)
  }
}
