import { Abort } from '../../protocol/cancellation.ts'
import { deliver } from '../../protocol/deliver.ts'
import { NoAnswer } from '../../protocol/errors.ts'
import type { Exchange, Frame } from '../../protocol/exchange.ts'
import { isFinal, isTaskStatus } from '../../protocol/task-info.ts'
import { writeTaskNotice } from '../../protocol/task-json.ts'
import { TASK_LIMITS } from '../../protocol/tasks.ts'
import { Json } from '../../wire/json/json.ts'
import type { TaskListenOptions } from './listen-to-tasks.ts'
import { stateFor } from './serve-tasks.ts'
import type { TaskHandle } from './task-handle.ts'

const METHOD = 'notifications/tasks'
const POLL = { least: 1000, most: 60_000 } // milliseconds between two questions about one task of a server
const SPACING_MS = 20 // between two questions about any tasks of one listener
const JITTER = 0.2

/** The tasks that one listener watches. Each is told as it is now, and after each change, until it is over. */
export class TaskWatch {
  readonly #options: TaskListenOptions
  readonly #exchange: Exchange
  readonly #handles: ReadonlyMap<string, TaskHandle>
  readonly #over = new Abort()
  readonly #watched = new Map<string, () => void>() // by the client's name of the task, with the way to end it
  readonly #told = new Map<string, string>() // the latest state that was sent
  readonly #busy = new Set<string>() // its state is being read or sent
  readonly #again = new Set<string>() // it changed meanwhile

  constructor(options: TaskListenOptions, exchange: Exchange, handles: ReadonlyMap<string, TaskHandle>) {
    this.#options = options
    this.#exchange = exchange
    this.#handles = handles
  }

  /** A later call does nothing: a listen may be acknowledged again. */
  start(): void {
    if (this.#watched.size > 0 || this.#over.reason) return
    for (const [name, { kind, id }] of this.#handles) {
      const stop = kind === 'gateway' ? this.#options.tasks.watch(id, () => this.#read(name)) : () => {}
      this.#watched.set(name, stop)
    }
    for (const [name, { kind }] of this.#handles)
      if (kind === 'gateway') this.#read(name)
      else this.#askLater(name, this.#watched.size * SPACING_MS * Math.random())
  }

  end(): void {
    this.#over.abort({ kind: 'gone' })
    for (const name of [...this.#watched.keys()]) this.#forget(name)
  }

  /** Reads and sends the state of a task of the gateway; one at a time, so that a slow client gets the latest. */
  #read(name: string): void {
    if (this.#busy.has(name)) return void this.#again.add(name)
    if (!this.#watched.has(name)) return
    this.#busy.add(name)
    void this.#readOnce(name).finally(() => {
      this.#busy.delete(name)
      if (this.#again.delete(name)) this.#read(name)
    })
  }

  async #readOnce(name: string): Promise<void> {
    const handle = this.#handles.get(name)
    const found = handle && (await this.#options.tasks.find(handle.id).catch(() => 'unknown' as const))
    if (found === 'unknown' || this.#over.reason) return // the next change, or the next look, tells
    if (!found) return this.#forget(name)
    const state = stateFor(this.#exchange.caller, found)
    if (isFinal(state.status)) this.#forget(name)
    await this.#tell(name, writeTaskNotice(name, state))
  }

  /** Servers are asked: not every one of them can tell a listener. */
  #askLater(name: string, ms: number): void {
    if (!this.#watched.has(name)) return
    const timer = setTimeout(() => this.#ask(name), ms)
    timer.unref()
    this.#watched.set(name, () => clearTimeout(timer))
  }

  #ask(name: string): void {
    const { caller } = this.#exchange
    const params = Json.of({ taskId: name })
    const server = this.#handles.get(name)?.server ?? ''
    const sink = (frame: Frame): void | Promise<void> => this.#answered(name, frame)
    const exchange: Exchange = { kind: 'request', method: 'tasks/get', params, caller, signal: this.#over, sink }
    if (!this.#options.serve(server, exchange)) this.#forget(name)
  }

  #answered(name: string, frame: Frame): void | Promise<void> {
    if (frame.kind === 'failure' && frame.error instanceof NoAnswer) return this.#askLater(name, POLL.most)
    if (frame.kind === 'failure') return this.#forget(name)
    if (frame.kind !== 'result') return
    const task = frame.result.without('resultType', '_meta')
    const status = task.get('status')?.asString()
    if (!isTaskStatus(status) || isFinal(status)) this.#forget(name)
    else this.#askLater(name, this.#pauseOf(task))
    return this.#tell(name, task)
  }

  /** The time that the server wants, longer for many tasks, and not the same for all of them. */
  #pauseOf(task: Json): number {
    const wanted = task.get('pollIntervalMs')?.asNumber() ?? TASK_LIMITS.pollMs
    const least = Math.max(POLL.least, this.#watched.size * SPACING_MS)
    return Math.min(Math.max(wanted, least), POLL.most) * (1 + Math.random() * JITTER)
  }

  #tell(name: string, params: Json): void | Promise<void> {
    const text = params.toString()
    if (this.#told.get(name) === text || this.#over.reason) return
    if (this.#watched.has(name)) this.#told.set(name, text)
    return deliver(this.#exchange.sink, { kind: 'notice', method: METHOD, params })
  }

  #forget(name: string): void {
    this.#watched.get(name)?.()
    this.#watched.delete(name)
    this.#told.delete(name)
  }
}
