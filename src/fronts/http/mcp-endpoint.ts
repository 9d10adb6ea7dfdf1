import { rpcError } from '../../protocol/errors.ts'
import type { Incoming } from '../../wire/json-rpc.ts'
import type { RequestRouter } from '../cluster/route-request.ts'
import type { HttpSse } from '../http-sse/http-sse.ts'
import { serveStateless } from '../stateless/stateless.ts'
import type { Streamable } from '../streamable/streamable.ts'
import { classify, type HttpRejection } from './classify.ts'
import type { FrontContext, FrontRequest } from './front-request.ts'
import type { HttpRoutes, RequestHandler } from './listen.ts'
import { invalidMessage, type ReadRequest, requestIdOf, type ServeRequest } from './read-request.ts'
import { DEFAULT_WORKSPACE, readMcpPath, requestedWorkspace, TWO_WORKSPACES } from './request-url.ts'
import { rejectUnread, sendError } from './response.ts'

const NOT_ACCEPTABLE = rpcError(
  'invalidRequest',
  'Not Acceptable: Client must accept application/json or text/event-stream',
)
/** The paths of the MCP endpoint. Other routes have precedence: a workspace called `actions` has no alias `/actions/mcp`. */
const PATHS = ['/mcp', '/mcp/*', '/*/mcp', '/*/mcp/', '/*/sse']
const ALLOW = { allow: 'GET, POST, DELETE' }

interface McpEndpointOptions {
  readonly readRequest: ReadRequest
  readonly streamable: Streamable
  readonly httpSse: HttpSse
  readonly router?: RequestRouter | undefined // absent for requests that another replica has forwarded
}

/** The endpoint `/mcp/:workspace`, which serves every revision over every HTTP transport. */
export const createMcpEndpoint = (
  context: FrontContext,
  { readRequest, streamable, httpSse, router }: McpEndpointOptions,
): HttpRoutes => {
  /** Serves a message without a session at the caller's only channel, wherever that is. */
  const serveSessionless = (
    request: FrontRequest,
    incoming: Incoming,
    body: Buffer,
    rejection: HttpRejection,
  ): void => {
    if (httpSse.postSessionless(request, incoming)) return
    const refuse = (): void => reject(request, incoming, rejection)
    if (!router) return refuse()
    router.routeSessionless(request, body, httpSse.findHome(request)).then(
      isServed => isServed || refuse(),
      error => {
        context.log.warn({ err: error }, 'channel of a client not located')
        if (!request.response.headersSent) refuse()
      },
    )
  }

  /** Opens a session where those of its workspace live. */
  const initialize = (
    request: FrontRequest,
    incoming: Incoming & { kind: 'request' },
    body: Buffer | undefined,
  ): void => {
    const home = router?.homeOfNew(request)
    if (!router || !body || home === undefined) return streamable.initialize(request, incoming)
    const openHere = (): void => streamable.initialize(request, incoming)
    router.routeSessionless(request, body, Promise.resolve(home)).then(
      isServed => isServed || openHere(),
      error => {
        context.log.warn({ err: error }, 'session opened here: its home was not reached')
        if (!request.response.headersSent) openHere()
      },
    )
  }

  const serve: ServeRequest = (request, incoming, body) => {
    const { headers, method: verb = '' } = request.raw
    if (verb === 'POST' && !request.acceptsJson && !request.acceptsSse)
      return sendError(request.response, 406, requestIdOf(incoming), NOT_ACCEPTABLE)
    const session = single(headers['mcp-session-id'])
    const found = classify({
      verb,
      version: single(headers['mcp-protocol-version']),
      session,
      lastEventId: single(headers['last-event-id']),
      accept: headers.accept,
      incoming,
    })
    const channel = session !== undefined && httpSse.has(session) ? session : undefined
    switch (found.kind) {
      case 'reject':
        return reject(request, incoming, found)
      case 'sessionless':
        return incoming && body ? serveSessionless(request, incoming, body, found) : reject(request, incoming, found)
      case 'modern':
        if (incoming?.kind === 'request' || incoming?.kind === 'notification')
          serveStateless(context, request, incoming)
        return
      case 'initialize':
        if (incoming && channel !== undefined) httpSse.post(request, incoming, 'mcp', channel)
        else if (incoming?.kind === 'request') initialize(request, incoming, body)
        return
      case 'message':
        if (incoming && channel !== undefined) httpSse.post(request, incoming, 'mcp', channel)
        else if (incoming) streamable.message(request, incoming)
        return
      case 'open':
        return httpSse.open(request, 'mcp')
      case 'end':
        return channel === undefined ? streamable.end(request) : httpSse.end(request, channel)
      default:
        return channel === undefined ? streamable[found.kind](request) : httpSse.rejectStream(request, channel)
    }
  }

  let lastPath = '' // most requests have the path of the one before
  let lastTarget: ReturnType<typeof readMcpPath>
  const handle: RequestHandler = (raw, response, path) => {
    if (path !== lastPath) {
      lastTarget = readMcpPath(path)
      lastPath = path
    }
    const target = lastTarget
    if (!target) {
      const error = rpcError('invalidRequest', `There is no workspace at ${path}; GET / lists them`)
      return rejectUnread(raw, response, 404, error)
    }
    const workspace = requestedWorkspace(raw, target.workspace)
    if (workspace === false) return rejectUnread(raw, response, 400, TWO_WORKSPACES)
    readRequest(raw, response, workspace ?? DEFAULT_WORKSPACE, target.isSse ? httpSse.serveOpening : serve)
  }
  return Object.fromEntries(PATHS.map(path => [path, handle]))
}

const reject = (request: FrontRequest, incoming: Incoming | undefined, { status, error }: HttpRejection): void => {
  const shown = incoming?.kind === 'invalid' ? invalidMessage(incoming.reason) : error
  sendError(request.response, status, requestIdOf(incoming), shown, status === 405 ? ALLOW : undefined)
}

const single = (header: string | string[] | undefined): string | undefined =>
  typeof header === 'string' ? header : undefined
