import { deliver, failWith } from '../../protocol/deliver.ts'
import type { Dispatch, Exchange, Peer } from '../../protocol/exchange.ts'
import { isModern, taskSupportOf } from '../../protocol/revisions.ts'
import { declaresTasks, TASK_LIMITS } from '../../protocol/tasks.ts'
import { withDispatch } from '../../protocol/with-dispatch.ts'
import { askInRounds } from '../rounds.ts'
import { ExtensionTask, withoutTasks } from './extension-task.ts'
import { forwardedCall, forwardedListen } from './forwarded-task.ts'
import type { GatewayTask } from './gateway-task.ts'
import { type GatewayTasks, TASK_PROCESS_ENDED } from './gateway-tasks.ts'
import { createTask, LongCall } from './long-call.ts'
import type { StartedTasks } from './started-tasks.ts'
import type { TaskHandles } from './task-handle.ts'
import type { TaskTools } from './task-tools.ts'

export interface TaskCallsOptions {
  readonly server: string
  readonly tasks: GatewayTasks
  readonly handles: TaskHandles
  readonly started: StartedTasks
  readonly afterMs: number | undefined // a call of a client with the extension becomes a task then; undefined: never
  readonly questionTtlMs: number
}

/** How the layers below serve a call of one caller. */
interface TaskPeer {
  readonly plain: Peer // without tasks of the gateway
  readonly tools: TaskTools | undefined // of a server of 2025-11-25
  readonly server: Peer // the server itself
}

const CALL = 'tools/call'
const LISTEN = 'subscriptions/listen'

/** Lets callers with tasks call every server of one name as a task: with the server's own tasks, or with those of the gateway. */
export class TaskCalls {
  readonly #options: TaskCallsOptions

  constructor(options: TaskCallsOptions) {
    this.#options = options
  }

  /** The peer for a caller; unchanged for one that cannot have tasks. */
  wrap(caller: Exchange['caller'], peer: TaskPeer): Peer {
    const support = taskSupportOf(caller.revision)
    if (support === 'none' || (support === 'extension' && !declaresTasks(caller.capabilities))) return peer.plain
    const call = support === 'param' ? this.#callByParam : this.#callByExtension
    const { dispatch } = peer.plain
    return withDispatch(peer.plain, exchange => {
      if (exchange.method === LISTEN && support === 'param') return this.#listen(exchange, peer)
      if (exchange.method !== CALL || exchange.kind !== 'request') return dispatch(exchange)
      if (exchange.task?.serverTask === undefined) call(exchange, peer)
      else this.#follow(exchange, peer, exchange.task.serverTask)
    })
  }

  #listen(exchange: Exchange, { plain }: TaskPeer): void {
    const { server, started } = this.#options
    if (plain.runsTasks) void started.load(server, exchange.caller) // the server may tell of tasks from before a restart
    plain.dispatch(forwardedListen(this.#options, exchange))
  }

  /** Lets `resume` go on with a parked call; false if it has none. It may become a task, of its server or here. */
  resumeParked(exchange: Exchange, resume: (exchange: Exchange) => boolean): boolean {
    if (exchange.method !== CALL || !declaresTasks(exchange.caller.capabilities)) return resume(exchange)
    const { afterMs } = this.#options
    const watched = forwardedCall(this.#options, exchange)
    if (afterMs === undefined || !exchange.params.has('requestState') || exchange.task) return resume(watched)
    let isResumed = true
    const dispatch: Dispatch = each => {
      isResumed = resume(each)
    }
    const call = new LongCall(exchange, watched, afterMs, dispatch, this.#options)
    call.start()
    if (!isResumed) call.leave()
    return isResumed
  }

  /** Goes on with the work of a task whose process has ended. */
  resume(task: GatewayTask, serverTask: string, exchange: Exchange, dispatch: Dispatch): void {
    dispatch({ ...exchange, ...this.#workOf(task), task: { ttlMs: task.state.ttlMs, serverTask, started: () => {} } })
  }

  /** Follows the server's task that a former process has started; the call itself is never sent again. */
  #follow(exchange: Exchange, { plain, tools, server }: TaskPeer, serverTask: string): void {
    if (tools) return askInRounds(plain.dispatch, this.#options)(exchange)
    if (!isModern(server.revision)) return void deliver(exchange.sink, { kind: 'failure', error: TASK_PROCESS_ENDED })
    if (!isModern(exchange.caller.revision)) return plain.dispatch(exchange)
    new ExtensionTask(exchange, plain.dispatch).resume(serverTask)
  }

  /** A client of 2025-11-25 asks for a task in the call. */
  readonly #callByParam = (exchange: Exchange, peer: TaskPeer): void => {
    const wanted = exchange.params.get('task')
    const { dispatch } = peer.plain
    const isWanted = wanted?.isObject || exchange.wantsTask
    if (!isWanted || exchange.task) return dispatch(exchange)
    const ttlMs = wanted?.get('ttl')?.asNumber() ?? TASK_LIMITS.ttlMs
    const run = (): void =>
      this.#start(exchange, ttlMs, { ...exchange, params: exchange.params.without('task') }, dispatch)
    if (!peer.tools || exchange.wantsTask) return run()
    peer.tools.whenKnown(exchange, peer.server.dispatch, support => {
      if (support === 'forbidden') run()
      else dispatch(forwardedCall(this.#options, exchange))
    })
  }

  /** The server decides, unless it cannot: then the gateway does. */
  readonly #callByExtension = (exchange: Exchange, peer: TaskPeer): void => {
    if (exchange.task) return peer.plain.dispatch(exchange)
    // Two tasks for one call would need two living replicas; the one that holds the server's session makes it.
    const afterMs = peer.server.isReplica ? undefined : this.#options.afterMs
    const live = askInRounds(peer.plain.dispatch, this.#options)
    const run = (): void => this.#start(exchange, TASK_LIMITS.ttlMs, withoutTasks(exchange), live)
    if (peer.tools)
      return peer.tools.whenKnown(exchange, peer.server.dispatch, support => {
        if (support === 'required') run()
        else this.#callPlainly(exchange, peer, afterMs)
      })
    this.#callPlainly(exchange, peer, afterMs)
  }

  #callPlainly(exchange: Exchange, { plain }: TaskPeer, afterMs: number | undefined): void {
    if (exchange.signal.reason) return
    const watched = forwardedCall(this.#options, exchange)
    if (afterMs === undefined) return plain.dispatch(watched)
    new LongCall(exchange, watched, afterMs, plain.dispatch, this.#options).start()
  }

  /** Creates a task, tells the client, and lets `inner` do its work. */
  #start(exchange: Exchange, ttlMs: number, inner: Exchange, dispatch: Dispatch): void {
    createTask(this.#options, exchange, ttlMs)
      .then(({ task, created }) => {
        void deliver(exchange.sink, { kind: 'result', result: created })
        const started = (id: string): void => task.setServerTask(id)
        dispatch({ ...inner, ...this.#workOf(task), task: { ttlMs: task.state.ttlMs, started } })
      })
      .catch((thrown: unknown) => failWith(exchange, thrown))
  }

  #workOf(task: GatewayTask): Pick<Exchange, 'signal' | 'sink' | 'record' | 'wantsTask'> {
    return { signal: task.upstream, sink: frame => task.receive(frame), record: undefined, wantsTask: undefined }
  }
}
