import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Admission, Admit } from '../../protocol/admission.ts'
import { type RpcError, rpcError } from '../../protocol/errors.ts'
import type { Policy } from '../../protocol/policy.ts'
import { BodyTooLarge, readBody } from '../../wire/http-body.ts'
import { Json } from '../../wire/json/json.ts'
import { JsonSyntaxError } from '../../wire/json/scan.ts'
import { acceptsJson, acceptsSse, isJsonBody } from '../../wire/media-type.ts'
import { DEFAULT_WORKSPACE, readWorkspace, TWO_WORKSPACES } from '../http/choose-workspace.ts'
import type { FrontContext, FrontRequest } from '../http/front-request.ts'
import type { Routes } from '../http/listen.ts'
import { refuseUnread, sendError } from '../http/response.ts'
import { type Place, placeOf } from './action-path.ts'
import { runAction } from './call-tool.ts'
import { describeWorkspaces } from './openapi-response.ts'

/** What the REST door has to know of the house. */
export interface ActionsOptions {
  readonly admit: Admit
  readonly workspaces: () => readonly string[]
  /** The servers of a workspace that a caller may know of; undefined: there is no such workspace. */
  readonly serversOf: (workspace: string, policy: Policy | undefined) => readonly string[] | undefined
  /** The workspaces a request may see. */
  readonly visible: (request: IncomingMessage) => readonly string[]
  readonly version: string
}

const NOT_FOUND =
  'Not Found: POST to /actions/<tool>, /actions/<workspace>/<tool> or /actions/<workspace>/<server>/<tool>; GET /actions/openapi.json lists them'
const POST_ONLY = rpcError('invalidRequest', 'Method not allowed: tools are called with POST')
const GET_ONLY = rpcError('invalidRequest', 'Method not allowed: the description is read with GET')
const NOT_JSON = rpcError(
  'invalidRequest',
  'Unsupported Media Type: send the arguments as JSON, with Content-Type: application/json',
)
const NOT_ACCEPTABLE = rpcError(
  'invalidRequest',
  'Not Acceptable: the answer is application/json, or text/event-stream where that is asked for',
)
const NOT_AN_OBJECT = 'Bad Request: the body must be a JSON object with the arguments of the tool'

/** The REST door: one URL per tool, JSON arguments in, the tool's result out, for scripts and people with curl. */
export const createActions = (house: FrontContext, options: ActionsOptions): Routes => {
  const { admit, workspaces, serversOf, visible } = options

  const enter = (request: IncomingMessage, response: ServerResponse, path: string): void => {
    const refuse = (status: number, error: RpcError, headers?: Record<string, string>): void =>
      refuseUnread(request, response, status, error, headers)
    const parsed = placeOf(path)
    if (!parsed) return refuse(404, rpcError('invalidRequest', NOT_FOUND))
    const named = readWorkspace(request, parsed.workspace)
    if (named === false) return refuse(400, TWO_WORKSPACES)
    const place: Place =
      parsed.kind === 'tool' ? { ...parsed, workspace: named ?? DEFAULT_WORKSPACE } : { ...parsed, workspace: named }
    const verb = place.kind === 'tool' ? 'POST' : 'GET'
    if (request.method !== verb) return refuse(405, verb === 'POST' ? POST_ONLY : GET_ONLY, { allow: verb })
    const seen = place.workspace === undefined ? visible(request) : [place.workspace]
    const workspace = seen[0] ?? workspaces()[0] ?? ''
    void Promise.resolve(admit(request, workspace, response))
      .then(admission => meet(request, response, admission, place, seen.length > 0 ? seen : [workspace]))
      .catch(error => {
        house.log.error({ err: error }, 'a REST call failed inside the gateway')
        if (!response.headersSent) refuse(500, rpcError('internal'))
      })
  }

  const meet = async (
    request: IncomingMessage,
    response: ServerResponse,
    admission: Admission,
    place: Place,
    seen: readonly string[],
  ): Promise<void> => {
    const { accept, 'content-type': type } = request.headers
    if (admission.kind === 'out')
      return refuseUnread(request, response, admission.status, admission.error, admission.headers)
    const servers = place.workspace === undefined ? [] : serversOf(place.workspace, admission.policy)
    const stranger = strangerIn(place, servers) // only now: whoever may not come in learns no names
    if (stranger) {
      const error = rpcError('invalidRequest', `There is no ${stranger}; GET / lists what there is`)
      return refuseUnread(request, response, 404, error)
    }
    const visit: FrontRequest = {
      request,
      response,
      workspace: seen[0] ?? '',
      principal: admission.principal,
      policy: admission.policy,
      takesJson: acceptsJson(accept),
      takesSse: acceptsSse(accept),
    }
    if (!visit.takesJson && !visit.takesSse) return refuseUnread(request, response, 406, NOT_ACCEPTABLE)
    if (place.kind === 'description') return describeWorkspaces(house, visit, seen, options)
    if (type !== undefined && !isJsonBody(type)) return refuseUnread(request, response, 415, NOT_JSON)
    const args = await readArguments(visit)
    const present = servers ?? []
    // Where there are several, its name alone may be another's too.
    const tool = place.server !== undefined && present.length > 1 ? `${place.server}/${place.tool}` : place.tool
    if (args && !response.destroyed) runAction(house, visit, { tool, names: namesOf(tool, present), args })
  }

  /** The arguments in the body, or nothing after having refused it. */
  const readArguments = async (visit: FrontRequest): Promise<Json | undefined> => {
    const { request, response } = visit
    try {
      const body = await readBody(request, house.limits.bodyBytes)
      const args = body.length === 0 ? Json.empty : Json.parse(body)
      if (args.isObject) return args
      sendError(response, 400, undefined, rpcError('invalidRequest', NOT_AN_OBJECT))
    } catch (error) {
      if (error instanceof JsonSyntaxError)
        sendError(response, 400, undefined, rpcError('parse', `Parse error: ${error.message}`))
      else if (error instanceof BodyTooLarge)
        refuseUnread(request, response, 413, rpcError('invalidRequest', `Payload Too Large: ${error.message}`))
      else response.destroy() // the client broke off
    }
    return undefined
  }

  return { '/actions': enter, '/actions/*': enter }
}

/** A tool may be called with its server in front, and that of a single server is listed without. */
const namesOf = (tool: string, servers: readonly string[]): string[] => {
  if (servers.length > 1) return [tool]
  const prefixes = servers.flatMap(server => [`${server}__`, `${server}/`]).filter(prefix => tool.startsWith(prefix))
  return [tool, ...prefixes.map(prefix => tool.slice(prefix.length))]
}

/** What a path names that there is not. */
const strangerIn = (place: Place, servers: readonly string[] | undefined): string | undefined => {
  const { workspace } = place
  if (workspace === undefined) return undefined
  if (!servers) return `workspace ${JSON.stringify(workspace)}`
  const server = place.kind === 'tool' ? place.server : undefined
  return server === undefined || servers.includes(server)
    ? undefined
    : `server ${JSON.stringify(server)} in ${workspace}`
}
