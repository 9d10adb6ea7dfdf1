import type { Caller, Exchange, Frame } from '../../protocol/exchange.ts'
import { META } from '../../protocol/meta.ts'
import type { Json } from '../../wire/json/json.ts'
import type { TaskHandles } from './task-handle.ts'

interface ForwardedOptions {
  readonly server: string
  readonly handles: TaskHandles
}

const STATUS = 'notifications/tasks/status'

/** The name that a caller gets for a task of a server. A replica that serves the server has named it already. */
const nameFor = ({ server, handles }: ForwardedOptions, caller: Caller, id: string): string => {
  if (handles.openFor(caller, id)?.server === server) return id
  const { workspace, principal } = caller
  return handles.make({ kind: 'server', server, workspace, principal, id })
}

/** The exchange of a call that the server may make a task of: the client gets a name that only it can use. */
export const forwardedCall = (options: ForwardedOptions, exchange: Exchange): Exchange => {
  const rename = (id: string): string => nameFor(options, exchange.caller, id)
  return { ...exchange, sink: frame => exchange.sink(renameIn(frame, rename)) }
}

/** The exchange of a request about a task of the server, and of its answer. */
export const forwardedRequest = (exchange: Exchange, id: string): Exchange => {
  const name = exchange.params.get('taskId')?.asString() ?? ''
  return {
    ...exchange,
    params: exchange.params.with('taskId', id),
    sink: frame => exchange.sink(renameIn(frame, () => name)),
  }
}

/** The exchange of `tasks/list`. */
export const forwardedList = (options: ForwardedOptions, exchange: Exchange): Exchange => {
  const rename = (task: Json): Json => withName(task, id => nameFor(options, exchange.caller, id))
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
  const rename = (id: string): string => nameFor(options, exchange.caller, id)
  return {
    ...exchange,
    sink: frame => {
      const isStatus = frame.kind === 'notice' && frame.method === STATUS
      return exchange.sink(
        isStatus ? { ...frame, params: withName(frame.params, rename) } : renameRelated(frame, rename),
      )
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
