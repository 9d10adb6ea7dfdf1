import type { IncomingMessage, ServerResponse } from 'node:http'
import { rpcError } from '../../protocol/errors.ts'
import { readBody } from '../../wire/http-body.ts'
import { Json } from '../../wire/json/json.ts'
import { isJsonBody } from '../../wire/media-type.ts'
import type { FrontContext, FrontRequest, WorkspaceDirectory } from '../http/front-request.ts'
import type { HttpRoutes, RequestHandler } from '../http/listen.ts'
import { type ReadRequest, rejectBody } from '../http/read-request.ts'
import {
  type ActionPath,
  DEFAULT_WORKSPACE,
  readActionPath,
  readTaskPath,
  requestedWorkspace,
  type TaskPath,
  TWO_WORKSPACES,
} from '../http/request-url.ts'
import { rejectUnread, sendError } from '../http/response.ts'
import { serveToolCall } from './call-tool.ts'
import { sendOpenApi } from './list-tools.ts'
import { isTaskMethod, serveTaskRequest } from './task-requests.ts'

export interface ActionOptions extends WorkspaceDirectory {
  readonly readRequest: ReadRequest
  readonly version: string
}

const NOT_FOUND = rpcError(
  'invalidRequest',
  'Not Found: POST to /actions/<tool>, /actions/<workspace>/<tool> or /actions/<workspace>/<server>/<tool>; GET /actions/openapi.json lists them',
)
const POST_ONLY = rpcError('invalidRequest', 'Method not allowed: call a tool with POST')
const GET_ONLY = rpcError('invalidRequest', 'Method not allowed: read the OpenAPI document with GET')
const NOT_JSON = rpcError(
  'invalidRequest',
  'Unsupported Media Type: send the arguments as JSON, with Content-Type: application/json',
)
const NOT_ACCEPTABLE = rpcError(
  'invalidRequest',
  'Not Acceptable: the response is application/json, or text/event-stream if the request names it',
)
const NOT_AN_OBJECT = rpcError(
  'invalidRequest',
  'Bad Request: the body must be a JSON object with the arguments of the tool',
)

/** The REST endpoint: one URL per tool; JSON arguments in, the tool's result out. */
export const createActionRoutes = (context: FrontContext, options: ActionOptions): HttpRoutes => {
  const { readRequest, workspaces, serversOf, visibleTo } = options

  const handle: RequestHandler = (raw, response, path) => {
    const task = isTaskMethod(raw.method) ? readTaskPath(path) : undefined
    if (task) return handleTask(raw, response, task)
    const parsed = readActionPath(path)
    if (!parsed) return rejectUnread(raw, response, 404, NOT_FOUND)
    const named = requestedWorkspace(raw, parsed.workspace)
    if (named === false) return rejectUnread(raw, response, 400, TWO_WORKSPACES)
    const isTool = parsed.kind === 'tool'
    const target: ActionPath = { ...parsed, workspace: named ?? (isTool ? DEFAULT_WORKSPACE : undefined) }
    const method = isTool ? 'POST' : 'GET'
    if (raw.method !== method) return rejectUnread(raw, response, 405, isTool ? POST_ONLY : GET_ONLY, { allow: method })
    const fail = (error: unknown): void => {
      context.log.error({ err: error }, 'request failed with an internal error')
      if (!response.headersSent) rejectUnread(raw, response, 500, rpcError('internal'))
    }
    const show = (shown: readonly string[]): void => {
      const workspace = shown[0] ?? workspaces()[0] ?? ''
      const run = (request: FrontRequest): void =>
        void serve(request, target, shown.length > 0 ? shown : [workspace]).catch(fail)
      readRequest(raw, response, workspace, run, false)
    }
    const shown = target.workspace === undefined ? visibleTo(raw) : [target.workspace]
    if (shown instanceof Promise) shown.then(show).catch(fail)
    else show(shown)
  }

  const handleTask = (raw: IncomingMessage, response: ServerResponse, { workspace, id }: TaskPath): void => {
    const named = requestedWorkspace(raw, workspace)
    if (named === false) return rejectUnread(raw, response, 400, TWO_WORKSPACES)
    const run = (request: FrontRequest): void => {
      if (raw.method !== 'PATCH') return serveTaskRequest(context, request, id, Json.empty)
      void readArguments(request).then(answers => answers && serveTaskRequest(context, request, id, answers))
    }
    readRequest(raw, response, named ?? DEFAULT_WORKSPACE, run, false)
  }

  const serve = async (request: FrontRequest, target: ActionPath, shown: readonly string[]): Promise<void> => {
    const { raw, response, policy } = request
    const type = raw.headers['content-type']
    const servers = target.workspace === undefined ? [] : serversOf(target.workspace, policy)
    const missing = findMissing(target, servers) // after authentication: a rejected caller learns no names
    if (missing) {
      const error = rpcError('invalidRequest', `There is no ${missing}; GET / lists what there is`)
      return rejectUnread(raw, response, 404, error)
    }
    if (!request.acceptsJson && !request.acceptsSse) return rejectUnread(raw, response, 406, NOT_ACCEPTABLE)
    if (target.kind === 'openapi') return sendOpenApi(context, request, shown, options.version)
    if (type !== undefined && !isJsonBody(type)) return rejectUnread(raw, response, 415, NOT_JSON)
    const args = await readArguments(request)
    const present = servers ?? []
    // With several servers the tool's name alone may be ambiguous.
    const tool = target.server !== undefined && present.length > 1 ? `${target.server}/${target.tool}` : target.tool
    if (args && !response.destroyed) serveToolCall(context, request, { tool, names: namesOf(tool, present), args })
  }

  /** The arguments in the body; undefined after the request was rejected. */
  const readArguments = async (request: FrontRequest): Promise<Json | undefined> => {
    try {
      const body = await readBody(request.raw, context.limits.bodyBytes)
      const args = body.length === 0 ? Json.empty : Json.parse(body)
      if (args.isObject) return args
      sendError(request.response, 400, undefined, NOT_AN_OBJECT)
    } catch (error) {
      rejectBody(request, error)
    }
    return undefined
  }

  return { '/actions': handle, '/actions/*': handle }
}

/** The names a tool may be listed under: with its server's prefix, and without it if there is a single server. */
const namesOf = (tool: string, servers: readonly string[]): string[] => {
  if (servers.length > 1) return [tool]
  const prefixes = servers.flatMap(server => [`${server}__`, `${server}/`]).filter(prefix => tool.startsWith(prefix))
  return [tool, ...prefixes.map(prefix => tool.slice(prefix.length))]
}

/** The workspace or server that a path names and that does not exist. */
const findMissing = (target: ActionPath, servers: readonly string[] | undefined): string | undefined => {
  const { workspace } = target
  if (workspace === undefined) return undefined
  if (!servers) return `workspace ${JSON.stringify(workspace)}`
  const server = target.kind === 'tool' ? target.server : undefined
  return server === undefined || servers.includes(server)
    ? undefined
    : `server ${JSON.stringify(server)} in ${workspace}`
}
