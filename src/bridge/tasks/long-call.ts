import { createdTaskFor } from '../../eras/tasks.ts'
import { Abort } from '../../protocol/cancellation.ts'
import { deliver } from '../../protocol/deliver.ts'
import type { Dispatch, Exchange, Frame } from '../../protocol/exchange.ts'
import { taskSupportOf } from '../../protocol/revisions.ts'
import { TASK_LIMITS } from '../../protocol/tasks.ts'
import type { Json } from '../../wire/json/json.ts'
import { continueInRounds } from '../rounds.ts'
import { ExtensionTask, withoutTasks } from './extension-task.ts'
import type { GatewayTask } from './gateway-task.ts'
import type { TaskCallsOptions } from './task-calls.ts'
import { taskOriginOf } from './task-record.ts'

/** A stored task, and what its client is told. */
export const createTask = async (
  { server, tasks, handles }: TaskCallsOptions,
  { caller, params }: Exchange,
  ttlMs: number,
): Promise<{ task: GatewayTask; created: Json }> => {
  const task = await tasks.create(taskOriginOf(server, params.get('name')?.asString() ?? '', caller), ttlMs)
  const { workspace, principal, revision } = caller
  const handle = handles.make({ kind: 'gateway', server, workspace, principal, id: task.id })
  if (caller.session !== undefined && taskSupportOf(revision) === 'param')
    tasks.addToSession(task, caller.session, handle)
  return { task, created: createdTaskFor(handle, task.state, revision) }
}

/** A call that becomes a task if it takes long. Its client need not wait any more, and may disconnect. */
export class LongCall {
  readonly #exchange: Exchange
  readonly #watched: Exchange
  readonly #dispatch: Dispatch
  readonly #options: TaskCallsOptions
  readonly #upstream = new Abort()
  readonly #timer: NodeJS.Timeout
  readonly #stopListening: () => void
  #early: Frame | undefined // the last frame, if it comes while the task is created
  #phase: 'call' | 'creating' | 'task' = 'call'
  #task: GatewayTask | undefined

  constructor(exchange: Exchange, watched: Exchange, afterMs: number, dispatch: Dispatch, options: TaskCallsOptions) {
    this.#exchange = exchange
    this.#watched = watched
    this.#dispatch = dispatch
    this.#options = options
    this.#timer = setTimeout(() => this.#becomeTask(), afterMs)
    this.#timer.unref()
    this.#stopListening = exchange.signal.onAbort(reason => {
      clearTimeout(this.#timer)
      this.#upstream.abort(reason)
    })
  }

  start(): void {
    this.#dispatch({ ...this.#exchange, signal: this.#upstream, sink: frame => this.#receive(frame) })
  }

  /** It is not this call that goes on. */
  leave(): void {
    this.#settle()
  }

  #receive(frame: Frame): void | Promise<void> {
    if (this.#task) return this.#work(this.#task, frame)
    const isLast = frame.kind === 'result' || frame.kind === 'failure'
    if (isLast && this.#phase === 'creating') {
      this.#early = frame
      return
    }
    if (isLast) this.#settle()
    return this.#watched.sink(frame)
  }

  #becomeTask(): void {
    this.#phase = 'creating'
    createTask(this.#options, this.#exchange, TASK_LIMITS.ttlMs)
      .then(({ task, created }) => {
        if (this.#early || this.#upstream.reason) {
          task.cancel()
          return this.#finish()
        }
        this.#settle()
        this.#task = task
        this.#phase = 'task'
        task.upstream.onAbort(reason => this.#upstream.abort(reason))
        void deliver(this.#exchange.sink, { kind: 'result', result: created })
      })
      .catch(() => this.#finish()) // it stays a call
  }

  #finish(): void {
    this.#phase = 'call'
    const frame = this.#early
    if (!frame) return
    this.#settle()
    void deliver(this.#watched.sink, frame)
  }

  /** What a server sends for a call that is a task now. */
  #work(task: GatewayTask, frame: Frame): void | Promise<void> {
    const type = frame.kind === 'result' ? frame.result.get('resultType')?.asString() : undefined
    if (frame.kind !== 'result' || (type !== 'task' && type !== 'input_required')) return task.receive(frame)
    const exchange = {
      ...this.#exchange,
      signal: task.upstream,
      sink: (next: Frame) => task.receive(next),
      record: undefined,
      task: { ttlMs: task.state.ttlMs, started: (id: string) => task.setServerTask(id) },
    }
    if (type === 'task') return new ExtensionTask(exchange, this.#dispatch).follow(frame.result)
    continueInRounds(withoutTasks(exchange), this.#dispatch, this.#options, frame.result)
  }

  #settle(): void {
    clearTimeout(this.#timer)
    this.#stopListening()
  }
}
