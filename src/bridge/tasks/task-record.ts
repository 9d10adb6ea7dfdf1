import type { Caller } from '../../protocol/exchange.ts'
import { isRevision, MODERN, type Revision } from '../../protocol/revisions.ts'
import { isTaskStatus } from '../../protocol/task-info.ts'
import { TASK_LIMITS, type TaskState } from '../../protocol/tasks.ts'
import { Json } from '../../wire/json/json.ts'

/** What a task is about, and for whom it runs: enough to go on with it in another process. */
export interface TaskOrigin {
  readonly server: string
  readonly tool: string
  readonly workspace: string
  readonly principal: string | undefined
  readonly revision: Revision // of the client; results and questions are in its form
  readonly capabilities: Json
}

/** A task as it is stored. */
export interface TaskRecord {
  readonly origin: TaskOrigin
  readonly state: TaskState
  readonly serverTask?: string | undefined // the id of the server's own task, which a later process can go on with
}

export const taskOriginOf = (server: string, tool: string, caller: Caller): TaskOrigin => {
  const { workspace, principal, revision, capabilities } = caller
  return { server, tool, workspace, principal, revision, capabilities: capabilities.compact() }
}

/** The caller of requests that a task makes without its client. */
export const callerOf = ({ workspace, principal, revision, capabilities }: TaskOrigin): Caller => ({
  workspace,
  principal,
  revision,
  capabilities,
  headers: new Map(),
})

export const writeRecord = ({ origin, state, serverTask }: TaskRecord): Buffer => {
  const { error, ...rest } = state
  return Json.of({
    origin: { ...origin },
    serverTask,
    state: { ...rest, error: error && { code: error.code, message: error.message, data: error.data } },
  }).toBytes()
}

/** Reads a record; undefined if it is of a version that this one does not know. */
export const readRecord = (body: Buffer): TaskRecord | undefined => {
  const json = Json.parse(body)
  const [origin, state] = [json.get('origin'), json.get('state')]
  const status = state?.get('status')?.asString()
  if (!origin || !state || !isTaskStatus(status)) return undefined
  const text = (from: Json, key: string): string | undefined => from.get(key)?.asString()
  const revision = text(origin, 'revision')
  const error = state.get('error')
  return {
    origin: {
      server: text(origin, 'server') ?? '',
      tool: text(origin, 'tool') ?? '',
      workspace: text(origin, 'workspace') ?? '',
      principal: text(origin, 'principal'),
      revision: isRevision(revision) ? revision : MODERN,
      capabilities: origin.get('capabilities') ?? Json.empty,
    },
    serverTask: text(json, 'serverTask'),
    state: {
      status,
      message: text(state, 'message'),
      createdAt: state.get('createdAt')?.asNumber() ?? 0,
      updatedAt: state.get('updatedAt')?.asNumber() ?? 0,
      ttlMs: state.get('ttlMs')?.asNumber() ?? TASK_LIMITS.ttlMs,
      pollMs: state.get('pollMs')?.asNumber() ?? TASK_LIMITS.pollMs,
      inputs: state.get('inputs'),
      result: state.get('result'),
      error: error && {
        code: error.get('code')?.asNumber() ?? 0,
        message: text(error, 'message') ?? '',
        data: error.get('data'),
      },
    },
  }
}
