import { Abort } from '../../protocol/cancellation.ts'
import { type RpcError, rpcError } from '../../protocol/errors.ts'
import type { Caller, Frame } from '../../protocol/exchange.ts'
import { META } from '../../protocol/meta.ts'
import { NOTIFICATIONS } from '../../protocol/notifications.ts'
import { Json } from '../../wire/json/json.ts'
import { asksForSse } from '../../wire/media-type.ts'
import { SHUTTING_DOWN } from '../http/active-calls.ts'
import { clientAddress, type FrontContext, type FrontRequest, requestOwner } from '../http/front-request.ts'
import { httpRejection } from '../http/http-rejection.ts'
import { taskPath } from '../http/request-url.ts'
import { PRIVATE_HEADERS, SSE_HEADERS, sendError, sendJson } from '../http/response.ts'
import { withTraceContext } from '../http/trace-headers.ts'
import type { KeepAliveEntry } from '../streams/keep-alive.ts'
import { EventOutbox } from '../streams/outbox.ts'
import { isQuestion, maybeUnknownTool, retryHeaders, soundsUnknown, statusOfFailure } from './http-status.ts'
import { hasTool, restCaller, restTaskCaller } from './list-tools.ts'

interface ToolCall {
  readonly tool: string
  readonly names: readonly string[] // the tool may be listed under any of them
  readonly args: Json
}

const COMMIT_MS = 2000 // after that the response becomes a stream, and its status can no longer be chosen
const PROGRESS_TOKEN = 'action'
const CANNOT_ASK = 'A REST caller cannot be asked anything; use an MCP client for this tool'
const STREAM_HEADERS = { ...SSE_HEADERS, ...PRIVATE_HEADERS, 'cache-control': 'no-store, no-transform' }

/** Calls a tool and responds with its result; a client that disconnects cancels the call. */
export const serveToolCall = (context: FrontContext, request: FrontRequest, toolCall: ToolCall): void => {
  const reply = new ToolReply(context, request, toolCall)
  const { tool, args } = toolCall
  const meta = reply.isStreamed ? { _meta: { progressToken: PROGRESS_TOKEN } } : {}
  context.dispatch({
    kind: 'request',
    method: 'tools/call',
    params: withTraceContext(Json.of({ name: tool, arguments: args, ...meta }), reply.caller.headers),
    caller: reply.caller,
    signal: reply.abort,
    origin: { address: clientAddress(request) },
    wantsTask: reply.isAsync || undefined,
    record: undefined,
    sink: frame => reply.take(frame),
  })
}

/** The response to one REST call: JSON, or an event stream if the client names that type. */
class ToolReply {
  readonly abort = new Abort()
  readonly caller: Caller
  readonly isAsync: boolean // the caller fetches the result later
  readonly isStreamed: boolean
  readonly #context: FrontContext
  readonly #request: FrontRequest
  readonly #toolCall: ToolCall
  readonly #commit: NodeJS.Timeout | undefined
  #stream: EventOutbox | undefined
  #keepAliveEntry: KeepAliveEntry | undefined
  #isDone = false

