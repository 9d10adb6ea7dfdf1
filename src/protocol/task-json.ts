import { Json, type PlainObject } from '../wire/json/json.ts'
import type { TaskState, TaskSummary } from './tasks.ts'

// Tasks as 2026-07-28 writes them, in its extension io.modelcontextprotocol/tasks.

/** The members that a task has in every revision. */
export const taskMembers = (id: string, { status, message, createdAt, updatedAt }: TaskSummary): PlainObject => ({
  taskId: id,
  status,
  statusMessage: message,
  createdAt: new Date(createdAt).toISOString(),
  lastUpdatedAt: new Date(updatedAt).toISOString(),
})

const withTimes = (id: string, state: TaskState): PlainObject => ({
  ...taskMembers(id, state),
  ttlMs: state.ttlMs,
  pollIntervalMs: state.pollMs,
})

/** The whole task: the params of `notifications/tasks`, and with a result type the result of `tasks/get`. */
export const writeTaskNotice = (id: string, state: TaskState): Json => Json.of(wholeTask(id, state))

/** The result of `tasks/get`. */
export const writeTask = (id: string, state: TaskState): Json =>
  Json.of({ resultType: 'complete', ...wholeTask(id, state) })

const wholeTask = (id: string, state: TaskState): PlainObject => {
  const { inputs, result, error } = state
  return {
    ...withTimes(id, state),
    inputRequests: inputs,
    result,
    error: error && { code: error.code, message: error.message, data: error.data },
  }
}

/** The result of a call that goes on as a task. */
export const writeCreatedTask = (id: string, state: TaskState): Json =>
  Json.of({ resultType: 'task', ...withTimes(id, state) })
