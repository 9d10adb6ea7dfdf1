import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Admission, Admit } from '../../protocol/admission.ts'
import { rpcError } from '../../protocol/errors.ts'
import { BodyTooLarge, readBody } from '../../wire/http-body.ts'
import type { Json } from '../../wire/json/json.ts'
import { JsonSyntaxError } from '../../wire/json/scan.ts'
import { type Incoming, readIncoming } from '../../wire/json-rpc.ts'
import { acceptsJson, acceptsSse, isJsonBody } from '../../wire/media-type.ts'
import { bodyFault } from '../sessions/client-limits.ts'
import type { FrontContext, FrontRequest } from './front-request.ts'
import { refuseUnread, sendError } from './response.ts'

const NOT_JSON = rpcError('invalidRequest', 'Unsupported Media Type: Content-Type must be application/json')

/** What a door does with a visit, and with the message of a POST. */
export type Serve = (visit: FrontRequest, incoming: Incoming | undefined) => void

/** Lets a request into a workspace: asks who it is from and reads its body, or answers what is wrong with it. */
export type ReadRequest = (request: IncomingMessage, response: ServerResponse, workspace: string, serve: Serve) => void

export const createRequestReader = (house: FrontContext, admit: Admit): ReadRequest => {
  const enter: ReadRequest = (request, response, workspace, serve) => {
    const admission = admit(request, workspace, response)
    if (!(admission instanceof Promise)) return meet(request, response, workspace, admission, serve)
    admission.then(
      decided => meet(request, response, workspace, decided, serve),
      error => {
        house.log.error({ err: error }, 'admission failed inside the gateway')
        refuseUnread(request, response, 500, rpcError('internal'))
      },
    )
  }

  const meet = (
    request: IncomingMessage,
    response: ServerResponse,
    workspace: string,
    admission: Admission,
    serve: Serve,
  ): void => {
    if (admission.kind === 'out')
      return refuseUnread(request, response, admission.status, admission.error, admission.headers)
    const { accept, 'content-type': type } = request.headers
    const visit: FrontRequest = {
      request,
      response,
      workspace,
      principal: admission.principal,
      policy: admission.policy,
      takesJson: acceptsJson(accept),
      takesSse: acceptsSse(accept),
    }
    if (request.method !== 'POST') return tryTo(serve, visit, undefined)
    if (type !== undefined && !isJsonBody(type)) return refuseUnread(request, response, 415, NOT_JSON)
    readBody(request, house.limits.bodyBytes).then(
      body => read(visit, body, serve),
      error => refuseBody(visit, error),
    )
  }

  const read = (visit: FrontRequest, body: Buffer, serve: Serve): void => {
    let incoming: Incoming | undefined
    try {
      incoming = readIncoming(body)
    } catch (error) {
      if (!(error instanceof JsonSyntaxError)) throw error
      return sendError(visit.response, 400, undefined, rpcError('parse', `Parse error: ${error.message}`))
    }
    const tooLarge = bodyFault(incoming, body.length)
    if (tooLarge !== undefined)
      return sendError(visit.response, 413, idOf(incoming), rpcError('invalidRequest', tooLarge))
    tryTo(serve, visit, incoming)
  }

  const tryTo = (serve: Serve, visit: FrontRequest, incoming: Incoming | undefined): void => {
    try {
      serve(visit, incoming)
    } catch (error) {
      house.log.error({ err: error }, 'a request failed inside the gateway')
      if (!visit.response.headersSent) sendError(visit.response, 500, idOf(incoming), rpcError('internal'))
    }
  }

  const refuseBody = (visit: FrontRequest, error: unknown): void => {
    if (error instanceof BodyTooLarge)
      return refuseUnread(
        visit.request,
        visit.response,
        413,
        rpcError('invalidRequest', `Payload Too Large: ${error.message}`),
      )
    // The client broke off; there is nobody left to answer.
    visit.response.destroy()
  }

  return enter
}

/** The id an answer can echo, if there is one. */
export const idOf = (incoming: Incoming | undefined): Json | undefined =>
  incoming && 'id' in incoming ? incoming.id : undefined
