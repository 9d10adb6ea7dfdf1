import type { IncomingHttpHeaders } from 'node:http'
import { NoAnswer, type RpcError, RpcFailure, rpcError } from '../protocol/errors.ts'
import { Json, type PlainObject } from '../wire/json/json.ts'

/** Why a server gave no answer, as `data.reason` tells callers. */
export type Reason =
  | 'upstream_unreachable' // nobody there, or a proxy in front of nobody
  | 'upstream_timeout' // connected, then silence
  | 'upstream_stream_lost' // the answer broke off; the request may have run
  | 'upstream_lost' // the session is gone
  | 'upstream_protocol' // it answered something that is no answer
  | 'upstream_auth' // it wants other credentials
  | 'upstream_refused' // it says no, for a reason of its own
  | 'upstream_redirect' // it sends us to a place where the gateway does not go
  | 'upstream_busy' // it asks us to come back later
  | 'pool_exhausted' // more callers than sessions
  | 'no_credentials' // nothing to call it with in this caller's name
  | 'too_large'

/** What went wrong below JSON-RPC; `text` continues the sentence `Server "x" …`. */
export interface Loss {
  readonly reason: Reason
  readonly text: string
  readonly retryMs?: number // until the server is tried again, where that is known
  readonly stderr?: string // the last lines of a process: they may quote what its caller sent
  readonly quoted?: string // `text` with the server's own words in it: they may quote what its caller sent
}

/** The loss without stderr and words of the server, for callers that did not use the process or send the request. */
export const withoutQuotes = ({ stderr: _, quoted: __, ...loss }: Loss): Loss => loss

/** The loss with the server's words in `text`: for the log, and where the gateway asked in its own name, not a user's. */
export const asOwn = ({ quoted, ...loss }: Loss): Loss => ({ ...loss, text: quoted ?? loss.text })

/** Thrown by `open`: there is no peer, and this is what to tell the caller. */
export class UpstreamFailure extends RpcFailure {
  readonly server: string
  readonly reason: Reason
  readonly loss: Loss

  constructor(server: string, loss: Loss, more: PlainObject = {}) {
    super(toError(server, loss, more))
    this.server = server
    this.reason = loss.reason
    this.loss = loss
  }

  /** The same failure for callers whose request it was not. */
  forOthers(): UpstreamFailure {
    return new UpstreamFailure(this.server, withoutQuotes(this.loss))
  }
}

/** What was thrown, for callers that did not start the process or send the request. */
export const forOthers = (thrown: unknown): unknown =>
  thrown instanceof UpstreamFailure && (thrown.loss.stderr ?? thrown.loss.quoted) !== undefined
    ? thrown.forOthers()
    : thrown

/** We are closing. */
export const DISCONNECTED: Loss = { reason: 'upstream_lost', text: 'is being disconnected' }

/** The error a caller sees for a loss: names the server, and quotes what it said and what its process wrote last. */
export const toError = (server: string, loss: Loss, more: PlainObject = {}): RpcError => {
  const { reason, text, stderr, quoted = text, retryMs } = loss
  const summary = `Server "${server}" ${text}`
  const quote = stderr ? `; it last wrote: ${stderr}` : ''
  const retry = retryMs === undefined ? '' : ` and is tried again in ${Math.ceil(retryMs / 1000)} s`
  const after = retryMs === undefined ? {} : { retryAfterMs: Math.round(retryMs) }
  const data = Json.of({ reason, upstream: server, ...after, ...more })
  return new NoAnswer(rpcError('internal', `Server "${server}" ${quoted}${retry}${quote}`, data), { summary, retryMs })
}

/** The loss of a server that refuses `initialize` with that message. */
export const lossOfHandshake = (message: string): Loss => ({
  reason: 'upstream_protocol',
  text: 'refused initialize',
  quoted: `refused initialize: ${message}`,
})

/** The error for whatever an attempt to reach the server threw. */
export const errorOf = (server: string, thrown: unknown): RpcError =>
  thrown instanceof RpcFailure ? thrown.error : toError(server, { reason: 'upstream_lost', text: 'could not be asked' })

