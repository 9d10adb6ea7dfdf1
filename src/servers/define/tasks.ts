import { randomUUID } from 'node:crypto'
import type { AbortReason } from '../../protocol/cancellation.ts'
import { RpcFailure, rpcError } from '../../protocol/errors.ts'
import type { Caller, Sink } from '../../protocol/exchange.ts'
import { RunningTask } from '../../protocol/running-task.ts'
import { writeCreatedTask, writeTask } from '../../protocol/task-json.ts'
import { declaresTasks, TASK_LIMITS, TASKS_NOT_DECLARED, UNKNOWN_TASK } from '../../protocol/tasks.ts'
import { Json } from '../../wire/json/json.ts'
import { type Call, textParam } from './call.ts'
import { failure } from './failures.ts'

/** `optional`: runs as a task for clients that can; `required`: only so. */
export type ToolTask = 'optional' | 'required'

/** A call that goes on as a task: where its frames go, and what its client gets. */
interface StartedTask {
  readonly sink: Sink
  readonly created: Json
}

/** The tasks of one server. They end with it. */
export interface TaskBoard {
  /** Starts a task; undefined if the caller cannot have one and need not. */
  start(caller: Caller, task: ToolTask, onCancel: (reason: AbortReason) => void): StartedTask | undefined
  get(call: Call): Json
  update(call: Call): Json
  cancel(call: Call): Json
}

interface BoardEntry {
  readonly running: RunningTask
  readonly principal: string | undefined
}

const DONE = Json.empty

export const createTaskBoard = (): TaskBoard => {
  const entries = new Map<string, BoardEntry>()

  const find = ({ caller, params }: Call): { readonly id: string; readonly running: RunningTask } => {
    if (!declaresTasks(caller.capabilities)) throw new RpcFailure(TASKS_NOT_DECLARED)
    const id = textParam(params, 'taskId')
    const entry = entries.get(id)
    if (!entry || entry.principal !== caller.principal) throw new RpcFailure(UNKNOWN_TASK)
    return { id, running: entry.running }
  }

  const start: TaskBoard['start'] = ({ capabilities, principal }, task, onCancel) => {
    if (!declaresTasks(capabilities)) {
      if (task === 'optional') return undefined
      throw new RpcFailure(TASKS_NOT_DECLARED)
    }
    if (entries.size >= TASK_LIMITS.perPrincipal)
      throw new RpcFailure(rpcError('internal', `This server has ${entries.size} tasks, which is its limit`))
    const id = randomUUID()
    const running = new RunningTask({ ttlMs: TASK_LIMITS.ttlMs, onChange: () => {}, onCancel })
    entries.set(id, { running, principal })
    setTimeout(() => {
      entries.delete(id)
      running.cancel('The task has expired')
    }, running.ttlMs).unref()
    return { sink: frame => running.receive(frame), created: writeCreatedTask(id, running.state) }
  }

  return {
    start,
    get: call => {
      const { id, running } = find(call)
      return writeTask(id, running.state)
    },
    update: call => {
      const { running } = find(call)
      const responses = call.params.get('inputResponses')
      if (!responses?.isObject) throw failure('invalidParams', 'inputResponses must be an object')
      for (const [key, result] of responses.entries()) running.answer(key, { kind: 'result', result })
      return DONE
    },
    cancel: call => {
      find(call).running.cancel()
      return DONE
    },
  }
}
