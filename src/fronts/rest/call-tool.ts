import { Abort } from '../../protocol/cancellation.ts'
import { type RpcError, rpcError } from '../../protocol/errors.ts'
import type { Caller, Frame } from '../../protocol/exchange.ts'
import { NEWEST_LEGACY } from '../../protocol/revisions.ts'
import { Json } from '../../wire/json/json.ts'
import { namesSse } from '../../wire/media-type.ts'
import type { FrontContext, FrontRequest } from '../http/front-request.ts'
import { PRIVATE_HEADERS, SSE_HEADERS, sendError, sendJson } from '../http/response.ts'
import { Outbox } from '../http-sse/channel-outbox.ts'
import { quotaOwner } from '../sessions/owner.ts'
import { carriedHeaders } from '../stateless/envelope.ts'
import { isQuestion, maybeUnknownTool, retryHeaders, soundsUnknown, statusOfFailure } from './http-status.ts'
import { hasTool } from './list-tools.ts'

/** What a REST call asks for. */
export interface Action {
  readonly tool: string
  readonly names: readonly string[] // under which the tool may be listed
  readonly args: Json
}

const COMMIT_MS = 2000 // until then a status may still be chosen
const PROGRESS = 'notifications/progress'
const TOKEN = 'action'
const CANNOT_BE_ASKED = 'A REST caller cannot be asked anything; use an MCP client for this tool'
const CLOSING = rpcError('internal', 'The gateway is shutting down; send the request again')

/**
 * Who calls through the REST door: the newest revision with sessions, without one and without capabilities, because
 * it takes a tool's result whole, need not repeat arguments in headers, and shares one session per principal upstream.
 */
export const restCaller = ({ workspace, principal, policy, request }: FrontRequest): Caller => ({
  workspace,
  principal,
  policy,
  revision: NEWEST_LEGACY,
  capabilities: Json.empty,
  headers: carriedHeaders(request.headers),
})

/** Calls a tool and answers with its result; a client that leaves cancels it. */
export const runAction = (house: FrontContext, visit: FrontRequest, action: Action): void => {
  const call = new ActionCall(house, visit, action)
  const { tool, args } = action
  const meta = call.isStreamed ? { _meta: { progressToken: TOKEN } } : {}
  house.dispatch({
    kind: 'request',
    method: 'tools/call',
    params: Json.of({ name: tool, arguments: args, ...meta }),
    caller: call.caller,
    signal: call.abort,
    sink: frame => call.take(frame),
  })
}

/** One REST call, answered as JSON or, where the client names event streams, as one. */
class ActionCall {
  readonly abort = new Abort()
  readonly caller: Caller
  readonly isStreamed: boolean
  readonly #house: FrontContext
  readonly #visit: FrontRequest
  readonly #action: Action
  readonly #commit: NodeJS.Timeout | undefined
  #keepAlive: NodeJS.Timeout | undefined
  #stream: Outbox | undefined
  #isDone = false

  constructor(house: FrontContext, visit: FrontRequest, action: Action) {
    this.#house = house
    this.#visit = visit
    this.#action = action
    this.caller = restCaller(visit)
    this.isStreamed = visit.takesSse && (namesSse(visit.request.headers.accept) || !visit.takesJson)
    if (this.isStreamed) this.#commit = setTimeout(() => this.#open(), COMMIT_MS)
    house.active.add(this.abort, false)
    visit.response.on('close', () => this.#left())
    this.abort.onAbort(reason => reason.kind === 'closing' && this.#fail(503, CLOSING))
  }

  take(frame: Frame): void | Promise<void> {
    if (this.#isDone) return
    switch (frame.kind) {
      case 'notice':
        if (frame.method === PROGRESS && this.isStreamed)
          return this.#open().send('progress', [frame.params.without('progressToken').toBytes()], 'progress')
        return
      case 'question':
        return frame.answer({ kind: 'error', error: rpcError('methodNotFound', CANNOT_BE_ASKED) })
      case 'result':
        return this.#finish(frame.result)
      case 'failure':
        if (!maybeUnknownTool(frame.error)) return this.#fail(statusOfFailure(frame.error), frame.error)
        return this.#unlessUnknown(() => this.#fail(422, frame.error))
    }
  }

  #finish(result: Json): void {
    if (isQuestion(result)) return this.#fail(501, rpcError('invalidRequest', CANNOT_BE_ASKED))
    if (soundsUnknown(result, this.#action.tool)) return this.#unlessUnknown(() => this.#succeed(result))
    this.#succeed(result)
  }

  /** Answers 404 if the workspace lists no such tool, and goes on otherwise. */
  #unlessUnknown(goOn: () => void): void {
    const { workspace } = this.#visit
    const { tool, names } = this.#action
    const where = `/actions/${encodeURIComponent(workspace)}/openapi.json`
    const message = `Unknown tool: ${tool}; GET ${where} lists those of ${workspace}`
    hasTool(this.#house, this.caller, this.abort, names).then(
      isListed => (isListed ? goOn() : this.#fail(404, rpcError('invalidParams', message))),
      goOn, // nobody can tell: the server's own words are the best there are
    )
  }

  #succeed(result: Json): void {
    if (this.#isDone) return
    const pieces: Buffer[] = []
    result.appendTo(pieces)
    if (this.isStreamed) this.#end('result', pieces)
    else sendJson(this.#visit.response, 200, pieces, PRIVATE_HEADERS)
    this.#release()
  }

  /** A status while there is still one to choose, an event afterwards. */
  #fail(status: number, error: RpcError): void {
    if (this.#isDone) return
    if (this.#stream) this.#end('error', [Json.of({ status, error: Json.of({ ...error }) }).toBytes()])
    else sendError(this.#visit.response, status, undefined, error, retryHeaders(error))
    this.#release()
  }

  #open(): Outbox {
    if (this.#stream) return this.#stream
    const { response } = this.#visit
    const stream = new Outbox(response, this.#house, quotaOwner(this.#visit))
    response.writeHead(200, { ...SSE_HEADERS, ...PRIVATE_HEADERS, 'cache-control': 'no-store, no-transform' })
    response.flushHeaders()
    this.#keepAlive = setInterval(() => stream.comment(), this.#house.limits.keepAliveMs).unref()
    this.#stream = stream
    return stream
  }

  #end(event: string, data: Buffer[]): void {
    const stream = this.#open()
    void stream.send(event, data)
    stream.end()
  }

  #left(): void {
    this.#stream?.closed()
    if (this.#isDone) return
    this.#release()
    this.abort.abort({ kind: 'gone' })
  }

  #release(): void {
    this.#isDone = true
    clearTimeout(this.#commit)
    clearInterval(this.#keepAlive)
    this.#house.active.delete(this.abort)
  }
}
