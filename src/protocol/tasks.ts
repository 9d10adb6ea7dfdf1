import { Json } from '../wire/json/json.ts'
import { type RpcError, rpcError } from './errors.ts'
import { TASKS_EXTENSION } from './meta.ts'
import type { TaskStatus } from './task-info.ts'

/** One task, in the form of no revision: `eras/tasks.ts` writes it for a client. */
export interface TaskState {
  readonly status: TaskStatus
  readonly message?: string | undefined // what it does now, or why it ended
  readonly createdAt: number // Unix time in milliseconds, like the next one
  readonly updatedAt: number
  readonly ttlMs: number // since its creation
  readonly pollMs: number // how often a client should ask
  readonly inputs?: Json | undefined // of `input_required`: the open questions, by key
  readonly result?: Json | undefined // of `completed`
  readonly error?: RpcError | undefined // of `failed`
}

/** The state of a task without what can be large. */
export type TaskSummary = Omit<TaskState, 'inputs' | 'result' | 'error'>

/** Whether capabilities, of a client or of a server of 2026-07-28, include the tasks extension. */
export const declaresTasks = (capabilities: Json): boolean =>
  capabilities.has('extensions') && capabilities.at('extensions', TASKS_EXTENSION)?.isObject === true

/** Whether capabilities of a server of 2025-11-25 let its tools run as tasks. */
export const runsToolsAsTasks = (capabilities: Json): boolean =>
  capabilities.at('tasks', 'requests', 'tools', 'call')?.isObject === true

const REQUIRED = Json.of({ requiredCapabilities: { extensions: { [TASKS_EXTENSION]: {} } } })

/** The answer to a client that uses tasks without declaring the extension. */
export const TASKS_NOT_DECLARED: RpcError = rpcError(
  'missingCapability',
  `Missing required client capability: declare the extension ${TASKS_EXTENSION}`,
  REQUIRED,
)

/** Whether a server refuses a call only because its caller does not declare the extension. */
export const wantsTasks = ({ code, data }: RpcError): boolean =>
  code === TASKS_NOT_DECLARED.code && data?.at('requiredCapabilities', 'extensions', TASKS_EXTENSION) !== undefined

/** The answer for a task that does not exist, has expired, or belongs to another principal: they look the same. */
export const UNKNOWN_TASK: RpcError = rpcError(
  'invalidParams',
  'Unknown task: it has expired, or it belongs to another user. Send the request again to start a new one',
  Json.of({ reason: 'unknown_task' }),
)

/** Limits of tasks that the gateway runs itself. */
export const TASK_LIMITS = {
  ttlMs: 60 * 60_000,
  maxTtlMs: 24 * 60 * 60_000,
  pollMs: 1000,
  perPrincipal: 1000,
  resultBytes: 16 * 1024 * 1024,
  questions: 1000, // of one task
} as const
