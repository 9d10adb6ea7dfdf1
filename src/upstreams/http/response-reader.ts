import type { IncomingHttpHeaders } from 'node:http'
import { ERRORS } from '../../protocol/errors.ts'
import { ChunkBuffer } from '../../wire/chunk-buffer.ts'
import { Json } from '../../wire/json/json.ts'
import { JsonSyntaxError } from '../../wire/json/scan.ts'
import { type Incoming, type Message, readIncoming } from '../../wire/json-rpc.ts'
import { isEventStream } from '../../wire/media-type.ts'
import { EventTooLarge, SseDecoder, type SseEvent } from '../../wire/sse.ts'
import type { FailureDetails } from '../failures.ts'
import type { ResponseReceiver } from './http-client.ts'
import { errorBodyText } from './http-failures.ts'
import type { Redirect } from './redirect.ts'

/** How a response ended. */
export type ResponseEnd =
  | { readonly kind: 'closed'; readonly isStream: boolean; readonly resume: ResumePoint | undefined } // read completely
  | { readonly kind: 'accepted' } // a success without a body
  | {
      readonly kind: 'refused'
      readonly status: number
      readonly headers: IncomingHttpHeaders
      readonly error: RpcErrorMessage | undefined
      readonly text?: string | undefined // the first line of its body
    }
  | { readonly kind: 'failed'; readonly failure: FailureDetails; readonly resume: ResumePoint | undefined }

/** A JSON-RPC error in the body of an HTTP error. */
export type RpcErrorMessage = Extract<Message, { kind: 'error' }>

/** Where and when to resume a stream that ended. */
interface ResumePoint {
  readonly lastEventId: string | undefined
  readonly retryMs: number | undefined
}

/** Handles the messages of one response. `ended` is called once, last. */
export interface ResponseHandler {
  started?(status: number, headers: IncomingHttpHeaders, from: Redirect): void
  /** Called before an event is read as a message; true if it needs no more handling. */
  event?(event: SseEvent): boolean
  /** Called for each chunk of a body that is one message. */
  received?(): void
  message(message: Message): void | Promise<void>
  ended(end: ResponseEnd): void
}

const ERROR_BODY_BYTES = 64 * 1024 // the rest of a longer error page is ignored
const MESSAGE_EVENTS: ReadonlySet<string> = new Set(['message', 'response', 'notification'])

/** Reads the messages of a response, which is JSON or an event stream. */
export class ResponseReader implements ResponseReceiver {
  readonly #handler: ResponseHandler
  readonly #maxBytes: number
  readonly #body = new ChunkBuffer()
  #headers: IncomingHttpHeaders = {}
  #status = 0
  #sentHeaders: readonly string[] = []
  #events: SseDecoder | undefined
  #pause: Promise<void> | undefined
  #isEnded = false

  constructor(handler: ResponseHandler, maxBytes: number) {
    this.#handler = handler
    this.#maxBytes = maxBytes
  }

  status(status: number, headers: IncomingHttpHeaders, from: Redirect, sent: readonly string[]): void {
    this.#status = status
    this.#sentHeaders = sent
    this.#headers = headers
    if (status < 300 && isEventStream(headers['content-type']))
      this.#events = new SseDecoder(event => this.#event(event), { maxBytes: this.#maxBytes })
    this.#handler.started?.(status, headers, from)
  }

