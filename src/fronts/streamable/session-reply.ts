import type { Abort } from '../../protocol/cancellation.ts'
import type { RpcError } from '../../protocol/errors.ts'
import { EVENTS_REPLY, httpReply, JSON_REPLY } from '../../protocol/http-reply.ts'
import { transportRulesOf } from '../../protocol/revisions.ts'
import type { Json } from '../../wire/json/json.ts'
import type { FrontContext, FrontRequest } from '../http/front-request.ts'
import { httpRejection, type RejectedResponse } from '../http/http-rejection.ts'
import { expectsEvents, streamTo } from '../http/response.ts'
import { type CallOutcome, type Respond, ResponseCollector } from '../sessions/response-collector.ts'
import type { EventLog } from '../streams/event-log.ts'
import type { KeepAliveEntry } from '../streams/keep-alive.ts'
import type { StreamableSession } from './streamable-session.ts'

const COMMIT_MS = 100 // a longer call becomes a stream, so that its client can resume it after a lost connection
const DELIVERED_MS = 30_000 // lifetime of a finished stream whose last byte went to an open socket

/**
 * The reply to one POST of a legacy session, for one request or a batch: JSON if the responses are all there is to
 * send, an event stream otherwise. The stream outlives its socket.
 */
export class SessionReply extends ResponseCollector {
  readonly #context: FrontContext
  readonly #session: StreamableSession
  readonly #request: FrontRequest
  readonly #commit: NodeJS.Timeout | undefined
  readonly #isEvents: boolean
  readonly #ids: Json[] = [] // of its requests
  #stream: EventLog | undefined
  #keepAliveEntry: KeepAliveEntry | undefined
  #orphan: NodeJS.Timeout | undefined

  constructor(session: StreamableSession, request: FrontRequest, isBatch: boolean) {
    super(isBatch)
    this.#context = session.context
    this.#session = session
    this.#request = request
    this.#isEvents = expectsEvents(request, session.caller.revision)
    if (request.acceptsSse && !this.#isEvents) this.#commit = setTimeout(() => this.#openStream(), COMMIT_MS)
    request.response.on('close', () => this.#waitForReconnect())
  }

  override expect(call: Abort, id: Json | undefined): Respond {
    if (id) this.#ids.push(id)
    return super.expect(call)
  }

  get canSendMore(): boolean {
    return this.#request.acceptsSse
  }

  send(pieces: Buffer[], merge?: string): void | Promise<void> {
    if (this.canSendMore) return this.#openStream().append(pieces, merge)
  }

  /** Without a priming event, a client could not resume the stream before its first message. */
  closeStream(retryMs: number): void {
    const { priming } = transportRulesOf(this.#session.caller.revision)
    if (this.canSendMore && priming && !this.isComplete) this.#openStream().closeReader(retryMs)
  }

  replyHead(error?: RpcError): readonly string[] {
    if (this.#stream) return EVENTS_REPLY
    const rejection = error && this.rejection(error)
    if (rejection) return httpReply(rejection.status, rejection.headers)
    return this.#isEvents || !this.#request.acceptsJson ? EVENTS_REPLY : JSON_REPLY
  }

  protected override rejection(error: RpcError): RejectedResponse | undefined {
    return httpRejection(this.#context, this.#request, error)
  }

  /** The last outcome ends the reply. */
  protected override responded(outcome: CallOutcome): void {
    const { response, acceptsJson } = this.#request
    const isLast = this.isComplete
    if (this.#stream) {
      if (outcome !== 'none') void this.#stream.append(outcome)
    } else if (!isLast) return
    else if (this.isRejected) this.sendJson(response)
    else if (this.#isEvents) this.sendEvents(response)
    else if (acceptsJson) this.sendJson(response)
    else this.#openStream()
    if (isLast) this.#finish()
  }

  /** The socket has closed. The calls go on for a client that reconnects within `orphanMs`, each time anew. */
  #waitForReconnect(waitMs: number = this.#context.limits.orphanMs): void {
    if (this.isComplete) return
    this.#orphan = setTimeout(() => {
      const leftMs = this.#context.limits.orphanMs - (this.#stream?.unreadMs ?? Number.POSITIVE_INFINITY)
      if (leftMs > 0) this.#waitForReconnect(leftMs)
      else this.abortPending({ kind: 'expired' })
    }, waitMs).unref()
  }

  #openStream(): EventLog {
    if (this.#stream) return this.#stream
    clearTimeout(this.#commit)
    const stream = this.#session.openStream(this.#ids)
    this.#stream = stream
    this.#keepAliveEntry = this.#context.keepAlive.add(stream)
    this.#session.prime(stream)
    for (const body of this.responses) void stream.append(body)
    const { response } = this.#request
    if (!response.destroyed) streamTo(response, stream, this.#context.limits.stallMs, 0)
    return stream
  }

  #finish(): void {
    clearTimeout(this.#commit)
    clearTimeout(this.#orphan)
    const stream = this.#stream
    const session = this.#session // a variable: `this` would keep the socket as long as the retained log
    if (!stream) return
    if (this.#keepAliveEntry) this.#context.keepAlive.delete(this.#keepAliveEntry)
    const lifetimeMs = stream.hasReader ? DELIVERED_MS : this.#context.limits.orphanMs
    stream.finish()
    this.#context.retention.retain(stream, lifetimeMs, () => session.deleteStream(stream))
  }
}
