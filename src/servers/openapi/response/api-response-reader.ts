import type { IncomingHttpHeaders } from 'node:http'
import { ChunkBuffer } from '../../../wire/chunk-buffer.ts'
import { isEventStream } from '../../../wire/media-type.ts'
import { SseDecoder, type SseEvent } from '../../../wire/sse.ts'

/** Takes the response of an API. */
export interface ApiReceiver {
  status(status: number, headers: IncomingHttpHeaders): void
  /** `enough`: the rest is not read. Reading pauses until a returned promise settles. */
  bytes(chunk: Buffer): 'enough' | void | Promise<void>
}

/** A response that was read. */
export interface ApiResponse {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer // empty for an event stream
  readonly events: readonly SseEvent[] | undefined // undefined: it is no event stream
  readonly isCut: boolean // there was more
}

const MIB = 1024 * 1024
const ERROR_BYTES = 16 * 1024 // of the body of an error
const EVENT_BYTES = 4 * MIB // of all events of a stream
const MOST_EVENTS = 10_000

/** Gathers a response, within limits; the events of a stream are also passed on as they come. */
export class ApiResponseReader implements ApiReceiver {
  readonly #onEvent: (event: SseEvent, count: number) => void | Promise<void>
  readonly #body = new ChunkBuffer()
  #events: SseEvent[] | undefined
  #eventBytes = 0
  #decoder: SseDecoder | undefined
  #pause: Promise<void> | undefined
  #status = 0
  #headers: IncomingHttpHeaders = {}
  #isCut = false

  constructor(onEvent: (event: SseEvent, count: number) => void | Promise<void>) {
    this.#onEvent = onEvent
  }

  status(status: number, headers: IncomingHttpHeaders): void {
    this.#status = status
    this.#headers = headers
    if (status >= 300 || !isEventStream(headers['content-type'])) return
    this.#events = []
    this.#decoder = new SseDecoder(event => this.#event(event), { maxBytes: EVENT_BYTES })
  }

  bytes(chunk: Buffer): 'enough' | void | Promise<void> {
    if (this.#decoder) return this.#feed(this.#decoder, chunk)
    this.#body.push(chunk)
    if (this.#status < 300 || this.#body.length <= ERROR_BYTES) return
    this.#isCut = true
    return 'enough'
  }

  /** To be called once, when the response has ended. */
  finish(): ApiResponse {
    const body = this.#body.take()
    return {
      status: this.#status,
      headers: this.#headers,
      body: this.#isCut && !this.#events ? body.subarray(0, ERROR_BYTES) : body,
      events: this.#events,
      isCut: this.#isCut,
    }
  }

  #feed(decoder: SseDecoder, chunk: Buffer): 'enough' | void | Promise<void> {
    this.#pause = undefined
    try {
      decoder.feed(chunk)
    } catch {
      this.#isCut = true // an event of more than the limit
    }
    if (this.#isCut) return 'enough'
    return this.#pause
  }

  #event(event: SseEvent): void {
    if (this.#isCut || !this.#events || event.data.length === 0) return
    this.#eventBytes += event.data.length
    if (this.#eventBytes > EVENT_BYTES || this.#events.length >= MOST_EVENTS) {
      this.#isCut = true
      return
    }
    const kept = { ...event, data: Buffer.from(event.data) }
    this.#events.push(kept)
    const pause = this.#onEvent(kept, this.#events.length)
    if (pause) this.#pause = pause
  }
}
