import { META } from '../protocol/meta.ts'
import { type Revision, taskSupportOf } from '../protocol/revisions.ts'
import { isTaskStatus, type TaskStatus } from '../protocol/task-info.ts'
import { taskMembers, writeCreatedTask, writeTask } from '../protocol/task-json.ts'
import type { TaskState, TaskSummary } from '../protocol/tasks.ts'
import { Json, type PlainObject } from '../wire/json/json.ts'

/** An item of `tasks/list`, which only 2025-11-25 has. There, a task has failed if its tool has. */
export const listedTask = (id: string, state: TaskSummary, hasToolFailed: boolean): PlainObject => ({
  ...taskMembers(id, state),
  status: hasToolFailed ? 'failed' : state.status,
  ttl: state.ttlMs,
  pollInterval: state.pollMs,
})

const legacyTask = (id: string, state: TaskState): PlainObject => listedTask(id, state, hasToolFailed(state))

/** Whether the result of a task is an error of its tool. */
export const hasToolFailed = ({ result }: TaskState): boolean => result?.get('isError')?.asBoolean() === true

/** The result of `tasks/get` for a client of a revision. */
export const taskFor = (id: string, state: TaskState, revision: Revision): Json =>
  taskSupportOf(revision) === 'extension' ? writeTask(id, state) : Json.of(legacyTask(id, state))

/** The result of a call that goes on as a task, for a client of a revision. */
export const createdTaskFor = (id: string, state: TaskState, revision: Revision): Json =>
  taskSupportOf(revision) === 'extension' ? writeCreatedTask(id, state) : Json.of({ task: legacyTask(id, state) })

/** Tells a session of 2025-11-25 how one of its tasks is. */
export const taskStatusNotice = (id: string, state: TaskState) =>
  ({ kind: 'notice', method: 'notifications/tasks/status', params: Json.of(legacyTask(id, state)) }) as const

/** What a server of 2025-11-25 says about one of its tasks. */
export interface ServerTask {
  readonly id: string
  readonly status: TaskStatus
  readonly message: string | undefined
  readonly pollMs: number | undefined
}

/** Reads the task of a server of 2025-11-25; undefined if it is none. */
export const readServerTask = (task: Json | undefined): ServerTask | undefined => {
  const id = task?.get('taskId')?.asString()
  const status = task?.get('status')?.asString()
  if (!task || id === undefined || !isTaskStatus(status)) return undefined
  const pollMs = task.get('pollInterval')?.asNumber() ?? task.get('pollIntervalMs')?.asNumber()
  return { id, status, message: task.get('statusMessage')?.asString(), pollMs }
}

/** Adds the task that a message of 2025-11-25 belongs to. */
export const withRelatedTask = (payload: Json, taskId: string): Json =>
  payload.with('_meta', (payload.get('_meta') ?? Json.empty).with(META.relatedTask, { taskId }))

/** Removes it: in 2026-07-28 such messages are inside their task. */
export const withoutRelatedTask = (payload: Json): Json => {
  const meta = payload.get('_meta')
  if (!meta?.has(META.relatedTask)) return payload
  const rest = meta.without(META.relatedTask)
  return rest.entries().length === 0 ? payload.without('_meta') : payload.with('_meta', rest)
}
