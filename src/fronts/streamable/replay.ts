import { rpcError } from '../../protocol/errors.ts'
import { Json } from '../../wire/json/json.ts'
import { encodeError, idKey, readIncoming } from '../../wire/json-rpc.ts'
import type { FrontRequest } from '../http/front-request.ts'
import { type EventStream, openEventStream, sendError } from '../http/response.ts'
import { GATEWAY_RESTARTED } from '../sessions/response-collector.ts'
import type { StoredSession } from '../sessions/stored-session.ts'
import { type EventId, streamHeadKey } from '../streams/event-id.ts'
import { encodeLogEvent } from '../streams/event-log.ts'
import type { StreamableSession } from './streamable-session.ts'

const AT_ONCE = 1000 // events read from the store, which opens a row of thousands for each read
const MOST_EPOCHS = 32 // homes whose server-to-client streams are replayed

/** The errors of a resumption. */
export const RESUME_ERRORS = {
  malformed: rpcError('invalidRequest', 'Bad Request: Last-Event-ID is not an event id of this gateway'),
  unknown: rpcError(
    'invalidRequest',
    'Unknown Last-Event-ID: this session has no such stream, or it is no longer kept',
  ),
  tooOld: rpcError('invalidRequest', 'Last-Event-ID is too old: some of the events after it are no longer kept'),
  nothingLeft: rpcError('invalidRequest', 'Nothing is left of that stream'),
}

interface StoredEvent {
  readonly key: string
  readonly sequence: number
  readonly data: Buffer
}

/** Resumes a stream that a former process began, from what is stored of it. */
export class StreamReplay {
  readonly #session: StreamableSession
  readonly #stored: StoredSession
  readonly #request: FrontRequest
  readonly #event: EventId
  #stream: EventStream | undefined // from the first event on

  constructor(session: StreamableSession, stored: StoredSession, request: FrontRequest, event: EventId) {
    this.#session = session
    this.#stored = stored
    this.#request = request
    this.#event = event
  }

  /** Replays the server-to-client streams since then, and continues with the present one. */
  async continueServerStream(): Promise<void> {
    const { epoch: present } = this.#stored
    for (let epoch = Math.max(this.#event.epoch, present - MOST_EPOCHS); epoch < present; epoch++) {
      const isNamed = epoch === this.#event.epoch
      const after = isNamed ? this.#event.sequence : -1
      const keys = isNamed ? [this.#event.key] : this.#session.serverStreamKeys(epoch)
      for await (const event of this.#readAll(keys, after)) {
        if (isNamed && !this.#stream && event.sequence !== after + 1) return this.#reject(400, RESUME_ERRORS.tooOld)
        if (!(await this.#send(event))) return
      }
    }
    if (this.#session.isEnded || this.#request.response.destroyed) return this.#open().end()
    this.#session.listen()
    const log = this.#session.serverStream()
    const { response } = this.#request
    response.cork()
    this.#open().attach(log)
    this.#session.prime(log)
    response.uncork()
  }

  /** Replays the stream of a POST; requests that the former process did not answer get an error, once. */
  async finishPostStream(): Promise<void> {
    const { key, sequence, request } = this.#event
    const ids = request ? [request] : await this.#readHead(key)
    if (ids.length === 0) return this.#reject(400, RESUME_ERRORS.unknown)
    const unanswered = new Map(ids.map(id => [idKey(id), id]))
    let next = sequence + 1
    // A single answer is the last event, so that those before the named one need not be read.
    for await (const event of this.#read(key, ids.length === 1 ? sequence - 1 : -1)) {
      const answered = answeredBy(event.data)
      if (answered !== undefined) unanswered.delete(answered)
      if (event.sequence <= sequence) continue
      if (event.sequence !== next) return this.#reject(400, RESUME_ERRORS.tooOld)
      next++
      if (!(await this.#send(event))) return
    }
    for (const id of unanswered.values()) {
      const data = Buffer.concat(encodeError(id, GATEWAY_RESTARTED))
      await this.#stored.append(key, next, [data])
      if (!(await this.#send({ key, sequence: next++, data }))) return
    }
    // An empty stream would make the client reconnect for ever.
    if (this.#stream) this.#stream.end()
    else this.#reject(405, RESUME_ERRORS.nothingLeft)
  }

  /** The events of a stream that has one of these keys. */
  async *#readAll(keys: readonly string[], after: number): AsyncGenerator<StoredEvent> {
    for (const key of keys) yield* this.#read(key, after)
  }

  async *#read(key: string, after: number): AsyncGenerator<StoredEvent> {
    for (let last = after; ; ) {
      const events = await this.#stored.read(key, last, AT_ONCE)
      for (const { seq, data } of events) {
        last = seq
        yield { key, sequence: seq, data }
      }
      if (events.length === 0) return
    }
  }

  /** The ids of the requests of a stream whose key does not name them. */
  async #readHead(key: string): Promise<readonly Json[]> {
    const [head] = await this.#stored.read(streamHeadKey(key) ?? key, -1, 1)
    return head ? Json.parse(head.data).elements() : []
  }

  /** Questions are left out: the call that asked them has ended. False if the client has disconnected. */
  async #send({ key, sequence, data }: StoredEvent): Promise<boolean> {
    if (isQuestion(data)) return true
    return this.#open().write(encodeLogEvent(key, sequence, [data]))
  }

  #open(): EventStream {
    this.#stream ??= openEventStream(this.#request.response, this.#session.context.limits.stallMs)
    return this.#stream
  }

  #reject(status: 400 | 405, error: (typeof RESUME_ERRORS)['unknown']): void {
    if (this.#stream) return this.#stream.end() // a gap behind the first events: resuming after them gets the error
    const headers = status === 405 ? { allow: 'POST, DELETE' } : undefined
    sendError(this.#request.response, status, undefined, error, headers)
  }
}

const isQuestion = (data: Buffer): boolean => data.length > 0 && readIncoming(data).kind === 'request'

/** The key of the request that a message answers, if it is a response. */
const answeredBy = (data: Buffer): string | undefined => {
  const message = data.length > 0 ? readIncoming(data) : undefined
  return message && (message.kind === 'response' || message.kind === 'error') && message.id
    ? idKey(message.id)
    : undefined
}