  constructor(context: FrontContext, request: FrontRequest, toolCall: ToolCall) {
    const { acceptsSse, acceptsJson, raw, response } = request
    this.#context = context
    this.#request = request
    this.#toolCall = toolCall
    this.isAsync = prefersAsync(raw.headers.prefer)
    this.caller = this.isAsync ? restTaskCaller(request) : restCaller(request)
    this.isStreamed = !this.isAsync && acceptsSse && (asksForSse(raw.headers.accept) || !acceptsJson)
    if (this.isStreamed) this.#commit = setTimeout(() => this.#openStream(), COMMIT_MS)
    context.activeCalls.add(this.abort)
    response.on('close', () => this.#close())
    this.abort.onAbort(reason => reason.kind === 'closing' && this.#fail(503, SHUTTING_DOWN))
  }

  take(frame: Frame): void | Promise<void> {
    if (this.#isDone) return
    switch (frame.kind) {
      case 'notice':
        if (frame.method !== NOTIFICATIONS.progress || !this.isStreamed) return
        return this.#openStream().send('progress', [frame.params.without('progressToken').toBytes()], 'progress')
      case 'question':
        return frame.answer({ kind: 'error', error: rpcError('methodNotFound', CANNOT_ASK) })
      case 'result':
        return this.#takeResult(frame.result)
      case 'failure':
        if (!maybeUnknownTool(frame.error)) return this.#failAs(frame.error)
        return this.#unlessUnknown(() => this.#fail(422, frame.error))
    }
  }

  #takeResult(result: Json): void {
    const login = result.at('_meta', META.login)
    if (login) return this.#fail(424, loginError(result, login))
    const task = this.isAsync ? result.get('task') : undefined
    if (task?.has('taskId')) return this.#accept(task)
    if (isQuestion(result)) return this.#fail(501, rpcError('invalidRequest', CANNOT_ASK))
    if (soundsUnknown(result, this.#toolCall.tool)) return this.#unlessUnknown(() => this.#succeed(result))
    this.#succeed(result)
  }

  /** Responds with 404 if the workspace lists no such tool, and calls `proceed` otherwise. */
  #unlessUnknown(proceed: () => void): void {
    const { workspace } = this.#request
    const { tool, names } = this.#toolCall
    const where = `/actions/${encodeURIComponent(workspace)}/openapi.json`
    const message = `Unknown tool: ${tool}; GET ${where} lists those of ${workspace}`
    hasTool(this.#context, this.caller, this.abort, names).then(
      isListed => (isListed ? proceed() : this.#fail(404, rpcError('invalidParams', message))),
      proceed, // without a list, the server's message is the best explanation
    )
  }

  /** The call goes on as a task. */
  #accept(task: Json): void {
    if (this.#isDone) return
    const id = task.get('taskId')?.asString() ?? ''
    const headers = { location: taskPath(this.#request.workspace, id), 'preference-applied': 'respond-async' }
    sendJson(this.#request.response, 202, [task.toBytes()], { ...PRIVATE_HEADERS, ...headers })
    this.#release()
  }

  #succeed(result: Json): void {
    if (this.#isDone) return
    const pieces: Buffer[] = []
    result.appendTo(pieces)
    if (this.isStreamed) this.#endStream('result', pieces)
    else sendJson(this.#request.response, 200, pieces, PRIVATE_HEADERS)
    this.#release()
  }

  #failAs(error: RpcError): void {
    const http = httpRejection(this.#context, this.#request, error)
    this.#fail(http?.status ?? statusOfFailure(error), error, http?.headers)
  }

  /** Sends a status, or an event if the response has become a stream. */
  #fail(status: number, error: RpcError, headers = retryHeaders(error)): void {
    if (this.#isDone) return
    if (this.#stream) this.#endStream('error', [Json.of({ status, error: Json.of({ ...error }) }).toBytes()])
    else sendError(this.#request.response, status, undefined, error, headers)
    this.#release()
  }

  #openStream(): EventOutbox {
    if (this.#stream) return this.#stream
    const { response } = this.#request
    this.#stream = new EventOutbox(response, this.#context, requestOwner(this.#request))
    response.writeHead(200, STREAM_HEADERS)
    response.flushHeaders()
    this.#keepAliveEntry = this.#context.keepAlive.add(this.#stream)
    return this.#stream
  }

  #endStream(event: string, data: Buffer[]): void {
    const stream = this.#openStream()
    void stream.send(event, data)
    stream.end()
  }

  #close(): void {
    this.#stream?.closed()
    if (this.#isDone) return
    this.#release()
    this.abort.abort({ kind: 'gone' })
  }

  #release(): void {
    this.#isDone = true
    clearTimeout(this.#commit)
    if (this.#keepAliveEntry) this.#context.keepAlive.delete(this.#keepAliveEntry)
    this.#context.activeCalls.delete(this.abort)
  }
}

/** The gateway tells a tool's caller in the result that its user must log in at the server. */
const loginError = (result: Json, login: Json): RpcError => {
  const text = result.get('content')?.elements()[0]?.get('text')?.asString()
  const [upstream, url] = [login.get('server'), login.get('url')]
  return rpcError('internal', text, Json.of({ reason: 'login_required', upstream, ...(url && { url }) }))
}

/** RFC 7240: whether the caller wants an answer at once, and the result later. */
const prefersAsync = (prefer: string | string[] | undefined): boolean =>
  [prefer ?? []].flat().some(value => value.split(',').some(part => /^\s*respond-async\s*(;|$)/i.test(part)))