  bytes(chunk: Buffer): void | Promise<void> {
    if (this.#isEnded) return
    if (!this.#events) return this.#gather(chunk)
    this.#pause = undefined
    try {
      this.#events.feed(chunk)
    } catch (error) {
      if (!(error instanceof EventTooLarge)) throw error
      this.failed({ reason: 'too_large', text: `sent an event of more than ${this.#maxBytes} bytes` })
    }
    return this.#pause
  }

  end(): void {
    if (this.#isEnded) return
    if (this.#events) return this.#end({ kind: 'closed', isStream: true, resume: this.#resume() })
    if (this.#status >= 300) return this.#end(this.#refused())
    if (this.#body.length === 0) return this.#end({ kind: 'accepted' })
    const incoming = tryRead(this.#body.take())
    if (incoming) {
      for (const message of messagesIn(incoming)) this.#handler.message(message)
      return this.#end({ kind: 'closed', isStream: false, resume: undefined })
    }
    if (this.#status === 202) return this.#end({ kind: 'accepted' }) // some servers write "Accepted"
    const type = this.#headers['content-type'] ?? 'a body without a type'
    this.failed({ reason: 'upstream_protocol', text: `answered something that is not JSON (${type})` })
  }

  failed(failure: FailureDetails): void {
    this.#end({ kind: 'failed', failure, resume: this.#resume() })
  }

  #gather(chunk: Buffer): void {
    if (this.#status >= 300 && this.#body.length >= ERROR_BODY_BYTES) return
    this.#body.push(chunk)
    this.#handler.received?.()
    if (this.#body.length <= this.#maxBytes) return
    this.#body.clear()
    this.failed({ reason: 'too_large', text: `answered more than ${this.#maxBytes} bytes` })
  }

  #event(event: SseEvent): void {
    if (this.#isEnded || event.data.length === 0 || this.#handler.event?.(event)) return
    for (const message of messagesOf(event)) {
      const pause = this.#handler.message(message)
      if (pause) this.#pause = pause
    }
  }

  #refused(): ResponseEnd {
    const body = this.#body.take()
    const incoming = body.length > 0 ? tryRead(body) : undefined
    const error = incoming && messagesIn(incoming).find(message => message.kind === 'error')
    const text = errorBodyText(body, this.#sentHeaders)
    return { kind: 'refused', status: this.#status, headers: this.#headers, error, text }
  }

  #resume(): ResumePoint | undefined {
    return (
      this.#events && { lastEventId: headerValueOf(this.#events.lastEventId), retryMs: clampRetry(this.#events.retry) }
    )
  }

  #end(end: ResponseEnd): void {
    if (this.#isEnded) return
    this.#isEnded = true
    this.#handler.ended(end)
  }
}

const SHORTEST_RETRY_MS = 50 // against a busy loop with a server that sends 0
const LONGEST_RETRY_MS = 5 * 60_000

const clampRetry = (ms: number | undefined): number | undefined =>
  ms === undefined ? undefined : Math.min(LONGEST_RETRY_MS, Math.max(SHORTEST_RETRY_MS, ms))

/** An event id as a header value, in UTF-8; undefined if it has control characters. */
const headerValueOf = (id: string | undefined): string | undefined => {
  const text = id === undefined ? undefined : Buffer.from(id).toString('latin1')
  return text === undefined || /[^\t\x20-\x7e\x80-\xff]/.test(text) ? undefined : text
}

const NOT_JSON: Message = { kind: 'invalid', id: undefined, reason: 'the event is not JSON' }

/** Events with other names (ping, lifecycle, endpoint) are no messages. */
const messagesOf = (event: SseEvent): readonly Message[] => {
  if (MESSAGE_EVENTS.has(event.event)) return messagesIn(tryRead(event.data) ?? NOT_JSON)
  return event.event === 'error' ? [readErrorEvent(event.data)] : []
}

/** `event: error` carries a bare `{code, message}` about the request of the stream. */
const readErrorEvent = (data: Buffer): Message => {
  const incoming = tryRead(data)
  if (incoming?.kind === 'error') return incoming
  const error = incoming ? Json.parse(data) : undefined
  const message = error?.get('message')?.asString() ?? 'The server reported an error on its stream'
  return {
    kind: 'error',
    id: undefined,
    error: { code: error?.get('code')?.asNumber() ?? ERRORS.internal.code, message },
  }
}

const messagesIn = (incoming: Incoming): readonly Message[] =>
  incoming.kind === 'batch' ? incoming.messages : [incoming]

/** Undefined if the bytes are not JSON. */
const tryRead = (bytes: Buffer): Incoming | undefined => {
  try {
    return readIncoming(bytes)
  } catch (error) {
    if (error instanceof JsonSyntaxError) return undefined
    throw error
  }
}
