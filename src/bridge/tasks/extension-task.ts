import { readServerTask, type ServerTask } from '../../eras/tasks.ts'
import { Abort } from '../../protocol/cancellation.ts'
import { deliver } from '../../protocol/deliver.ts'
import { type RpcError, rpcError } from '../../protocol/errors.ts'
import type { Answer, Caller, Dispatch, Exchange, Frame } from '../../protocol/exchange.ts'
import { ENVELOPE, META, TASKS_EXTENSION } from '../../protocol/meta.ts'
import { TASK_LIMITS, wantsTasks } from '../../protocol/tasks.ts'
import { Json } from '../../wire/json/json.ts'
import { resultOfError } from '../client-questions.ts'
import { TaskFollower } from './task-follower.ts'

/** Lets callers without tasks use a modern server that runs a tool only for clients with the tasks extension. */
export const driveExtension =
  (dispatch: Dispatch): Dispatch =>
  exchange => {
    if (exchange.method !== 'tools/call' || exchange.kind !== 'request') return dispatch(exchange)
    const { serverTask } = exchange.task ?? {}
    if (serverTask !== undefined) return new ExtensionTask(withTasks(exchange), dispatch).resume(serverTask)
    dispatch({
      ...exchange,
      sink: frame => {
        if (frame.kind !== 'failure' || !wantsTasks(frame.error)) return exchange.sink(frame)
        new ExtensionTask(withTasks(exchange), dispatch).start()
      },
    })
  }

/** The task that a modern server has made of a call: its questions become live ones, its result ends the call. */
export class ExtensionTask {
  readonly #exchange: Exchange
  readonly #follower: TaskFollower
  readonly #asked = new Map<string, Abort>() // by key; aborted when it was answered, or the server no longer asks

  constructor(exchange: Exchange, dispatch: Dispatch) {
    this.#exchange = exchange
    this.#follower = new TaskFollower(exchange, dispatch, (task, json) => this.#read(task, json))
  }

  start(): void {
    this.#follower.call(this.#exchange.params, frame => {
      if (frame.kind === 'result') return this.follow(frame.result)
      return frame.kind === 'failure' ? this.#follower.end(frame) : this.#exchange.sink(frame)
    })
  }

  /** Goes on with a task that was started before. */
  resume(id: string): void {
    this.#follower.id = id
    this.#follower.ask()
  }

  /** Goes on with the result of the call: the task, or already the last one. */
  follow(result: Json): void | Promise<void> {
    const task = result.get('resultType')?.isString('task') ? readServerTask(result) : undefined
    if (!task) return this.#follower.end({ kind: 'result', result })
    this.#follower.id = task.id
    this.#exchange.task?.started(task.id)
    this.#follower.wait(task.pollMs)
  }

  #read({ status, message, pollMs }: ServerTask, task: Json): void | Promise<void> {
    const requests = status === 'input_required' ? task.get('inputRequests') : undefined
    this.#updateQuestions(requests?.isObject ? requests : Json.empty)
    const last = lastFrame(status, message, task)
    return last ? this.#follower.end(last) : this.#follower.wait(pollMs)
  }

  #updateQuestions(requests: Json): void {
    for (const [key, withdrawn] of this.#asked) if (!requests.has(key)) withdrawn.abort({ kind: 'cancelled' })
    for (const [key, request] of requests.entries()) {
      if (this.#asked.has(key) || this.#follower.isOver) continue
      if (this.#asked.size >= TASK_LIMITS.questions) return this.#follower.giveUp(TOO_MANY)
      const withdrawn = new Abort()
      this.#asked.set(key, withdrawn)
      const method = request.get('method')?.asString() ?? ''
      const answer = (reply: Answer): void => this.#answer(key, method, withdrawn, reply)
      const params = request.get('params') ?? Json.empty
      void deliver(this.#exchange.sink, { kind: 'question', key, method, params, withdrawn, answer })
    }
  }

  #answer(key: string, method: string, withdrawn: Abort, reply: Answer): void {
    if (withdrawn.reason || reply.kind === 'progress') return
    withdrawn.abort({ kind: 'cancelled' })
    const result = reply.kind === 'result' ? reply.result : resultOfError(method, reply.error)
    if (result) return this.#follower.sendSurely('tasks/update', Json.of({ inputResponses: { [key]: result } }))
    const { message } = (reply as { error: RpcError }).error
    this.#follower.giveUp(rpcError('internal', `The client refused ${method}: ${message}`))
  }
}

const TOO_MANY = rpcError(
  'internal',
  `The task of the server has asked more than ${TASK_LIMITS.questions} questions`,
  Json.of({ reason: 'too_many_questions' }),
)

const lastFrame = (status: ServerTask['status'], message: string | undefined, task: Json): Frame | undefined => {
  switch (status) {
    case 'completed':
      return { kind: 'result', result: completed(task.get('result')) }
    case 'failed':
      return { kind: 'failure', error: errorIn(task.get('error'), message) }
    case 'cancelled':
      return { kind: 'failure', error: rpcError('internal', message ?? 'The server cancelled its task') }
    default:
      return undefined
  }
}

const completed = (result: Json | undefined): Json => {
  const known = result ?? Json.of({ content: [] })
  return known.has('resultType') ? known : known.with('resultType', 'complete')
}

const errorIn = (error: Json | undefined, message: string | undefined): RpcError => {
  const code = error?.get('code')?.asNumber()
  const text = error?.get('message')?.asString() ?? message ?? 'The task of the server failed'
  return code === undefined ? rpcError('internal', text) : { code, message: text, data: error?.get('data') }
}

/** Declares the extension, whatever the client wrote. */
const withTasks = (exchange: Exchange): Exchange => {
  const extensions = exchange.caller.capabilities.get('extensions') ?? Json.empty
  return withExtensions(exchange, extensions.with(TASKS_EXTENSION, {}))
}

/** Hides that the client has the extension: the server answers the call itself then. */
export const withoutTasks = (exchange: Exchange): Exchange => {
  const extensions = exchange.caller.capabilities.get('extensions')?.without(TASKS_EXTENSION)
  return withExtensions(exchange, extensions && extensions.entries().length > 0 ? extensions : undefined)
}

/** The exchange of a client with these extensions. The upstream writes the envelope anew where it is absent. */
const withExtensions = (exchange: Exchange, extensions: Json | undefined): Exchange => {
  const { capabilities } = exchange.caller
  const caller: Caller = {
    ...exchange.caller,
    capabilities: extensions ? capabilities.with('extensions', extensions) : capabilities.without('extensions'),
  }
  const meta = exchange.params.get('_meta')
  const params = meta?.has(META.clientCapabilities)
    ? exchange.params.with('_meta', meta.without(...ENVELOPE))
    : exchange.params
  return { ...exchange, caller, params }
}
