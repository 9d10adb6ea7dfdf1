import { convertResult } from '../../eras/convert.ts'
import { taskFor, withRelatedTask } from '../../eras/tasks.ts'
import { deliver, failWith } from '../../protocol/deliver.ts'
import { ERRORS, rpcError } from '../../protocol/errors.ts'
import type { Caller, Dispatch, Exchange } from '../../protocol/exchange.ts'
import { isMethodOf } from '../../protocol/methods.ts'
import { taskSupportOf } from '../../protocol/revisions.ts'
import { isFinal } from '../../protocol/task-info.ts'
import { declaresTasks, TASKS_NOT_DECLARED, type TaskState, UNKNOWN_TASK } from '../../protocol/tasks.ts'
import { Json } from '../../wire/json/json.ts'
import { forwardedRequest } from './forwarded-task.ts'
import type { FoundTask, GatewayTasks } from './gateway-tasks.ts'
import { listTasks } from './list-tasks.ts'
import type { StartedTasks } from './started-tasks.ts'
import type { TaskHandle, TaskHandles } from './task-handle.ts'
import { waitForTask } from './wait-for-task.ts'

interface ServeTasksOptions {
  readonly server: string
  readonly tasks: GatewayTasks
  readonly handles: TaskHandles
  readonly started: StartedTasks
  /** Sends a request to the server itself. */
  readonly forward: Dispatch
  /** Whether another replica sends the requests of this caller to the server. It knows tasks by the names that clients have. */
  readonly isElsewhere: (caller: Caller) => Promise<boolean>
}

const PREFIX = 'tasks/'
const COMPLETE = Json.of({ resultType: 'complete' })

type Handler = (exchange: Exchange, handle: TaskHandle, name: string, options: ServeTasksOptions) => Promise<void>

/** Makes the function that answers requests about tasks of one server; it returns false for other requests. */
export const createTaskServer = (options: ServeTasksOptions) => {
  const { server, handles, started, forward, isElsewhere } = options

  const handle = async (exchange: Exchange): Promise<void> => {
    const { caller, method, params } = exchange
    if (!isMethodOf(method, caller.revision) || taskSupportOf(caller.revision) === 'none')
      return fail(exchange, noMethod(method))
    if (taskSupportOf(caller.revision) === 'extension' && !declaresTasks(caller.capabilities))
      return fail(exchange, TASKS_NOT_DECLARED)
    if (method === 'tasks/list') {
      await started.load(server, caller)
      return listTasks(options, exchange)
    }
    const name = params.get('taskId')?.asString()
    if (name === undefined) return fail(exchange, rpcError('invalidParams', 'taskId must be a string'))
    const opened = handles.openFor(caller, name)
    if (opened?.server !== server) return fail(exchange, UNKNOWN_TASK)
    if (opened.kind === 'server')
      return forward((await isElsewhere(caller)) ? exchange : forwardedRequest(exchange, opened.id))
    await HANDLERS[method]?.(exchange, opened, name, options)
  }

  return (exchange: Exchange): boolean => {
    if (!exchange.method.startsWith(PREFIX) || exchange.kind !== 'request') return false
    if (exchange.method !== 'tasks/list' && !Object.hasOwn(HANDLERS, exchange.method)) return false
    handle(exchange).catch((thrown: unknown) => failWith(exchange, thrown))
    return true
  }
}

const get: Handler = async (exchange, { id }, name, { tasks }) => {
  const found = await tasks.find(id)
  if (!found) return fail(exchange, UNKNOWN_TASK)
  answer(exchange, taskFor(name, stateFor(exchange.caller, found), exchange.caller.revision))
}

const update: Handler = async (exchange, { id }, _name, { tasks }) => {
  const responses = exchange.params.get('inputResponses')
  if (!responses?.isObject) return fail(exchange, rpcError('invalidParams', 'inputResponses must be an object'))
  const found = await tasks.find(id)
  if (!found) return fail(exchange, UNKNOWN_TASK)
  await tasks.answerAll(id, found, responses)
  answer(exchange, COMPLETE)
}

/** 2026-07-28 acknowledges every cancellation; 2025-11-25 refuses that of a task that is over, and returns the task. */
const cancel: Handler = async (exchange, { id }, name, { tasks }) => {
  const found = await tasks.find(id)
  if (!found) return fail(exchange, UNKNOWN_TASK)
  const isModern = taskSupportOf(exchange.caller.revision) === 'extension'
  const { status } = found.record.state
  if (isFinal(status) && !isModern)
    return fail(exchange, rpcError('invalidParams', `The task is over already: ${status}`))
  await tasks.cancel(id, found)
  if (isModern) return answer(exchange, COMPLETE)
  const state = (await tasks.find(id))?.record.state ?? found.record.state
  answer(exchange, taskFor(name, { ...state, status: 'cancelled' }, exchange.caller.revision))
}

/** Waits until the task is over; its questions are asked here meanwhile. */
const result: Handler = async (exchange, { id }, name, { tasks }) => {
  const found = await waitForTask(tasks, id, exchange, name)
  if (exchange.signal.reason) return
  if (!found) return fail(exchange, UNKNOWN_TASK)
  const { error, result: value, message } = stateFor(exchange.caller, found)
  if (error) return fail(exchange, error)
  if (!value) return fail(exchange, rpcError('internal', message ?? 'The task was cancelled'))
  answer(exchange, withRelatedTask(value, name))
}

const HANDLERS: Readonly<Record<string, Handler>> = {
  'tasks/get': get,
  'tasks/update': update,
  'tasks/cancel': cancel,
  'tasks/result': result,
}

/** The state with its result in the form of a caller, which may be another client of the same user than the one that called. */
export const stateFor = ({ revision }: Caller, { record }: FoundTask): TaskState => {
  const { state, origin } = record
  return state.result && origin.revision !== revision
    ? { ...state, result: convertResult('tools/call', state.result, origin.revision, revision) }
    : state
}

const answer = ({ sink }: Exchange, value: Json): void => void deliver(sink, { kind: 'result', result: value })

const fail = ({ sink }: Exchange, error: typeof UNKNOWN_TASK): void => void deliver(sink, { kind: 'failure', error })

const noMethod = (method: string) => rpcError('methodNotFound', `${ERRORS.methodNotFound.message}: ${method}`)
