// Tasks that the gateway runs, as `/admin/tasks` shows them to the console and to `dragoman tasks`.

import type { TaskStatus } from './tasks.ts'

/** A task that this replica runs, or whose result it keeps. */
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
