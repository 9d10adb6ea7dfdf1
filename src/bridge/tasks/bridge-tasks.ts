import { randomBytes } from 'node:crypto'
import { failWith } from '../../protocol/deliver.ts'
import { RpcFailure, rpcError } from '../../protocol/errors.ts'
import type { Caller, Dispatch, Exchange, Peer } from '../../protocol/exchange.ts'
import { taskSupportOf } from '../../protocol/revisions.ts'
import { sendRequest } from '../../protocol/send-request.ts'
import { MemoryCluster } from '../../stores/state/memory-state.ts'
import type { StateStore } from '../../stores/state/state-store.ts'
import { type Log, SILENT } from '../../telemetry/log.ts'
import { Json } from '../../wire/json/json.ts'
import type { GatewayTask } from './gateway-task.ts'
import { GatewayTasks } from './gateway-tasks.ts'
import { listenToTasks, type TaskListenOptions } from './listen-to-tasks.ts'
import { offerTasks } from './offer-tasks.ts'
import { createTaskServer } from './serve-tasks.ts'
import { StartedTasks } from './started-tasks.ts'
import { TaskCalls } from './task-calls.ts'
import { TaskHandles } from './task-handle.ts'
import { callerOf } from './task-record.ts'

/** What tasks need of the gateway. */
export interface BridgeTasksOptions {
  readonly store: StateStore
  readonly log: Log
  readonly afterMs?: number | undefined // a call of a client with the extension becomes a task then; undefined: never
}

interface TasksOfBridge {
  readonly questionTtlMs: number
  readonly tasks?: BridgeTasksOptions | undefined
  readonly home?: { readonly keys: readonly [Uint8Array, ...Uint8Array[]] } | undefined
}

/** The tasks of the gateway, for its administration. */
export interface TaskAccess extends Pick<GatewayTasks, 'list' | 'find' | 'cancel'> {
  /** Calls a tool as a task; resolves with the id. Rejects with an RpcFailure. */
  startCall(caller: Caller, dispatch: Dispatch, tool: string, args: Json): Promise<string>
}

/** The tasks of one server. */
interface ServerTasks {
  readonly calls: TaskCalls
  /** Answers a request about a task; false if it is another request. */
  readonly serve: (exchange: Exchange) => boolean
}

/** The tasks of all servers. */
export const createBridgeTasks = ({ questionTtlMs, tasks: given, home }: TasksOfBridge) => {
  const handles = new TaskHandles(home?.keys ?? [randomBytes(32)])
  const servers = new Map<string, ServerTasks['serve']>()
  const resumers = new Map<string, (task: GatewayTask, serverTask: string) => void>()
  const { store, log, afterMs } = given ?? { store: new MemoryCluster().join(), log: SILENT }
  const started = new StartedTasks(store, log)
  const tasks = new GatewayTasks({
    store,
    log,
    resume: (task, serverTask) => {
      const resume = resumers.get(task.origin.server)
      resume?.(task, serverTask)
      return resume !== undefined
    },
  })

  const at = (
    server: string,
    open: (caller: Caller) => Promise<Peer>,
    isElsewhere: (caller: Caller) => Promise<boolean>,
  ): ServerTasks => {
    const forward: Dispatch = exchange =>
      void open(exchange.caller)
        .then(peer => {
          if (!exchange.signal.reason) peer.dispatch(exchange)
        })
        .catch((thrown: unknown) => failWith(exchange, thrown))
    const calls = new TaskCalls({ server, tasks, handles, started, afterMs, questionTtlMs })
    resumers.set(server, (task, serverTask) => {
      const caller = callerOf(task.origin)
      const params = Json.of({ name: task.origin.tool, arguments: {} })
      const exchange: Exchange = {
        ...{ kind: 'request', method: 'tools/call', params, caller },
        ...{ signal: task.upstream, sink: frame => task.receive(frame) },
      }
      calls.resume(task, serverTask, exchange, forward)
    })
    const serve = createTaskServer({ server, tasks, handles, started, forward, isElsewhere })
    servers.set(server, serve)
    return { calls, serve }
  }

  const listening: TaskListenOptions = {
    ...{ tasks, handles },
    serve: (server, exchange) => servers.get(server)?.(exchange) ?? false,
  }

  return {
    at,
    serverOf: (caller: Caller, taskId: string): string | undefined => handles.openFor(caller, taskId)?.server,
    /** Adds tasks to `subscriptions/listen` and `server/discover`; `next` serves the rest, and other exchanges. */
    addTo: (exchange: Exchange, next: Dispatch): void => {
      const isOffered =
        afterMs !== undefined &&
        exchange.method === 'server/discover' &&
        taskSupportOf(exchange.caller.revision) === 'extension'
      if (isOffered) next(offerTasks(exchange))
      else listenToTasks(listening, exchange, next)
    },
    tasks,
    access: {
      list: () => tasks.list(),
      find: id => tasks.find(id),
      cancel: (id, found) => tasks.cancel(id, found),
      startCall: async (caller, dispatch, name, args) => {
        const params = Json.of({ name, arguments: args })
        const created = await sendRequest(each => dispatch({ ...each, wantsTask: true }), caller, 'tools/call', params)
        const handle = created.at('task', 'taskId')?.asString() ?? ''
        const id = handles.openFor(caller, handle)?.id
        if (id === undefined) throw new RpcFailure(rpcError('internal', 'The call was answered without a task'))
        return id
      },
    } satisfies TaskAccess,
    close: () => {
      started.close()
      tasks.close()
    },
  }
}