const GATEWAYS: ReadonlySet<number> = new Set([502, 503, 504])
const HINTS: Readonly<Record<number, string>> = {
  400: '; it may speak another version of the protocol',
  404: ' (is the URL right?)',
  405: ' (is the URL right?)',
}

/** A reply whose status says no. */
export interface HttpRefusal {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text?: string | undefined // the first line of its body
}

/** What to tell of a reply whose status says no and whose body is no answer: the server's own words, and what to do. */
export const lossOfStatus = (refusal: HttpRefusal): Loss => {
  const { status, text } = refusal
  const loss = statusLoss(refusal, `HTTP ${status}`)
  return text ? { ...loss, quoted: statusLoss(refusal, `HTTP ${status}: "${text}"`).text } : loss
}

const statusLoss = ({ status, headers }: HttpRefusal, words: string): Loss => {
  if (status === 401 || (status === 403 && headers['www-authenticate'] !== undefined))
    return {
      reason: 'upstream_auth',
      text: `refused our credentials (${words}): check its "headers" in the configuration`,
    }
  if (status === 403)
    return { reason: 'upstream_refused', text: `refused the request (${words}): check its "url" and "headers"` }
  if (status === 413) return { reason: 'too_large', text: 'answered HTTP 413: the request is too large for it' }
  if (GATEWAYS.has(status)) return { reason: 'upstream_unreachable', text: `is not available (${words})` }
  const { location } = headers
  if (status < 400 && location)
    return {
      reason: 'upstream_protocol',
      text: `answered HTTP ${status} to ${location}: use that URL in the configuration`,
    }
  return { reason: 'upstream_protocol', text: `answered ${words}${HINTS[status] ?? ''}` }
}

/** Whether a status says something about what the server is; credentials, outages and haste do not. */
export const isEvidence = (status: number): boolean =>
  status >= 400 && status < 500 && status !== 401 && status !== 403 && status !== 408 && status !== 429

/** Where a request was when it failed. */
export type Phase = 'connect' | 'headers' | 'body'

const CLOSED: Readonly<Record<Phase, string>> = {
  connect: 'closed the connection',
  headers: 'closed the connection before answering',
  body: 'broke off its answer',
}

/** What to look at first, where it is not whether the server runs. */
const FIRST_LOOKS: Readonly<Record<string, string>> = {
  ENOTFOUND: 'is the name right?',
  EAI_AGAIN: 'does the name service answer?',
}

/** Translates an error of the HTTP client. */
export const lossOfError = (error: Error & { code?: unknown }, phase: Phase): Loss => {
  const code = typeof error.code === 'string' ? error.code : ''
  if (code === 'UND_ERR_DESTROYED' || code === 'UND_ERR_CLOSED') return DISCONNECTED
  if (code === 'REACH_REFUSED') return { reason: 'upstream_redirect', text: error.message }
  if (code === 'UND_ERR_INVALID_ARG')
    return { reason: 'upstream_protocol', text: `cannot be asked like this: ${error.message}` }
  if (phase === 'connect' || code === 'UND_ERR_CONNECT_TIMEOUT')
    return {
      reason: 'upstream_unreachable',
      text: `did not answer: ${detailOf(error)} (${FIRST_LOOKS[code] ?? 'is it running?'})`,
    }
  if (error.name === 'HTTPParserError' || code === 'UND_ERR_HEADERS_OVERFLOW')
    return { reason: 'upstream_protocol', text: `does not speak HTTP: ${error.message}` }
  return { reason: 'upstream_stream_lost', text: `${CLOSED[phase]}: ${detailOf(error)}` }
}

/** A name with several addresses fails with one error per address and no words of its own. */
const detailOf = (error: Error): string => {
  const first = error instanceof AggregateError ? (error.errors[0] as unknown) : error
  const cause = first instanceof Error ? first : error
  return cause.message || cause.name
}
