import type { IncomingMessage, ServerResponse } from 'node:http'
import { rpcError } from '../protocol/errors.ts'
import { BodyTooLarge, readBody } from '../wire/http-body.ts'
import type { Json } from '../wire/json.ts'
import { type Incoming, readIncoming } from '../wire/json-rpc.ts'
import { JsonSyntaxError } from '../wire/json-scan.ts'
import { acceptsJson, acceptsSse, isJsonBody } from '../wire/media-type.ts'
import { classify } from './classify.ts'
import { refuseUnread, sendError } from './reply.ts'
import { serveStateless } from './stateless.ts'
import type { createStreamable } from './streamable.ts'
import type { Admission, Admit, House, Visit } from './visit.ts'

const DEFAULT_WORKSPACE = 'default'
const NOT_ACCEPTABLE = rpcError(
  'invalidRequest',
  'Not Acceptable: Client must accept application/json or text/event-stream',
)
const NOT_JSON = rpcError('invalidRequest', 'Unsupported Media Type: Content-Type must be application/json')

interface Options {
  readonly hasWorkspace: (name: string) => boolean
  readonly admit: Admit
  readonly streamable: ReturnType<typeof createStreamable>
}

/** The door `/mcp/:workspace`, where every revision over Streamable HTTP comes in. */
export const createDoor = (house: House, { hasWorkspace, admit, streamable }: Options) => {
  const enter = (request: IncomingMessage, response: ServerResponse, path: string): void => {
    const workspace = workspaceOf(path)
    if (workspace === undefined || !hasWorkspace(workspace)) {
      const error = rpcError('invalidRequest', `There is no workspace at ${path}; GET / lists them`)
      return refuseUnread(request, response, 404, error)
    }
    const admission = admit(request, workspace)
    if (!(admission instanceof Promise)) return meet(request, response, workspace, admission)
    admission.then(
      decided => meet(request, response, workspace, decided),
      error => {
        house.log.error({ err: error }, 'admission failed inside the gateway')
        refuseUnread(request, response, 500, rpcError('internal'))
      },
    )
  }

  const meet = (request: IncomingMessage, response: ServerResponse, workspace: string, admission: Admission): void => {
    if (admission.kind === 'out')
      return refuseUnread(request, response, admission.status, admission.error, admission.headers)
    const { accept, 'content-type': type } = request.headers
    const visit: Visit = {
      request,
      response,
      workspace,
      principal: admission.principal,
      takesJson: acceptsJson(accept),
      takesSse: acceptsSse(accept),
    }
    if (!visit.takesJson && !visit.takesSse) return refuseUnread(request, response, 406, NOT_ACCEPTABLE)
    if (request.method !== 'POST') return serve(visit, undefined)
    if (type !== undefined && !isJsonBody(type)) return refuseUnread(request, response, 415, NOT_JSON)
    readBody(request, house.limits.bodyBytes).then(
      body => read(visit, body),
      error => refuseBody(visit, error),
    )
  }

  const read = (visit: Visit, body: Buffer): void => {
    let incoming: Incoming | undefined
    try {
      incoming = readIncoming(body)
    } catch (error) {
      if (!(error instanceof JsonSyntaxError)) throw error
      return sendError(visit.response, 400, undefined, rpcError('parse', `Parse error: ${error.message}`))
    }
    try {
      serve(visit, incoming)
    } catch (error) {
      house.log.error({ err: error }, 'a request failed inside the gateway')
      if (!visit.response.headersSent) sendError(visit.response, 500, idOf(incoming), rpcError('internal'))
    }
  }

  const serve = (visit: Visit, incoming: Incoming | undefined): void => {
    const { headers, method: verb = '' } = visit.request
    const verdict = classify({
      verb,
      version: single(headers['mcp-protocol-version']),
      session: single(headers['mcp-session-id']),
      lastEventId: single(headers['last-event-id']),
      incoming,
    })
    switch (verdict.kind) {
      case 'refuse': {
        const error =
          incoming?.kind === 'invalid'
            ? rpcError('invalidRequest', `Invalid Request: ${incoming.reason}`)
            : verdict.error
        return sendError(
          visit.response,
          verdict.status,
          idOf(incoming),
          error,
          verdict.status === 405 ? ALLOW : undefined,
        )
      }
      case 'modern':
        if (incoming?.kind === 'request' || incoming?.kind === 'notification') serveStateless(house, visit, incoming)
        return
      case 'initialize':
        if (incoming?.kind === 'request') streamable.initialize(visit, incoming)
        return
      case 'message':
        if (incoming) streamable.message(visit, incoming)
        return
      default:
        return streamable[verdict.kind](visit)
    }
  }

  const refuseBody = (visit: Visit, error: unknown): void => {
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

const ALLOW = { allow: 'GET, POST, DELETE' }

const idOf = (incoming: Incoming | undefined): Json | undefined =>
  incoming && 'id' in incoming ? incoming.id : undefined

const single = (header: string | string[] | undefined): string | undefined =>
  typeof header === 'string' ? header : undefined

/** `/mcp` and `/mcp/` are the default workspace, `/mcp/x` is x; anything deeper is nothing. */
const workspaceOf = (path: string): string | undefined => {
  if (path === '/mcp' || path === '/mcp/') return DEFAULT_WORKSPACE
  const segment = path.slice('/mcp/'.length)
  if (segment.includes('/')) return undefined
  try {
    return decodeURIComponent(segment)
  } catch {
    return undefined
  }
}
