import { rpcError } from '../../protocol/errors.ts'
import type { Incoming } from '../../wire/json-rpc.ts'
import { createOpening } from '../http-sse/channel-endpoints.ts'
import type { HttpSse } from '../http-sse/http-sse.ts'
import { serveStateless } from '../stateless/stateless.ts'
import type { Streamable } from '../streamable/streamable.ts'
import { DEFAULT_WORKSPACE, readWorkspace, TWO_WORKSPACES } from './choose-workspace.ts'
import { classify, type Refusal } from './classify.ts'
import type { FrontContext, FrontRequest } from './front-request.ts'
import type { Handler, Routes } from './listen.ts'
import { readMcpPath } from './mcp-path.ts'
import { idOf, type ReadRequest, type Serve } from './read-request.ts'
import { refuseUnread, sendError } from './response.ts'

const NOT_ACCEPTABLE = rpcError(
  'invalidRequest',
  'Not Acceptable: Client must accept application/json or text/event-stream',
)
/** Other routes come first: a workspace called `actions` has no alias `/actions/mcp`. */
const PATHS = ['/mcp', '/mcp/*', '/*/mcp', '/*/mcp/', '/*/sse']
const ALLOW = { allow: 'GET, POST, DELETE' }

interface Options {
  readonly enter: ReadRequest
  readonly streamable: Streamable
  readonly httpSse: HttpSse
}

/** The door `/mcp/:workspace`, where every revision over every way of HTTP comes in. */
export const createMcpEndpoint = (house: FrontContext, { enter, streamable, httpSse }: Options): Routes => {
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
  const handle: Handler = (request, response, path) => {
    const target = readMcpPath(path)
    if (!target) {
      const error = rpcError('invalidRequest', `There is no workspace at ${path}; GET / lists them`)
      return refuseUnread(request, response, 404, error)
    }
    const workspace = readWorkspace(request, target.workspace)
    if (workspace === false) return refuseUnread(request, response, 400, TWO_WORKSPACES)
    enter(request, response, workspace ?? DEFAULT_WORKSPACE, target.isSse ? open : serve)
  }
  return Object.fromEntries(PATHS.map(path => [path, handle]))
}

const refuse = (visit: FrontRequest, incoming: Incoming | undefined, verdict: Refusal): void => {
  const { status } = verdict
  const error =
    incoming?.kind === 'invalid' ? rpcError('invalidRequest', `Invalid Request: ${incoming.reason}`) : verdict.error
  sendError(visit.response, status, idOf(incoming), error, status === 405 ? ALLOW : undefined)
}

const single = (header: string | string[] | undefined): string | undefined =>
  typeof header === 'string' ? header : undefined
