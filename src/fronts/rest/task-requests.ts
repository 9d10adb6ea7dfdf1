import { Abort } from '../../protocol/cancellation.ts'
import { RpcFailure, rpcError } from '../../protocol/errors.ts'
import type { Caller } from '../../protocol/exchange.ts'
import { TASKS_EXTENSION } from '../../protocol/meta.ts'
import { MODERN } from '../../protocol/revisions.ts'
import { sendRequest } from '../../protocol/send-request.ts'
import { UNKNOWN_TASK } from '../../protocol/tasks.ts'
import { Json } from '../../wire/json/json.ts'
import type { FrontContext, FrontRequest } from '../http/front-request.ts'
import { httpRejection } from '../http/http-rejection.ts'
import { PRIVATE_HEADERS, sendEmpty, sendError, sendJson } from '../http/response.ts'
import { retryHeaders, statusOfFailure } from './http-status.ts'
import { restCaller } from './list-tools.ts'

/** What each method does with a task. */
const METHODS: Readonly<Record<string, string>> = { GET: 'tasks/get', PATCH: 'tasks/update', DELETE: 'tasks/cancel' }
const WITH_TASKS = Json.of({ extensions: { [TASKS_EXTENSION]: {} } })
const NO_STORE = { ...PRIVATE_HEADERS, 'cache-control': 'no-store' }

export const isTaskMethod = (method: string | undefined): boolean => Object.hasOwn(METHODS, method ?? '')

/** Reads a task that a REST caller has started, answers its questions, or cancels it. */
export const serveTaskRequest = (context: FrontContext, request: FrontRequest, taskId: string, answers: Json): void => {
  const { response, raw } = request
  const method = METHODS[raw.method ?? ''] ?? 'tasks/get'
  const caller: Caller = { ...restCaller(request), revision: MODERN, capabilities: WITH_TASKS }
  const params = Json.of({ taskId, ...(method === 'tasks/update' && { inputResponses: answers }) })
  const abort = new Abort()
  response.on('close', () => abort.abort({ kind: 'gone' }))
  const succeed = (result: Json): void => {
    if (response.destroyed) return
    if (method !== 'tasks/get') return sendEmpty(response, 204, NO_STORE)
    const pieces: Buffer[] = []
    result.without('resultType').appendTo(pieces)
    sendJson(response, 200, pieces, NO_STORE)
  }
  const fail = (thrown: unknown): void => {
    if (response.destroyed || response.headersSent) return
    const error = thrown instanceof RpcFailure ? thrown.error : rpcError('internal')
    const isUnknown = error.code === UNKNOWN_TASK.code && error.message === UNKNOWN_TASK.message
    const http = httpRejection(context, request, error)
    const status = isUnknown ? 404 : (http?.status ?? statusOfFailure(error))
    sendError(response, status, undefined, error, http?.headers ?? retryHeaders(error))
  }
  sendRequest(context.dispatch, caller, method, params, abort).then(succeed, fail)
}
