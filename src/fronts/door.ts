import type { IncomingMessage, ServerResponse } from 'node:http'
import { rpcError } from '../protocol/errors.ts'
import type { Incoming } from '../wire/json-rpc.ts'
import { createOpening } from './channel-doors.ts'
import { classify, type Refusal } from './classify.ts'
import { DEFAULT_WORKSPACE, type Enter, idOf, type Serve } from './entrance.ts'
import type { HttpSse } from './http-sse.ts'
import { refuseUnread, sendError } from './reply.ts'
import { serveStateless } from './stateless.ts'
import type { Streamable } from './streamable.ts'
import type { House, Visit } from './visit.ts'

const NOT_ACCEPTABLE = rpcError(
  'invalidRequest',
  'Not Acceptable: Client must accept application/json or text/event-stream',
)
const ALLOW = { allow: 'GET, POST, DELETE' }

interface Options {
  readonly enter: Enter
  readonly streamable: Streamable
  readonly httpSse: HttpSse
}

/** The door `/mcp/:workspace`, where every revision over every way of HTTP comes in. */
export const createDoor = (house: House, { enter, streamable, httpSse }: Options) => {
  const serve: Serve = (visit, incoming) => {
    const { headers, method: verb = '' } = visit.request
    if (verb === 'POST' && !visit.takesJson && !visit.takesSse)
      return sendError(visit.response, 406, idOf(incoming), NOT_ACCEPTABLE)
    const session = single(headers['mcp-session-id'])
    const verdict = classify({
      verb,
      version: single(headers['mcp-protocol-version']),
      session,
      lastEventId: single(headers['last-event-id']),
      accept: headers.accept,
      incoming,
    })
    const channel = session !== undefined && httpSse.workspaceOf(session) !== undefined ? session : undefined
    switch (verdict.kind) {
      case 'refuse':
        return refuse(visit, incoming, verdict)
      case 'loose':
        if (!incoming || !httpSse.postLoose(visit, incoming)) refuse(visit, incoming, verdict)
        return
      case 'modern':
        if (incoming?.kind === 'request' || incoming?.kind === 'notification') serveStateless(house, visit, incoming)
        return
      case 'initialize':
        if (incoming && channel !== undefined) httpSse.post(visit, incoming, 'mcp', channel)
        else if (incoming?.kind === 'request') streamable.initialize(visit, incoming)
        return
      case 'message':
        if (incoming && channel !== undefined) httpSse.post(visit, incoming, 'mcp', channel)
        else if (incoming) streamable.message(visit, incoming)
        return
      case 'open':
        return httpSse.open(visit, 'mcp')
      case 'end':
        return channel === undefined ? streamable.end(visit) : httpSse.end(visit, channel)
      default:
        return channel === undefined ? streamable[verdict.kind](visit) : httpSse.refuseStream(visit, channel)
    }
  }

  const open = createOpening(httpSse)
  return (request: IncomingMessage, response: ServerResponse, path: string): void => {
    const place = placeOf(path)
    if (place) return enter(request, response, place.workspace, place.isSse ? open : serve)
    const error = rpcError('invalidRequest', `There is no workspace at ${path}; GET / lists them`)
    refuseUnread(request, response, 404, error)
  }
}

const refuse = (visit: Visit, incoming: Incoming | undefined, verdict: Refusal): void => {
  const { status } = verdict
  const error =
    incoming?.kind === 'invalid' ? rpcError('invalidRequest', `Invalid Request: ${incoming.reason}`) : verdict.error
  sendError(visit.response, status, idOf(incoming), error, status === 405 ? ALLOW : undefined)
}

const single = (header: string | string[] | undefined): string | undefined =>
  typeof header === 'string' ? header : undefined

interface Place {
  readonly workspace: string
  readonly isSse: boolean
}

/** `/mcp` and `/mcp/` are the default workspace, `/mcp/x` is x, `/mcp/x/sse` its channels; anything deeper is nothing. */
const placeOf = (path: string): Place | undefined => {
  if (path === '/mcp' || path === '/mcp/') return { workspace: DEFAULT_WORKSPACE, isSse: false }
  const [segment = '', ...rest] = path.slice('/mcp/'.length).split('/')
  const isSse = rest.length === 1 && rest[0] === 'sse'
  if (rest.length > 0 && !isSse) return undefined
  try {
    return { workspace: decodeURIComponent(segment), isSse }
  } catch {
    return undefined
  }
}
