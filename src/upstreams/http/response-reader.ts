import type { IncomingHttpHeaders } from 'node:http'
import { ERRORS } from '../../protocol/errors.ts'
import { Gather } from '../../wire/gather.ts'
import { Json } from '../../wire/json/json.ts'
import { JsonSyntaxError } from '../../wire/json/scan.ts'
import { type Incoming, type Message, readIncoming } from '../../wire/json-rpc.ts'
import { isEventStream } from '../../wire/media-type.ts'
import { EventTooLarge, SseDecoder, type SseEvent } from '../../wire/sse.ts'
import type { FailureDetails } from '../failures.ts'
import type { ResponseReceiver } from './http-client.ts'
import { errorBodyText } from './http-failures.ts'
import type { Redirect } from './redirect.ts'

/** How a reply was over. */
export type ResponseEnd =
  | { readonly kind: 'closed'; readonly isStream: boolean; readonly resume: ResumePoint | undefined } // read to its end
  | { readonly kind: 'accepted' } // a good status and no body
  | {
      readonly kind: 'refused'
      readonly status: number
      readonly headers: IncomingHttpHeaders
      readonly error: RpcErrorMessage | undefined
      readonly text?: string | undefined // the first line of its body
    }
  | { readonly kind: 'failed'; readonly failure: FailureDetails; readonly resume: ResumePoint | undefined }

/** A JSON-RPC error in the body of a refusal. */
export type RpcErrorMessage = Extract<Message, { kind: 'error' }>

/** Where and when to take up a stream that ended. */
export interface ResumePoint {
  readonly lastEventId: string | undefined
  readonly retryMs: number | undefined
}

/** Reads the messages of one reply. `ended` comes once and last. */
export interface ResponseHandler {
  started?(status: number, headers: IncomingHttpHeaders, from: Redirect): void
  /** May take an event before it is read as a message; true if so. */
  event?(event: SseEvent): boolean
  /** More of a body has arrived that is one message, however large. */
  received?(): void
  message(message: Message): void | Promise<void>
  ended(end: ResponseEnd): void
}

const REFUSAL_BYTES = 64 * 1024 // of an error page, nobody needs more
const MESSAGE_EVENTS: ReadonlySet<string> = new Set(['message', 'response', 'notification'])

/** Turns the bytes of a reply, JSON or event stream, into messages. */
export class ResponseReader implements ResponseReceiver {
  readonly #reader: ResponseHandler
  readonly #maxBytes: number
  readonly #body = new Gather()
  #headers: IncomingHttpHeaders = {}
  #status = 0
  #sentHeaders: readonly string[] = []
  #events: SseDecoder | undefined
  #waiting: Promise<void> | undefined
  #isOver = false

  constructor(reader: ResponseHandler, maxBytes: number) {
    this.#reader = reader
    this.#maxBytes = maxBytes
  }

  status(status: number, headers: IncomingHttpHeaders, from: Redirect, sent: readonly string[]): void {
    this.#status = status
    this.#sentHeaders = sent
    this.#headers = headers
    if (status < 300 && isEventStream(headers['content-type']))
      this.#events = new SseDecoder(event => this.#event(event), { maxBytes: this.#maxBytes })
    this.#reader.started?.(status, headers, from)
  }

  bytes(chunk: Buffer): void | Promise<void> {
    if (this.#isOver) return
    if (!this.#events) return this.#gather(chunk)
    this.#waiting = undefined
    try {
      this.#events.feed(chunk)
    } catch (error) {
      if (!(error instanceof EventTooLarge)) throw error
      this.failed({ reason: 'too_large', text: `sent an event of more than ${this.#maxBytes} bytes` })
    }
    return this.#waiting
  }

  end(): void {
    if (this.#isOver) return
    if (this.#events) return this.#end({ kind: 'closed', isStream: true, resume: this.#resume() })
    if (this.#status >= 300) return this.#end(this.#refused())
    if (this.#body.length === 0) return this.#end({ kind: 'accepted' })
    const incoming = readText(this.#body.take())
    if (incoming) {
      for (const message of messagesIn(incoming)) this.#reader.message(message)
      return this.#end({ kind: 'closed', isStream: false, resume: undefined })
    }
    if (this.#status === 202) return this.#end({ kind: 'accepted' }) // some write "Accepted"
    const type = this.#headers['content-type'] ?? 'a body without a type'
    this.failed({ reason: 'upstream_protocol', text: `answered something that is not JSON (${type})` })
  }

  failed(loss: FailureDetails): void {
    this.#end({ kind: 'failed', failure: loss, resume: this.#resume() })
  }

  #gather(chunk: Buffer): void {
    if (this.#status >= 300 && this.#body.length >= REFUSAL_BYTES) return
    this.#body.push(chunk)
    this.#reader.received?.()
    if (this.#body.length <= this.#maxBytes) return
    this.#body.clear()
    this.failed({ reason: 'too_large', text: `answered more than ${this.#maxBytes} bytes` })
  }

  #event(event: SseEvent): void {
    if (this.#isOver || event.data.length === 0 || this.#reader.event?.(event)) return
    for (const message of messagesOf(event)) {
      const waiting = this.#reader.message(message)
      if (waiting) this.#waiting = waiting
    }
  }

  #refused(): ResponseEnd {
    const body = this.#body.take()
    const incoming = body.length > 0 ? readText(body) : undefined
    const error = incoming && messagesIn(incoming).find(message => message.kind === 'error')
    const text = errorBodyText(body, this.#sentHeaders)
    return { kind: 'refused', status: this.#status, headers: this.#headers, error, text }
  }

  #resume(): ResumePoint | undefined {
    return this.#events && { lastEventId: sendable(this.#events.lastEventId), retryMs: waitable(this.#events.retry) }
  }

  #end(end: ResponseEnd): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#reader.ended(end)
  }
}

const LEAST_RETRY_MS = 50 // a server that says 0 is not asked in a loop
const MOST_RETRY_MS = 5 * 60_000 // beyond 2^31 a timer fires at once

const waitable = (ms: number | undefined): number | undefined =>
  ms === undefined ? undefined : Math.min(MOST_RETRY_MS, Math.max(LEAST_RETRY_MS, ms))

/** An event id as a header can carry it: in UTF-8, and only if it has no control characters. */
const sendable = (id: string | undefined): string | undefined => {
  const text = id === undefined ? undefined : Buffer.from(id).toString('latin1')
  return text === undefined || /[^\t\x20-\x7e\x80-\xff]/.test(text) ? undefined : text
}

const NOT_JSON: Message = { kind: 'invalid', id: undefined, reason: 'the event is not JSON' }

/** Whatever else a server names its events (ping, lifecycle, endpoint) is no message. */
const messagesOf = (event: SseEvent): readonly Message[] => {
  if (MESSAGE_EVENTS.has(event.event)) return messagesIn(readText(event.data) ?? NOT_JSON)
  return event.event === 'error' ? [readErrorEvent(event.data)] : []
}

/** `event: error` carries a bare `{code, message}`; it is about everything the stream was for. */
const readErrorEvent = (data: Buffer): Message => {
  const incoming = readText(data)
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

/** Undefined for what is no JSON. */
const readText = (bytes: Buffer): Incoming | undefined => {
  try {
    return readIncoming(bytes)
  } catch (error) {
    if (error instanceof JsonSyntaxError) return undefined
    throw error
  }
}
