import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import type { Abort, AbortReason } from '../../protocol/cancellation.ts'
import { type RpcError, rpcError } from '../../protocol/errors.ts'
import type { RequestOrigin } from '../../protocol/exchange.ts'
import { Json } from '../../wire/json/json.ts'
import { encodeError } from '../../wire/json-rpc.ts'
import { SHUTTING_DOWN } from '../http/active-calls.ts'
import { clientAddress, type FrontContext, type FrontRequest } from '../http/front-request.ts'
import { httpRejection, type RejectedResponse } from '../http/http-rejection.ts'
import { sendEmpty, sendError, sendEvents, sendJson } from '../http/response.ts'
import { traceHeaders } from '../http/trace-headers.ts'

/** The bytes of a JSON-RPC response, or 'none' for a request that gets none because it was cancelled. */
export type CallOutcome = Buffer[] | 'none'

/** The error of a request whose answer was lost with the process that served it. */
export const GATEWAY_RESTARTED: RpcError = rpcError(
  'internal',
  'The gateway was restarted while this request was running: its result is lost; send it again if that is safe',
  Json.of({ reason: 'gateway_restarted' }),
)

const SESSION_ENDED = rpcError(
  'internal',
  'The session ended before the answer came',
  Json.of({ reason: 'session_ended' }),
)
const SESSION_MOVED = rpcError(
  'internal',
  'The session has moved to another replica, and the result of this request is lost. It may have been executed: check before you send it again',
  Json.of({ reason: 'replica_lost' }),
)
const ERRORS: Readonly<Partial<Record<AbortReason['kind'], RpcError>>> = {
  closing: SHUTTING_DOWN,
  gone: SESSION_ENDED,
  moved: SESSION_MOVED,
}

/** The response to an aborted request: none if the client cancelled it, or stayed away too long. */
export const abortOutcome = (id: Json, { kind }: AbortReason): CallOutcome => {
  const error = ERRORS[kind]
  return error ? encodeError(id, error) : 'none'
}

/** Takes the outcome of a request; `error` is what it encodes, if the call has failed. */
export type Respond = (outcome: CallOutcome, error?: RpcError) => void

/** Where the responses to one incoming message or batch go. */
export interface ResponseWriter {
  /** False if the client can only take the responses themselves. */
  readonly canSendMore: boolean
  /** Registers a request; the returned function must be called with its outcome. An invalid one may have no id. */
  expect(call: Abort, id: Json | undefined): Respond
  /** Sends a notification, or a request of the server. */
  send(pieces: Buffer[], merge?: string): void | Promise<void>
  /** The head of the HTTP response that brings the result, or this error: of `http-reply.ts`; undefined: not over HTTP. */
  replyHead?(error?: RpcError): readonly string[] | undefined
  /** Ends the stream, if the client can resume it; it should do so after that time. */
  closeStream?(retryMs: number): void
}

/** What an HTTP request says about its client besides the message. */
export interface MessageSource {
  readonly address: string | undefined
  readonly headers: IncomingHttpHeaders
  readonly trace: ReadonlyMap<string, string> | undefined // headers
}

/** The origin of an `initialize` over HTTP. */
export const handshakeOrigin = (
  request: FrontRequest,
  id: Json,
  params: Json,
): RequestOrigin & { readonly id: Json } => ({
  id,
  address: clientAddress(request),
  headers: request.raw.headers,
  initialize: params,
})

/** How most endpoints respond to messages that need no response, and to those they reject. */
export const EMPTY_RESPONDER = {
  sourceOf: (request: FrontRequest): MessageSource => ({
    address: clientAddress(request),
    headers: request.raw.headers,
    trace: traceHeaders(request.raw.headers),
  }),
  accept: ({ response }: FrontRequest): void => sendEmpty(response, 202),
  reject: ({ response }: FrontRequest, error: RpcError): void => sendError(response, 400, undefined, error),
}

const [OPEN, COMMA, CLOSE] = [Buffer.from('['), Buffer.from(','), Buffer.from(']')]

/** Collects the responses to the requests of one POST, in their order. */
export abstract class ResponseCollector implements ResponseWriter {
  abstract readonly canSendMore: boolean
  readonly #calls: Abort[] = []
  readonly #outcomes: (CallOutcome | undefined)[] = []
  readonly #isBatch: boolean
  #rejected: RejectedResponse | undefined

  constructor(isBatch: boolean) {
    this.#isBatch = isBatch
  }

  abstract send(pieces: Buffer[], merge?: string): void | Promise<void>

  /** One more outcome is there. */
  protected abstract responded(outcome: CallOutcome): void

  /** How the error of a request is sent if it is the whole response; undefined: as any other. */
  protected rejection(_error: RpcError): RejectedResponse | undefined {
    return undefined
  }

  protected get isComplete(): boolean {
    return this.#outcomes.length > 0 && this.#outcomes.every(outcome => outcome !== undefined)
  }

  /** The responses collected so far, without those of cancelled requests. */
  protected get responses(): Buffer[][] {
    return this.#outcomes.filter((outcome): outcome is Buffer[] => outcome !== undefined && outcome !== 'none')
  }

  expect(call: Abort, _id?: Json): Respond {
    this.#calls.push(call)
    const index = this.#outcomes.push(undefined) - 1
    return (outcome, error) => {
      this.#outcomes[index] = outcome
      if (error && !this.#isBatch) this.#rejected = this.rejection(error)
      this.responded(outcome)
    }
  }

  /** True if the only request was rejected by an HTTP status of its own. */
  protected get isRejected(): boolean {
    return this.#rejected !== undefined
  }

  /** Aborts the calls that have no outcome yet. */
  abortPending(reason: AbortReason): void {
    for (const [index, call] of this.#calls.entries()) if (this.#outcomes[index] === undefined) call.abort(reason)
  }

  /** Sends the responses as events, one each. */
  protected sendEvents(response: ServerResponse): void {
    const bodies = this.responses
    if (bodies.length === 0) sendEmpty(response, 202)
    else sendEvents(response, bodies)
  }

  /** Sends the responses as one JSON body; those of a batch as an array. */
  protected sendJson(response: ServerResponse): void {
    const bodies = this.responses
    const [first] = bodies
    if (!first) return sendEmpty(response, 202)
    if (!this.#isBatch) return sendJson(response, this.#rejected?.status ?? 200, first, this.#rejected?.headers)
    sendJson(response, 200, [OPEN, ...bodies.flatMap((body, i) => (i === 0 ? body : [COMMA, ...body])), CLOSE])
  }
}

/** Writes the responses as the body of the POST, once all of them are there. */
export class BodyWriter extends ResponseCollector {
  readonly canSendMore = false
  readonly #context: FrontContext
  readonly #request: FrontRequest

  constructor(context: FrontContext, request: FrontRequest, isBatch: boolean) {
    super(isBatch)
    this.#context = context
    this.#request = request
  }

  protected override rejection(error: RpcError): RejectedResponse | undefined {
    return httpRejection(this.#context, this.#request, error)
  }

  send(): void {}

  protected override responded(): void {
    const { response } = this.#request
    if (this.isComplete && !response.destroyed) this.sendJson(response)
  }
}
