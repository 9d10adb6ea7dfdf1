import { listedTask } from '../../eras/tasks.ts'
import { deliver } from '../../protocol/deliver.ts'
import type { Caller, Dispatch, Exchange } from '../../protocol/exchange.ts'
import { Json, type PlainObject } from '../../wire/json/json.ts'
import { forwardedList } from './forwarded-task.ts'
import type { GatewayTasks } from './gateway-tasks.ts'
import type { KnownTask } from './replica-task-lists.ts'
import type { StartedTasks } from './started-tasks.ts'
import type { TaskHandles } from './task-handle.ts'

interface ListTasksOptions {
  readonly server: string
  readonly tasks: Pick<GatewayTasks, 'list'>
  readonly handles: TaskHandles
  readonly started: StartedTasks
  readonly forward: Dispatch
}

const PAGE = 100
const CURSOR = 'dragoman-task-' // of a page of the gateway's own tasks; any other cursor is the server's

/** Answers `tasks/list`: the tasks that the gateway runs for the caller, the newest first, then those of the server. */
export const listTasks = async (options: ListTasksOptions, exchange: Exchange): Promise<void> => {
  const { forward } = options
  const { params, sink } = exchange
  const cursor = params.get('cursor')?.asString()
  if (cursor !== undefined && !cursor.startsWith(CURSOR)) return forward(forwardedList(options, exchange))
  const own = await tasksOf(options, exchange.caller)
  const from = cursor === undefined ? 0 : own.findIndex(task => isAfter(cursor, task))
  const page = from < 0 ? [] : own.slice(from, from + PAGE)
  const shown = page.map(({ id, origin, state }) => listedTask(nameOf(options, origin, id), state, state.hasToolFailed))
  const last = page.at(-1)
  if (last && last !== own.at(-1))
    return void deliver(sink, { kind: 'result', result: Json.of({ tasks: shown, nextCursor: cursorOf(last) }) })
  forward(forwardedList(options, { ...withTasks(exchange, shown), params: params.without('cursor') }))
}

/** An anonymous caller has no tasks here that could be told from those of others. */
const tasksOf = async ({ server, tasks }: ListTasksOptions, { workspace, principal }: Caller): Promise<KnownTask[]> => {
  if (principal === undefined) return []
  const all = await tasks.list()
  return all.filter(
    ({ origin }) => origin.server === server && origin.workspace === workspace && origin.principal === principal,
  )
}

const nameOf = ({ handles }: ListTasksOptions, origin: KnownTask['origin'], id: string): string => {
  const { server, workspace, principal } = origin
  return handles.make({ kind: 'gateway', server, workspace, principal, id })
}

/** Tasks that begin while a client reads the pages do not move those it has yet to read. */
const cursorOf = ({ id, state }: KnownTask): string => `${CURSOR}${state.createdAt}-${id}`

const isAfter = (cursor: string, { id, state }: KnownTask): boolean => {
  const [createdAt = '', ...rest] = cursor.slice(CURSOR.length).split('-')
  if (state.createdAt !== Number(createdAt)) return state.createdAt < Number(createdAt)
  return id > rest.join('-')
}

/** The exchange whose answer begins with these tasks. */
const withTasks = (exchange: Exchange, first: readonly PlainObject[]): Exchange => ({
  ...exchange,
  sink: frame => {
    const listed = frame.kind === 'result' ? frame.result.get('tasks') : undefined
    if (frame.kind !== 'result' || listed?.kind !== 'array' || first.length === 0) return exchange.sink(frame)
    const tasks = [...first, ...listed.elements()]
    return exchange.sink({ kind: 'result', result: frame.result.with('tasks', tasks) })
  },
})
