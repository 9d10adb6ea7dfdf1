import { taskStatusNotice } from '../../eras/tasks.ts'
import { deliver, failWith } from '../../protocol/deliver.ts'
import { type RpcError, rpcError } from '../../protocol/errors.ts'
import type { Dispatch, Exchange, Frame } from '../../protocol/exchange.ts'
import { NOTIFICATIONS } from '../../protocol/notifications.ts'
import { taskSupportOf } from '../../protocol/revisions.ts'
import { declaresTasks, TASKS_NOT_DECLARED } from '../../protocol/tasks.ts'
import type { GatewayTasks } from './gateway-tasks.ts'
import type { TaskHandle, TaskHandles } from './task-handle.ts'
import { TaskWatch } from './task-watch.ts'

export interface TaskListenOptions {
  readonly tasks: GatewayTasks
  readonly handles: TaskHandles
  /** Sends a request about a task to its server; false if there is no such server. */
  readonly serve: (server: string, exchange: Exchange) => boolean
}

const LISTEN = 'subscriptions/listen'
const IDS = 'taskIds'
const MOST_IDS = 1000 // of one listen; further ones are not acknowledged

/** Serves what a `subscriptions/listen` asks for about tasks; `next` serves everything else of it. */
export const listenToTasks = (options: TaskListenOptions, exchange: Exchange, next: Dispatch): void => {
  const { method, kind, caller, params } = exchange
  if (method !== LISTEN || kind !== 'request') return next(exchange)
  if (taskSupportOf(caller.revision) === 'param') return next(withStatusOfSession(options.tasks, exchange))
  if (taskSupportOf(caller.revision) !== 'extension' || params.at('notifications', IDS) === undefined)
    return next(exchange)
  const ids = idsIn(exchange)
  if ('code' in ids) return void deliver(exchange.sink, { kind: 'failure', error: ids })
  acceptedIds(options, exchange, ids)
    .then(accepted => {
      if (!exchange.signal.reason) next(watching(options, exchange, accepted))
    })
    .catch((thrown: unknown) => failWith(exchange, thrown))
}

/** The ids that a client asks for, or why it is refused. */
const idsIn = ({ caller, params }: Exchange): readonly string[] | RpcError => {
  if (!declaresTasks(caller.capabilities)) return TASKS_NOT_DECLARED
  const list = params.at('notifications', IDS)
  const ids = list?.kind === 'array' ? list.elements().map(id => id.asString()) : [undefined]
  return ids.every(id => id !== undefined)
    ? [...new Set(ids)]
    : rpcError('invalidParams', '`taskIds` must be a list of strings')
}

/** Those of existing tasks of the caller. */
const acceptedIds = async (
  { tasks, handles }: TaskListenOptions,
  { caller }: Exchange,
  ids: readonly string[],
): Promise<ReadonlyMap<string, TaskHandle>> => {
  const own = new Map<string, TaskHandle>()
  for (const id of ids) {
    const handle = own.size < MOST_IDS ? handles.openFor(caller, id) : undefined
    if (handle) own.set(id, handle)
  }
  const exists = async ([, { kind, id }]: readonly [string, TaskHandle]): Promise<boolean> =>
    kind === 'server' || (await tasks.find(id).catch(() => true)) !== undefined // a store that is away comes back
  const found = await Promise.all([...own].map(exists))
  return new Map([...own].filter((_, at) => found[at]))
}

/** The listen without its tasks, whose acknowledgement names the accepted ones; they are watched from then on. */
const watching = (
  options: TaskListenOptions,
  exchange: Exchange,
  accepted: ReadonlyMap<string, TaskHandle>,
): Exchange => {
  const { params, signal, sink } = exchange
  const notifications = params.get('notifications')
  let watch: TaskWatch | undefined
  signal.onAbort(() => watch?.end())
  const receive = (frame: Frame): void | Promise<void> => {
    if (frame.kind === 'result' || frame.kind === 'failure') watch?.end()
    if (frame.kind !== 'notice' || frame.method !== NOTIFICATIONS.acknowledged) return sink(frame)
    const honoured = frame.params.get('notifications')
    const withIds = honoured?.isObject ? honoured.with(IDS, [...accepted.keys()]) : { [IDS]: [...accepted.keys()] }
    const acknowledged = deliver(sink, { ...frame, params: frame.params.with('notifications', withIds) })
    if (signal.reason) return acknowledged
    watch ??= new TaskWatch(options, exchange, accepted)
    watch.start()
    return acknowledged
  }
  return {
    ...exchange,
    params: notifications ? params.with('notifications', notifications.without(IDS)) : params,
    sink: receive,
  }
}

/** A session of 2025-11-25 is told how the gateway's tasks of its own calls are. */
const withStatusOfSession = (tasks: GatewayTasks, exchange: Exchange): Exchange => {
  const { caller, signal, sink } = exchange
  if (caller.session === undefined) return exchange
  const stop = tasks.watchSession(caller.session, (name, state) => void deliver(sink, taskStatusNotice(name, state)))
  signal.onAbort(stop)
  return exchange
}
