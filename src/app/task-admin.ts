import type { TaskEndpointsOptions } from '../admin/task-endpoints.ts'
import type { KnownTask } from '../bridge/tasks/replica-task-lists.ts'
import { suggest } from '../config/problems.ts'
import { RpcFailure, rpcError } from '../protocol/errors.ts'
import type { Caller } from '../protocol/exchange.ts'
import { NEWEST_LEGACY } from '../protocol/revisions.ts'
import type { TaskInfo } from '../protocol/task-info.ts'
import type { TaskSummary } from '../protocol/tasks.ts'
import { Json } from '../wire/json/json.ts'
import type { Runtime } from './runtime.ts'

/** The principal of programs of the same user on this machine. */
const LOCAL: Caller = {
  workspace: 'default',
  principal: 'local',
  revision: NEWEST_LEGACY,
  capabilities: Json.empty,
  headers: new Map(),
}

/** Tasks as the admin API shows and starts them. */
export const createTaskAdmin = (
  runtime: Pick<Runtime, 'tasks' | 'dispatch' | 'dispatchTo' | 'hasWorkspace' | 'snapshot'>,
): TaskEndpointsOptions => {
  const { tasks } = runtime
  return {
    list: async () => (await tasks.list()).map(infoOf),
    read: async id => {
      const found = await tasks.find(id)
      if (!found) return undefined
      const { state } = found.record
      const { inputs, result, error } = state
      const rest = { inputRequests: inputs, result, error: error && { ...error } }
      return { info: infoOf({ id, origin: found.record.origin, state }), rest }
    },
    cancel: async id => {
      const found = await tasks.find(id)
      if (found) await tasks.cancel(id, found)
      return found !== undefined
    },
    start: async (target, tool, args) => {
      if ('workspace' in target) {
        const { workspace } = target
        if (runtime.hasWorkspace(workspace))
          return tasks.startCall({ ...LOCAL, workspace }, runtime.dispatch, tool, args)
        throw unknown('workspace', workspace, runtime.snapshot.workspaces)
      }
      const dispatch = runtime.dispatchTo(target.server)
      if (!dispatch) throw unknown('server', target.server, runtime.snapshot.servers)
      return tasks.startCall(LOCAL, dispatch, tool, args)
    },
  }
}

const infoOf = ({
  id,
  origin,
  state,
}: Pick<KnownTask, 'id' | 'origin'> & { readonly state: TaskSummary }): TaskInfo => ({
  ...{ id, server: origin.server, tool: origin.tool, workspace: origin.workspace, principal: origin.principal },
  ...{ status: state.status, message: state.message, createdAt: state.createdAt, updatedAt: state.updatedAt },
  expires: state.createdAt + state.ttlMs,
})

const unknown = (kind: string, name: string, known: ReadonlyMap<string, unknown>): RpcFailure => {
  const hint = suggest(name, [...known.keys()], 'the configuration has none')
  return new RpcFailure(rpcError('invalidParams', `there is no ${kind} ${JSON.stringify(name)}; ${hint}`))
}
