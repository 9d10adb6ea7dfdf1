// The states of tasks, and tasks that the gateway runs as `/admin/tasks` shows them to the console and to `dragoman tasks`.

/** Where a task is; the last three are final. */
export type TaskStatus = (typeof TASK_STATUSES)[number]
const TASK_STATUSES = ['working', 'input_required', 'completed', 'failed', 'cancelled'] as const

const FINAL: ReadonlySet<TaskStatus> = new Set(['completed', 'failed', 'cancelled'])

export const isFinal = (status: TaskStatus): boolean => FINAL.has(status)

export const isTaskStatus = (text: string | undefined): text is TaskStatus =>
  text !== undefined && (TASK_STATUSES as readonly string[]).includes(text)

/** A task that a replica of this gateway runs, or whose result it keeps. */
export interface TaskInfo {
  readonly id: string
  readonly server: string
  readonly tool: string
  readonly workspace: string
  readonly principal?: string | undefined // undefined: an anonymous caller
  readonly status: TaskStatus
  readonly message?: string | undefined
  readonly createdAt: number // Unix time in milliseconds, as all times here
  readonly updatedAt: number
  readonly expires: number // it is forgotten then
}

/** `GET /admin/tasks`: the newest first. */
export interface TaskList {
  readonly tasks: readonly TaskInfo[]
  readonly running: number
}

/** `GET /admin/tasks/{id}` */
export interface TaskDetails extends TaskInfo {
  readonly inputRequests?: unknown // open questions, by key
  readonly result?: unknown
  readonly error?: unknown
}
