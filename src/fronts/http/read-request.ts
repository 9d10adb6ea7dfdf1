import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Admission, Admit } from '../../protocol/admission.ts'
import { type RpcError, RpcFailure, rpcError } from '../../protocol/errors.ts'
import type { Log } from '../../telemetry/log.ts'
import { BodyTooLarge, receiveBody } from '../../wire/http-body.ts'
import { Json } from '../../wire/json/json.ts'
import { JsonSyntaxError } from '../../wire/json/scan.ts'
import { type Incoming, readIncoming } from '../../wire/json-rpc.ts'
import { acceptsJson, acceptsSse, isJsonBody } from '../../wire/media-type.ts'
import type { RequestRouter } from '../cluster/route-request.ts'
import { findOversizedBody } from '../sessions/client-limits.ts'
import type { FrontContext, FrontRequest } from './front-request.ts'
import { rejectUnread, sendError } from './response.ts'

const NOT_JSON = rpcError('invalidRequest', 'Unsupported Media Type: Content-Type must be application/json')
const STORE_AWAY = rpcError(
  'internal',
  'The session cannot be looked up: the store of the gateway does not answer at the moment; send the request again',
  Json.of({ reason: 'store_away' }),
)

/**
 * Authenticates a request, reads the JSON-RPC message of a POST and calls `serve`, or responds with what is wrong.
 * With `hasMessage` false the body is left to `serve`.
 */
export type ReadRequest = (
  raw: IncomingMessage,
  response: ServerResponse,
  workspace: string,
  serve: ServeRequest,
  hasMessage?: boolean,
) => void

/** Serves an admitted request; `incoming` is the message of a POST, and `body` its text. */
export type ServeRequest = (request: FrontRequest, incoming: Incoming | undefined, body?: Buffer) => void

/** With a router, requests for sessions of other replicas are sent there. */
export const createRequestReader = (context: FrontContext, admit: Admit, router?: RequestRouter): ReadRequest => {
  const readRequest: ReadRequest = (raw, response, workspace, serve, hasMessage = true) => {
    const admission = admit(raw, workspace, response)
    if (!(admission instanceof Promise)) return serveAdmitted(raw, response, workspace, admission, serve, hasMessage)
    admission.then(
      decided => serveAdmitted(raw, response, workspace, decided, serve, hasMessage),
      error => {
        context.log.error({ err: error }, 'authentication failed with an internal error')
        rejectUnread(raw, response, 500, rpcError('internal'))
      },
    )
  }

  const serveAdmitted = (
    raw: IncomingMessage,
    response: ServerResponse,
    workspace: string,
    admission: Admission,
    serve: ServeRequest,
    hasMessage: boolean,
  ): void => {
    if (admission.kind === 'out')
      return rejectUnread(raw, response, admission.status, admission.error, admission.headers)
    const { accept } = raw.headers
    const request: FrontRequest = {
      raw,
      response,
      workspace,
      principal: admission.principal,
      policy: admission.policy,
      policyName: admission.policyName,
      scopes: admission.scopes,
      expires: admission.expires,
      token: admission.token,
      address: admission.address,
      acceptsJson: acceptsJson(accept),
      acceptsSse: acceptsSse(accept),
    }
    if (!hasMessage) return tryServe(serve, request, undefined)
    const location = router?.find(request)
    if (!router || !location) return serveHere(request, serve)
    router.route(request, location, body => serveHere(request, serve, body)).catch(error => rejectBody(request, error))
  }

  const serveHere = (request: FrontRequest, serve: ServeRequest, body?: Buffer): void => {
    const { raw, response } = request
    const { 'content-type': type } = raw.headers
    if (raw.method !== 'POST') return tryServe(serve, request, undefined)
    if (type !== undefined && !isJsonBody(type)) return rejectUnread(raw, response, 415, NOT_JSON)
    if (body) return readMessage(request, body, serve)
    receiveBody(raw, context.limits.bodyBytes, {
      read: read => readMessage(request, read, serve),
      failed: error => rejectBody(request, error),
    })
  }

  const readMessage = (request: FrontRequest, body: Buffer, serve: ServeRequest): void => {
    let incoming: Incoming
    try {
      incoming = readIncoming(body)
    } catch (error) {
      return error instanceof JsonSyntaxError ? rejectBody(request, error) : fail(request, undefined, error)
    }
    const tooLarge = findOversizedBody(incoming, body.length)
    if (tooLarge !== undefined)
      return sendError(request.response, 413, requestIdOf(incoming), rpcError('invalidRequest', tooLarge))
    tryServe(serve, request, incoming, body)
  }

  const tryServe = (
    serve: ServeRequest,
    request: FrontRequest,
    incoming: Incoming | undefined,
    body?: Buffer,
  ): void => {
    try {
      serve(request, incoming, body)
    } catch (error) {
      fail(request, incoming, error)
    }
  }

  const fail = ({ response }: FrontRequest, incoming: Incoming | undefined, error: unknown): void => {
    context.log.error({ err: error }, 'request failed with an internal error')
    if (!response.headersSent) sendError(response, 500, requestIdOf(incoming), rpcError('internal'))
  }

  return readRequest
}

/** Headers of a response to a request that can be sent again. */
export const RETRY_SOON = { 'retry-after': '1' }

/** Why a session could not be looked up (503): the gateway is stopping, or its store does not answer. */
export const lookupError = (error: unknown, log: Log): RpcError => {
  if (error instanceof RpcFailure) return error.error
  log.warn({ err: error }, 'session not looked up: the store does not answer')
  return STORE_AWAY
}

/** Responds to a body that could not be read or parsed. */
export const rejectBody = ({ raw, response }: FrontRequest, error: unknown): void => {
  if (error instanceof JsonSyntaxError)
    return sendError(response, 400, undefined, rpcError('parse', `Parse error: ${error.message}`))
  if (error instanceof BodyTooLarge)
    return rejectUnread(raw, response, 413, rpcError('invalidRequest', `Payload Too Large: ${error.message}`))
  response.destroy() // the client has closed the connection
}

/** The id a response to this message carries, if the message has one. */
export const requestIdOf = (incoming: Incoming | undefined): Json | undefined =>
  incoming && 'id' in incoming ? incoming.id : undefined

/** The error for a message that is valid JSON but not JSON-RPC 2.0. */
export const invalidMessage = (reason: string): RpcError => rpcError('invalidRequest', `Invalid Request: ${reason}`)
