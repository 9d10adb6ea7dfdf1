import { Abort, type Signal } from '../../protocol/cancellation.ts'
import { RpcFailure } from '../../protocol/errors.ts'
import type { Caller } from '../../protocol/exchange.ts'
import { META } from '../../protocol/meta.ts'
import { NEWEST_LEGACY } from '../../protocol/revisions.ts'
import { listItems, sendRequest } from '../../protocol/send-request.ts'
import { Json } from '../../wire/json/json.ts'
import type { FrontContext, FrontRequest } from '../http/front-request.ts'
import { PRIVATE_HEADERS, sendJson } from '../http/response.ts'
import { carriedHeaders } from '../stateless/envelope.ts'
import { type DescribedWorkspace, writeOpenApi } from './openapi.ts'

const MARGIN_MS = 1000 // besides the time a list waits for servers that are still starting

/**
 * A caller of the REST endpoint: the newest legacy revision, without a session or capabilities, because it takes a
 * tool's result whole, need not repeat arguments in headers, and shares one upstream session per principal.
 */
export const restCaller = ({ workspace, principal, policy, scopes, raw }: FrontRequest): Caller => ({
  workspace,
  principal,
  policy,
  scopes,
  revision: NEWEST_LEGACY,
  capabilities: Json.empty,
  headers: carriedHeaders(raw),
})

/** The caller of a tool that runs as a task: its questions wait until they are answered. */
export const restTaskCaller = (request: FrontRequest): Caller => ({ ...restCaller(request), capabilities: CAN_ANSWER })

const CAN_ANSWER = Json.of({ elicitation: { form: {}, url: {} } })

/** The tools of a workspace as this caller may list them, page by page; rejects with RpcFailure. */
const listTools = (context: FrontContext, caller: Caller, signal: Signal, meta?: Json): AsyncGenerator<Json> =>
  listItems('tools', params => {
    const asked = meta ? params.with('_meta', meta) : params
    return sendRequest(context.dispatch, caller, 'tools/list', asked, signal)
  })

const ALL_TOOLS = Json.of({ [META.allTools]: true })

/** Whether a workspace has a tool, listed or left out by its budget, that has one of these names, in the workspace or at its server. */
export const hasTool = async (
  context: FrontContext,
  caller: Caller,
  signal: Signal,
  names: readonly string[],
): Promise<boolean> => {
  const isMeant = (tool: Json): boolean => callableNames(tool).some(name => names.includes(name))
  for await (const tool of listTools(context, caller, signal, ALL_TOOLS)) if (isMeant(tool)) return true
  return false
}

const callableNames = (tool: Json): string[] => {
  const listed = tool.get('name')?.asString() ?? ''
  const origin = tool.at('_meta', META.origin)
  const [server, name] = [origin?.get('server')?.asString(), origin?.get('name')?.asString()]
  return name === undefined ? [listed] : [listed, name, `${server}/${name}`, `${server}__${name}`]
}

/** Responds with the OpenAPI document of these workspaces; one whose tools could not be listed carries the reason. */
export const sendOpenApi = async (
  context: FrontContext,
  request: FrontRequest,
  workspaces: readonly string[],
  version: string,
): Promise<void> => {
  const { response } = request
  const abort = new Abort()
  response.on('close', () => abort.abort({ kind: 'gone' }))
  const timeoutMs = context.limits.listWaitMs + MARGIN_MS
  const timer = setTimeout(() => abort.abort({ kind: 'expired' }), timeoutMs)
  const described = await Promise.all(
    workspaces.map(name => describe(context, { ...request, workspace: name }, abort, timeoutMs)),
  )
  clearTimeout(timer)
  if (response.destroyed) return
  const pieces: Buffer[] = []
  writeOpenApi(described, version).appendTo(pieces)
  sendJson(response, 200, pieces, PRIVATE_HEADERS)
}

const describe = async (
  context: FrontContext,
  request: FrontRequest,
  signal: Signal,
  timeoutMs: number,
): Promise<DescribedWorkspace> => {
  const tools: Json[] = []
  try {
    for await (const tool of listTools(context, restCaller(request), signal)) tools.push(tool)
    return { name: request.workspace, tools }
  } catch (error) {
    const reason = error instanceof RpcFailure ? error.message : `no answer within ${timeoutMs / 1000} s`
    return { name: request.workspace, tools, reason }
  }
}
