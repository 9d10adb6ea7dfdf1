import { RpcFailure } from '../protocol/errors.ts'
import type { TaskInfo, TaskList } from '../protocol/task-info.ts'
import { Json, type PlainObject } from '../wire/json/json.ts'
import { type AdminCall, type AdminEndpoint, AdminError } from './endpoints.ts'

/** What is done with tasks. */
export interface TaskEndpointsOptions {
  /** Tasks that the replicas run or keep, the newest first. */
  readonly list: () => Promise<readonly TaskInfo[]>
  /** A task of any replica, with its result or its questions. */
  readonly read: (id: string) => Promise<{ readonly info: TaskInfo; readonly rest: PlainObject } | undefined>
  /** False if there is no such task. */
  readonly cancel: (id: string) => Promise<boolean>
  /** Starts a call as a task, for the user of this machine; resolves with its id. Rejects with an RpcFailure. */
  readonly start: (target: TaskTarget, tool: string, args: Json) => Promise<string>
}

/** Where the tool is: at a server under its own name, or in a workspace as it is listed there. */
export type TaskTarget = { readonly server: string } | { readonly workspace: string }

const TEXT = { type: 'string' }
const CALL = {
  type: 'object',
  properties: { server: TEXT, workspace: TEXT, tool: TEXT, arguments: { type: 'object' } },
}
const ONE_TARGET = 'name either "server", with the own name of a tool, or "workspace", with the name that it lists'
const UNKNOWN = 'there is no such task; it may have expired. GET /admin/tasks lists those of this gateway'

/** The endpoints for tasks that the gateway runs. Viewers see their own. */
export const createTaskEndpoints = ({ list, read, cancel, start }: TaskEndpointsOptions): readonly AdminEndpoint[] => {
  const maySee = ({ role, principal }: AdminCall, task: TaskInfo): boolean =>
    role === 'owner' || (principal !== undefined && task.principal === principal)

  const listAll = async (call: AdminCall): Promise<TaskList> => {
    const tasks = (await list()).filter(task => maySee(call, task))
    const running = tasks.filter(({ status }) => status === 'working' || status === 'input_required').length
    return { tasks, running }
  }

  const show = async (call: AdminCall): Promise<Json> => {
    const found = await read(call.params.id ?? '')
    if (!found || !maySee(call, found.info)) throw new AdminError(404, UNKNOWN)
    return Json.of({ ...found.info, ...found.rest })
  }

  const end = async ({ params }: AdminCall): Promise<undefined> => {
    if (!(await cancel(params.id ?? ''))) throw new AdminError(404, UNKNOWN)
  }

  const begin = async (call: AdminCall): Promise<object> => {
    const body = await call.json()
    const [server, workspace, tool = ''] = ['server', 'workspace', 'tool'].map(name => body.get(name)?.asString())
    if ((server === undefined) === (workspace === undefined)) throw new AdminError(400, ONE_TARGET)
    const target = workspace === undefined ? { server: server ?? '' } : { workspace }
    const id = await start(target, tool, body.get('arguments') ?? Json.empty).catch((error: unknown) => {
      throw error instanceof RpcFailure ? new AdminError(422, error.error.message) : error
    })
    return { id }
  }

  return [
    { method: 'GET', path: '/admin/tasks', access: 'viewer', summary: 'Tasks that the gateway runs', run: listAll },
    { method: 'GET', path: '/admin/tasks/{id}', access: 'viewer', summary: 'A task with its result', run: show },
    {
      method: 'POST',
      path: '/admin/tasks',
      access: 'owner',
      summary: 'Calls a tool of a server, or of a workspace, as a task; answers with its id',
      body: { ...CALL, required: ['tool'] },
      maxBodyBytes: 1024 * 1024,
      run: begin,
    },
    {
      method: 'POST',
      path: '/admin/tasks/{id}/cancel',
      access: 'owner',
      summary: 'Cancels a task',
      isEmpty: true,
      run: end,
    },
  ]
}
