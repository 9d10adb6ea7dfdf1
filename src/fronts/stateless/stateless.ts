import { Abort, NEVER } from '../../protocol/cancellation.ts'
import { type RpcError, statusOf } from '../../protocol/errors.ts'
import type { Frame, RequestOrigin } from '../../protocol/exchange.ts'
import { EVENTS_REPLY, httpReply, JSON_REPLY } from '../../protocol/http-reply.ts'
import { NOTIFICATIONS } from '../../protocol/notifications.ts'
import { MODERN } from '../../protocol/revisions.ts'
import { Json } from '../../wire/json/json.ts'
import {
  type ByteText,
  encodeError,
  encodeNotification,
  encodeResult,
  type Message,
  resultBody,
} from '../../wire/json-rpc.ts'
import { clientAddress, type FrontContext, type FrontRequest, requestOwner } from '../http/front-request.ts'
import { httpRejection } from '../http/http-rejection.ts'
import { readQuery } from '../http/request-url.ts'
import { sendEmpty, sendError, sendJson, streamTo } from '../http/response.ts'
import { withTraceContext } from '../http/trace-headers.ts'
import { EventLog, mergeKey } from '../streams/event-log.ts'
import type { KeepAliveEntry } from '../streams/keep-alive.ts'
import { endAtExpiry } from '../streams/token-expiry.ts'
import {
  carriedHeaders,
  isListen,
  modernParams,
  modernResult,
  readEnvelope,
  rejectQuestion,
  shutdownFrame,
} from './envelope.ts'

type RequestMessage = Message & { kind: 'request' }
type NotificationMessage = Message & { kind: 'notification' }

const COMMIT_MS = 10_000 // after that the response becomes a stream, and its status can no longer be chosen

/** Serves 2026-07-28 over HTTP: every POST is independent, and its response is its only stream. */
export const serveStateless = (
  context: FrontContext,
  request: FrontRequest,
  message: RequestMessage | NotificationMessage,
): void => {
  if (message.kind === 'notification') return serveNotification(context, request, message)
  const { raw, response, workspace, principal, policy, scopes } = request
  const { id, method, params } = message
  const reading = readEnvelope(method, params, raw.headers)
  if ('rejection' in reading) return sendError(response, reading.rejection.status, id, reading.rejection.error)
  const { revision, capabilities, info, logLevel, affinity = affinityInUrl(raw.url) } = reading.envelope
  const headers = carriedHeaders(raw)
  const reply = new StatelessReply(context, request, message)
  context.dispatch({
    kind: 'request',
    method,
    params: headers.size > 0 ? withTraceContext(params, headers) : params,
    caller: { workspace, principal, policy, scopes, revision, capabilities, info, logLevel, affinity, headers },
    signal: reply.abort,
    sink: frame => reply.take(frame),
    origin: reply.origin,
    record: undefined,
  })
}

/** `?affinity=` of the URL, for clients whose requests cannot be changed. */
const affinityInUrl = (url = ''): string | undefined =>
  url.includes('affinity=') ? (readQuery({ url }).get('affinity') ?? undefined) : undefined

/** The specification defines no client notification over HTTP; one of an extension goes to the server. */
const serveNotification = (
  { dispatch }: FrontContext,
  { raw, response, workspace, principal, policy, scopes }: FrontRequest,
  { method, params }: NotificationMessage,
): void => {
  sendEmpty(response, 202)
  if (method === NOTIFICATIONS.cancelled) return // over HTTP a client cancels by closing the stream
  const headers = carriedHeaders(raw)
  const caller = { workspace, principal, policy, scopes, revision: MODERN, capabilities: Json.empty, headers }
  dispatch({ kind: 'notification', method, params, caller, signal: NEVER, sink: () => {} })
}

/** The response to one POST: JSON if the result is the first frame, an event stream otherwise. */
class StatelessReply {
  readonly abort = new Abort()
  readonly origin: RequestOrigin
  readonly #context: FrontContext
  readonly #request: FrontRequest
  readonly #id: Json
  readonly #method: string
  readonly #commit: NodeJS.Timeout | undefined
  #log: EventLog | undefined
  #keepAliveEntry: KeepAliveEntry | undefined
  #isDone = false

