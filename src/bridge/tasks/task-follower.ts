import { readServerTask, type ServerTask } from '../../eras/tasks.ts'
import { Abort, type AbortReason, NEVER } from '../../protocol/cancellation.ts'
import { deliver } from '../../protocol/deliver.ts'
import { ERRORS, NoAnswer, type RpcError, rpcError } from '../../protocol/errors.ts'
import type { Dispatch, Exchange, Frame } from '../../protocol/exchange.ts'
import { TASK_LIMITS } from '../../protocol/tasks.ts'
import { backoffMs } from '../../std/time.ts'
import { Json } from '../../wire/json/json.ts'

const POLL = { least: 100, most: 30_000 } // milliseconds
const RETRY = { firstMs: 500, longestMs: 10_000 }
const MAX_LOST = 8 // requests in a row without an answer, for a caller that waits; a task is asked for until it expires

/** Follows the task that a server has made of one call, for a caller that waits for the answer of the call. */
export class TaskFollower {
  readonly #exchange: Exchange
  readonly #dispatch: Dispatch
  readonly #read: (task: ServerTask, json: Json) => void | Promise<void>
  readonly #expiresAt: number
  readonly #stopListening: () => void
  #current = new Abort() // of the request that runs now
  #timer: NodeJS.Timeout | undefined
  #lost = 0
  #isOver = false
  id: string | undefined // of the server's task

  /** `read` is called with each state of the task that the server tells. */
  constructor(exchange: Exchange, dispatch: Dispatch, read: (task: ServerTask, json: Json) => void | Promise<void>) {
    this.#exchange = exchange
    this.#dispatch = dispatch
    this.#read = read
    this.#expiresAt = Date.now() + (exchange.task?.ttlMs ?? TASK_LIMITS.ttlMs)
    this.#stopListening = exchange.signal.onAbort(reason => this.#abort(reason))
  }

  get isOver(): boolean {
    return this.#isOver
  }

  get ttlMs(): number {
    return Math.max(0, this.#expiresAt - Date.now())
  }

  /** Sends the call itself. */
  call(params: Json, sink: Exchange['sink']): void {
    if (!this.#isOver) this.#dispatch({ ...this.#exchange, params, signal: this.#current, sink })
  }

  /** Sends a request about the task. */
  send(
    method: string,
    sink: Exchange['sink'],
    params = Json.empty,
    signal: Exchange['signal'] = this.#renewed(),
  ): void {
    const { record: _record, task: _task, ...exchange } = this.#exchange
    this.#dispatch({ ...exchange, method, params: params.with('taskId', this.id ?? ''), signal, sink })
  }

  /** Sends a request whose loss would leave the task waiting: repeated while no answer comes. */
  sendSurely(method: string, params: Json, attempt = 0): void {
    const again = (frame: Frame): void => {
      if (frame.kind !== 'failure' || !(frame.error instanceof NoAnswer) || attempt >= MAX_LOST || this.#isOver) return
      setTimeout(() => this.sendSurely(method, params, attempt + 1), backoffMs(RETRY, attempt)).unref()
    }
    this.send(method, again, params, NEVER)
  }

  /** Ends the task, at the server too. */
  giveUp(error: RpcError): void {
    if (this.#isOver) return
    this.#cancelAtServer()
    void this.end({ kind: 'failure', error })
  }

  /** Asks the server again after the time that it wants. */
  wait(pollMs: number = TASK_LIMITS.pollMs): void {
    if (this.#isOver) return
    if (this.ttlMs === 0) return this.giveUp(EXPIRED)
    this.#askLater(Math.min(Math.max(pollMs, POLL.least), POLL.most))
  }

  ask(): void {
    this.send('tasks/get', frame => {
      if (frame.kind === 'failure') return this.failed(isUnknown(frame.error) ? forgotten(frame.error) : frame.error)
      const task = frame.kind === 'result' ? readServerTask(frame.result) : undefined
      if (frame.kind !== 'result') return
      if (!task) return this.end({ kind: 'failure', error: NO_TASK })
      this.#lost = 0
      return this.#read(task, frame.result)
    })
  }

  /** A lost connection says nothing about the task: the server is asked again. */
  failed(error: RpcError): void | Promise<void> {
    const isLost = error instanceof NoAnswer && (++this.#lost <= MAX_LOST || this.#exchange.task !== undefined)
    if (!isLost) return this.end({ kind: 'failure', error })
    if (this.ttlMs === 0) return this.giveUp(EXPIRED)
    this.#askLater(backoffMs(RETRY, this.#lost - 1))
  }

  end(frame: Frame): void | Promise<void> {
    if (this.#isOver) return
    this.#isOver = true
    clearTimeout(this.#timer)
    this.#stopListening()
    return deliver(this.#exchange.sink, frame)
  }

  #askLater(ms: number): void {
    if (this.#isOver) return
    this.#timer = setTimeout(() => this.ask(), ms)
    this.#timer.unref()
  }

  #renewed(): Abort {
    this.#current = new Abort()
    return this.#current
  }

  #abort(reason: AbortReason): void {
    if (this.#isOver) return
    this.#isOver = true
    clearTimeout(this.#timer)
    this.#current.abort(reason)
    // A gateway that stops leaves the task to the next process.
    if (reason.kind !== 'closing' && reason.kind !== 'moved') this.#cancelAtServer()
  }

  #cancelAtServer(): void {
    if (this.id !== undefined) this.send('tasks/cancel', () => {}, Json.empty, NEVER)
  }
}

const EXPIRED = rpcError('internal', 'The task of the server did not end in time', Json.of({ reason: 'task_expired' }))
const NO_TASK = rpcError(
  'internal',
  'The server answered tasks/get without a task',
  Json.of({ reason: 'invalid_task' }),
)

const isUnknown = ({ code }: RpcError): boolean => code === ERRORS.invalidParams.code

const forgotten = ({ message }: RpcError): RpcError =>
  rpcError(
    'internal',
    `The server no longer knows the task that it started: ${message}. Call the tool again`,
    Json.of({ reason: 'task_forgotten' }),
  )
