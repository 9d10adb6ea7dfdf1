import { Abort } from '../../protocol/cancellation.ts'
import { rpcError, statusOf } from '../../protocol/errors.ts'
import type { Frame } from '../../protocol/exchange.ts'
import { MODERN } from '../../protocol/revisions.ts'
import { Json } from '../../wire/json/json.ts'
import { errorPieces, type Message, notificationPieces, resultPieces } from '../../wire/json-rpc.ts'
import type { FrontContext, FrontRequest } from '../http/front-request.ts'
import { sendEmpty, sendError, sendJson, streamTo } from '../http/response.ts'
import { quotaOwner } from '../sessions/owner.ts'
import { EventLog } from '../streams/event-log.ts'
import { mergeName } from '../streams/merge-name.ts'
import { carriedHeaders, readEnvelope } from './envelope.ts'
import { modernResult, tagged } from './modern-result.ts'

type Request = Message & { kind: 'request' }
type Notification = Message & { kind: 'notification' }

const COMMIT_MS = 10_000 // until then a status may still be chosen
const LISTEN = 'subscriptions/listen'

/** 2026-07-28 over HTTP: every POST stands alone, and its response is the only stream it has. */
export const serveStateless = (house: FrontContext, visit: FrontRequest, message: Request | Notification): void => {
  if (message.kind === 'notification') return notify(house, visit, message)
  const reading = readEnvelope(visit.request.headers, message.method, message.params)
  if ('refusal' in reading) return sendError(visit.response, reading.refusal.status, message.id, reading.refusal.error)
  const { revision, capabilities, info, logLevel, affinity } = reading.envelope
  const reply = new StatelessReply(house, visit, message)
  house.dispatch({
    kind: 'request',
    method: message.method,
    params: message.params,
    caller: {
      workspace: visit.workspace,
      principal: visit.principal,
      policy: visit.policy,
      revision,
      capabilities,
      info,
      logLevel,
      affinity: affinity ?? affinityIn(visit.request.url),
      headers: carriedHeaders(visit.request.headers),
    },
    signal: reply.abort,
    sink: frame => reply.take(frame),
  })
}

/** `?affinity=` of the URL, for clients whose requests cannot be changed. */
const affinityIn = (url = ''): string | undefined =>
  url.includes('affinity=')
    ? (new URLSearchParams(url.slice(url.indexOf('?') + 1)).get('affinity') ?? undefined)
    : undefined

/** The specification defines none over HTTP; an extension's goes to the server. */
const notify = (house: FrontContext, visit: FrontRequest, { method, params }: Notification): void => {
  sendEmpty(visit.response, 202)
  if (method === 'notifications/cancelled') return // closing the stream is what cancels
  house.dispatch({
    kind: 'notification',
    method,
    params,
    caller: {
      workspace: visit.workspace,
      principal: visit.principal,
      policy: visit.policy,
      revision: MODERN,
      capabilities: Json.empty,
      headers: carriedHeaders(visit.request.headers),
    },
    signal: new Abort(),
    sink: () => {},
  })
}

/** Answers one POST: JSON when the answer is the first thing to say, an event stream otherwise. */
class StatelessReply {
  readonly abort = new Abort()
  readonly #house: FrontContext
  readonly #visit: FrontRequest
  readonly #id: Json
  readonly #method: string
  readonly #commit: NodeJS.Timeout | undefined
  #log: EventLog | undefined
  #stopKeepAlive: () => void = () => {}
  #isDone = false

  constructor(house: FrontContext, visit: FrontRequest, request: Request) {
    this.#house = house
    this.#visit = visit
    this.#id = request.id
    this.#method = request.method
    if (visit.takesSse) this.#commit = setTimeout(() => this.#stream(), COMMIT_MS)
    house.active.add(this.abort, this.#isListen)
    visit.response.on('close', () => this.#close())
    this.abort.onAbort(reason => reason.kind === 'closing' && this.#sayGoodbye())
  }

  get #isListen(): boolean {
    return this.#method === LISTEN
  }

  take(frame: Frame): void | Promise<void> {
    if (this.#isDone) return
    switch (frame.kind) {
      case 'notice':
        return this.#notice(frame.method, frame.params)
      case 'question': // modern callers are asked through results; nobody below should have sent this
        return frame.answer({ kind: 'error', error: rpcError('methodNotFound', 'This client takes no requests') })
      case 'result':
        return this.#finish(200, resultPieces(this.#id, modernResult(this.#method, frame.result, this.#id)))
      case 'failure':
        return this.#finish(statusOf(frame.error, 'modern'), errorPieces(this.#id, frame.error))
    }
  }

  #notice(method: string, params: Json): void | Promise<void> {
    if (!this.#visit.takesSse) return
    const pieces = notificationPieces(method, this.#isListen ? tagged(params, this.#id) : params)
    return this.#stream().append(pieces, { merge: mergeName(method, params) })
  }

  #finish(status: number, pieces: Buffer[]): void {
    this.#isDone = true
    if (!this.#log && this.#visit.takesJson) sendJson(this.#visit.response, status, pieces)
    else {
      const log = this.#stream()
      void log.append(pieces)
      log.finish()
    }
    this.#release()
  }

  #stream(): EventLog {
    if (this.#log) return this.#log
    const { limits, shelf, ticker } = this.#house
    this.#log = new EventLog(undefined, limits, shelf, quotaOwner(this.#visit))
    this.#stopKeepAlive = ticker.keepAlive(this.#log)
    streamTo(this.#visit.response, this.#log, { stallMs: limits.stallMs })
    return this.#log
  }

  /** The gateway closes: a listener is told so, a call fails. */
  #sayGoodbye(): void {
    if (this.#isListen) void this.take({ kind: 'result', result: Json.of({ resultType: 'complete' }) })
    else
      void this.take({
        kind: 'failure',
        error: rpcError('internal', 'The gateway is shutting down; send the request again'),
      })
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
    this.#stopKeepAlive()
    this.#house.active.delete(this.abort)
  }
}