  constructor(context: FrontContext, request: FrontRequest, message: RequestMessage) {
    this.#context = context
    this.#request = request
    this.#id = message.id
    this.#method = message.method
    const { headers } = request.raw
    this.origin = { id: message.id, address: clientAddress(request), headers, initialize: undefined, tap: undefined }
    if (request.acceptsSse) this.#commit = setTimeout(() => this.#openStream(), COMMIT_MS)
    if (isListen(message.method)) {
      context.activeCalls.addListening(this.abort, requestOwner(request))
      endAtExpiry(request.response, () => request.expires)
    } else context.activeCalls.add(this.abort)
    request.response.on('close', () => this.#close())
    this.abort.onAbort(reason => reason.kind === 'closing' && this.take(shutdownFrame(this.#method)))
  }

  take(frame: Frame): void | Promise<void> {
    if (this.#isDone) return
    switch (frame.kind) {
      case 'notice': {
        if (!this.#request.acceptsSse) return
        const pieces = encodeNotification(frame.method, modernParams(this.#method, frame.params, this.#id))
        this.origin.tap?.clientMessage('out', 'notification', frame.method, pieces)
        return this.#openStream().append(pieces, mergeKey(frame.method, frame.params))
      }
      case 'question':
        return rejectQuestion(frame)
      case 'result':
        return this.#succeed(frame.result)
      case 'failure':
        return this.#fail(frame.error)
    }
  }

  #succeed(result: Json): void {
    const sent = modernResult(this.#method, result, this.#id)
    const reply = this.origin.tap && (this.#isJson ? JSON_REPLY : EVENTS_REPLY)
    this.origin.tap?.clientMessage('out', 'result', undefined, { kind: 'response', id: this.#id, result: sent }, reply)
    if (this.#isJson) this.#finishJson(200, resultBody(this.#id, sent))
    else this.#finishStream(encodeResult(this.#id, sent))
  }

  #fail(error: RpcError): void {
    const pieces = encodeError(this.#id, error)
    const http = this.#log ? undefined : httpRejection(this.#context, this.#request, error)
    const status = http?.status ?? statusOf(error, 'modern')
    const json = { 'content-type': 'application/json', ...http?.headers }
    const reply = this.origin.tap && (this.#isJson || http ? httpReply(status, json) : EVENTS_REPLY)
    this.origin.tap?.clientMessage('out', 'error', undefined, pieces, reply)
    if (this.#isJson || http) this.#finishJson(status, pieces, http?.headers)
    else this.#finishStream(pieces)
  }

  /** Whether the answer is the whole response. */
  get #isJson(): boolean {
    return !this.#log && this.#request.acceptsJson
  }

  #finishJson(status: number, body: Buffer[] | ByteText, headers?: Readonly<Record<string, string>>): void {
    this.#isDone = true
    sendJson(this.#request.response, status, body, headers)
    this.#release()
  }

  #finishStream(pieces: Buffer[]): void {
    this.#isDone = true
    const log = this.#openStream()
    void log.append(pieces)
    log.finish()
    this.#release()
  }

  #openStream(): EventLog {
    if (this.#log) return this.#log
    const { limits, keepAlive } = this.#context
    this.#log = new EventLog(undefined, this.#context, requestOwner(this.#request))
    this.#keepAliveEntry = keepAlive.add(this.#log)
    streamTo(this.#request.response, this.#log, limits.stallMs)
    return this.#log
  }

  #close(): void {
    this.#release()
    this.#log?.clear()
    if (this.#isDone) return
    this.#isDone = true
    this.abort.abort({ kind: 'gone' })
  }

  #release(): void {
    clearTimeout(this.#commit)
    if (this.#keepAliveEntry) this.#context.keepAlive.delete(this.#keepAliveEntry)
    this.#context.activeCalls.delete(this.abort)
  }
}
