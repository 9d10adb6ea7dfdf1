import { NoAnswer, type RpcError, RpcFailure, rpcError } from '../protocol/errors.ts'
import { Json, type PlainObject } from '../wire/json/json.ts'

/** Why a server gave no answer; callers read it in `data.reason`. */
export type FailureReason =
  | 'upstream_unreachable' // not running, or a proxy in front of it says so
  | 'upstream_timeout' // connected, then silent
  | 'upstream_stream_lost' // the response broke off; the request may have run
  | 'upstream_lost' // the session or the process has ended
  | 'upstream_protocol' // the response is not valid MCP
  | 'upstream_auth' // it rejects the configured credentials
  | 'upstream_refused' // it rejects the request
  | 'upstream_redirect' // it redirects to an address that the gateway does not call
  | 'upstream_busy' // too many requests
  | 'pool_exhausted' // more callers than sessions
  | 'no_credentials' // none are configured for this caller
  | 'login_required' // the caller must log in at it first; the request has not run
  | 'login_impossible' // it wants a login that the gateway cannot start; the text says why
  | 'login_unavailable' // its authorization server does not answer
  | 'too_large'
  | 'no_replica' // no replica has the label that the server needs
  | 'replica_lost' // the replica it was reached through; the request may have run
  | 'replica_unreachable' // the replica that holds its session

/** A failure below JSON-RPC; `text` continues the sentence `Server "x" …`. */
export interface FailureDetails {
  readonly reason: FailureReason
  readonly text: string
  readonly retryMs?: number // until the gateway tries the server again, if known
  readonly stderr?: string // the last lines of a process; may quote what its caller sent
  readonly isRefused?: true // nothing listens at its address
  readonly isClosing?: true // the gateway ends the session or connection: this says nothing about the server
  readonly quoted?: string // `text` with the server's own words; may quote what its caller sent
  readonly url?: string // where the caller logs in; for this caller only
}

/** The details for callers that did not use the process or send the request: without stderr, the server's words and links. */
export const withoutQuotes = ({ stderr: _, quoted: __, url: ___, ...details }: FailureDetails): FailureDetails =>
  details

/** The details with the server's words in `text`: for the log, and for requests of the gateway's own. */
export const withQuote = ({ quoted, ...details }: FailureDetails): FailureDetails => ({
  ...details,
  text: quoted ?? details.text,
})

const LOGIN_REASONS: ReadonlySet<FailureReason> = new Set(['login_required', 'login_impossible', 'login_unavailable'])

/** Thrown by `open`; carries the error that the caller gets. */
export class UpstreamFailure extends RpcFailure {
  readonly server: string
  readonly details: FailureDetails

  constructor(server: string, details: FailureDetails, data: PlainObject = {}) {
    super(errorOfFailure(server, details, data))
    this.server = server
    this.details = details
  }

  get reason(): FailureReason {
    return this.details.reason
  }

  /** The server is there, and wants a login that this caller does not have. */
  get isAboutLogin(): boolean {
    return LOGIN_REASONS.has(this.details.reason)
  }

  /** The same failure for callers that did not send the request. */
  forOtherCallers(): UpstreamFailure {
    return new UpstreamFailure(this.server, withoutQuotes(this.details))
  }
}

/** A thrown value for callers that did not start the process or send the request. */
export const forOtherCallers = (thrown: unknown): unknown =>
  thrown instanceof UpstreamFailure &&
  (thrown.details.stderr ?? thrown.details.quoted ?? thrown.details.url) !== undefined
    ? thrown.forOtherCallers()
    : thrown

/** The gateway is closing the upstream, or a session of it whose client has left. */
export const DISCONNECTED: FailureDetails = { reason: 'upstream_lost', text: 'is being disconnected', isClosing: true }

/** The error for a caller: names the server, and quotes its words and the last lines of its process. */
export const errorOfFailure = (server: string, details: FailureDetails, data: PlainObject = {}): RpcError => {
  const { reason, text, stderr, quoted = text, retryMs, url, isClosing } = details
  const summary = `Server "${server}" ${text}`
  const quote = stderr ? `; it last wrote: ${stderr}` : ''
  const retry = retryMs === undefined ? '' : ` and is tried again in ${Math.ceil(retryMs / 1000)} s`
  const after = retryMs === undefined ? {} : { retryAfterMs: Math.round(retryMs) }
  const message = `Server "${server}" ${quoted}${retry}${quote}`
  const more = Json.of({ reason, upstream: server, ...after, ...(url !== undefined && { url }), ...data })
  return new NoAnswer(rpcError('internal', message, more), { summary, retryMs, isClosing })
}

/** The error for a caller after any thrown value. */
export const errorOfThrown = (server: string, thrown: unknown): RpcError =>
  thrown instanceof RpcFailure
    ? thrown.error
    : errorOfFailure(server, { reason: 'upstream_lost', text: 'could not be asked' })

/** The failure of a server that answers `initialize` with an error. */
export const failureOfHandshake = (message: string): FailureDetails => ({
  reason: 'upstream_protocol',
  text: 'refused initialize',
  quoted: `refused initialize: ${message}`,
})
