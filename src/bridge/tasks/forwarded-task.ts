import type { Caller, Exchange, Frame } from '../../protocol/exchange.ts'
import { META } from '../../protocol/meta.ts'
import type { Json } from '../../wire/json/json.ts'
import type { StartedTasks } from './started-tasks.ts'
import type { TaskHandles } from './task-handle.ts'

interface ForwardedOptions {
  readonly server: string
  readonly handles: TaskHandles
  readonly started: StartedTasks
}

const STATUS = 'notifications/tasks/status'

/** A replica that serves the server has named the task already. */
const isName = ({ server, handles }: ForwardedOptions, caller: Caller, id: string): boolean =>
  handles.openFor(caller, id)?.server === server

/** The name that a caller gets for a task of a server. */
const nameFor = (options: ForwardedOptions, caller: Caller, id: string): string => {
  if (isName(options, caller, id)) return id
  const { server, handles } = options
  const { workspace, principal } = caller
  return handles.make({ kind: 'server', server, workspace, principal, id })
}

/** The name for a task that the caller has started; undefined for one of another caller. */
const ownNameFor = (options: ForwardedOptions, caller: Caller, id: string): string | undefined =>
  isName(options, caller, id) || options.started.has(options.server, caller, id)
    ? nameFor(options, caller, id)
    : undefined

/** The exchange of a call that the server may make a task of: the client gets a name that only it can use. */
export const forwardedCall = (options: ForwardedOptions, exchange: Exchange): Exchange => {
  const { caller, sink } = exchange
  const rename = (id: string): string => nameFor(options, caller, id)
  const renameStarted = (id: string): string => {
    if (!isName(options, caller, id)) options.started.add(options.server, caller, id)
    return rename(id)
  }
  return {
    ...exchange,
    sink: frame => sink(isTask(frame) ? renameIn(frame, renameStarted) : renameRelated(frame, rename)),
  }
}

/** Whether the server has made a task of a call. Other results may have members of the same name. */
const isTask = (frame: Frame): boolean =>
  frame.kind === 'result' &&
  (frame.result.get('resultType')?.isString('task') === true || frame.result.at('task', 'taskId') !== undefined)

/** The exchange of a request about a task of the server, and of its answer. */
export const forwardedRequest = (exchange: Exchange, id: string): Exchange => {
  const name = exchange.params.get('taskId')?.asString() ?? ''
  return {
    ...exchange,
    params: exchange.params.with('taskId', id),
    sink: frame => exchange.sink(renameIn(frame, () => name)),
  }
}

/** The exchange of `tasks/list`, whose answer keeps the tasks that the caller has started. */
export const forwardedList = (options: ForwardedOptions, exchange: Exchange): Exchange => {
  const rename = (task: Json): Json | undefined => {
    const name = ownNameFor(options, exchange.caller, task.get('taskId')?.asString() ?? '')
    return name === undefined ? undefined : task.with('taskId', name)
  }
  return {
    ...exchange,
    sink: frame => {
      const tasks = frame.kind === 'result' ? frame.result.get('tasks') : undefined
      if (frame.kind !== 'result' || tasks?.kind !== 'array') return exchange.sink(frame)
      return exchange.sink({ kind: 'result', result: frame.result.with('tasks', tasks.map(rename)) })
    },
  }
}

/** The exchange of a session's listener: a server of 2025-11-25 tells there how its tasks are. */
export const forwardedListen = (options: ForwardedOptions, exchange: Exchange): Exchange => {
  const { caller, sink } = exchange
  return {
    ...exchange,
    sink: frame => {
      if (frame.kind !== 'notice' || frame.method !== STATUS)
        return sink(renameRelated(frame, id => nameFor(options, caller, id)))
      const name = ownNameFor(options, caller, frame.params.get('taskId')?.asString() ?? '')
      if (name !== undefined) return sink({ ...frame, params: frame.params.with('taskId', name) })
    },
  }
}

const renameIn = (frame: Frame, rename: (id: string) => string): Frame => {
  if (frame.kind !== 'result') return renameRelated(frame, rename)
  const { result } = frame
  const task = result.get('task')
  const named = task?.has('taskId') ? result.with('task', withName(task, rename)) : withName(result, rename)
  return { kind: 'result', result: withRelated(named, rename) }
}

const renameRelated = (frame: Frame, rename: (id: string) => string): Frame => {
  if (frame.kind === 'failure') return frame
  if (frame.kind === 'result') return { kind: 'result', result: withRelated(frame.result, rename) }
  const params = withRelated(frame.params, rename)
  return params === frame.params ? frame : { ...frame, params }
}

const withName = (task: Json, rename: (id: string) => string): Json => {
  const id = task.get('taskId')?.asString()
  return id === undefined ? task : task.with('taskId', rename(id))
}

const withRelated = (payload: Json, rename: (id: string) => string): Json => {
  const meta = payload.get('_meta')
  const related = meta?.get(META.relatedTask)
  return meta && related ? payload.with('_meta', meta.with(META.relatedTask, withName(related, rename))) : payload
}
