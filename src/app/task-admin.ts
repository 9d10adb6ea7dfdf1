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
export const createTaskAdmin = (runtime: Pick<Runtime, 'tasks' | 'dispatchTo' | 'snapshot'>): TaskEndpointsOptions => {
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
    start: async (server, tool, args) => {
      const dispatch = runtime.dispatchTo(server)
      if (!dispatch) throw new RpcFailure(rpcError('invalidParams', unknownServer(server, runtime)))
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

const unknownServer = (name: string, { snapshot }: Pick<Runtime, 'snapshot'>): string =>
  `there is no server ${JSON.stringify(name)}; ${suggest(name, [...snapshot.servers.keys()], 'the configuration has none')}`
