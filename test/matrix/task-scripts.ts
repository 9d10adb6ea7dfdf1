import { META, TASKS_EXTENSION } from '../../src/protocol/meta.ts'
import { CAPABILITIES, type MatrixServer, ToolError } from './server.ts'

/** One task of a server, as a test changes it. */
interface MatrixTask {
  readonly taskId: string
  status: string
}

const TIMES = { createdAt: '2026-01-01T00:00:00Z', lastUpdatedAt: '2026-01-01T00:00:00Z' }
const POLL_MS = 100
const JOB = { name: 'job', inputSchema: { type: 'object' } }
export const DONE = { content: [{ type: 'text', text: 'done' }] }
export const FORM = { message: 'Go on?', requestedSchema: { type: 'object', properties: {} } }

/** Gives a server of 2025-11-25 the tool `job`, which runs only as a task. The tasks are returned. */
export const runLegacyTasks = ({ methods, tools }: MatrixServer): Map<string, MatrixTask> => {
  const tasks = new Map<string, MatrixTask>()
  const initialize = methods.get('initialize')
  const capabilities = { ...CAPABILITIES, tasks: { cancel: {}, requests: { tools: { call: {} } } } }
  methods.set('initialize', params => ({ ...initialize?.(params), capabilities }))
  methods.set('tools/list', () => ({ tools: [{ ...JOB, execution: { taskSupport: 'required' } }] }))
  const shown = (task: MatrixTask) => ({ ...task, ...TIMES, ttl: 60_000, pollInterval: POLL_MS })
  tools.set('job', () => ({ task: shown(addTask(tasks)) }))
  methods.set('tasks/get', ({ taskId }) => shown(taskOf(tasks, taskId)))
  methods.set('tasks/cancel', ({ taskId }) => {
    const task = taskOf(tasks, taskId)
    task.status = 'cancelled'
    return shown(task)
  })
  methods.set('tasks/result', ({ taskId }) => ({ ...DONE, _meta: { [META.relatedTask]: { taskId } } }))
  return tasks
}

/** Gives a modern server the tool `job`, which asks in a task of the extension, and `quick`, which knows no tasks. */
export const runModernTasks = ({ methods, tools }: MatrixServer): void => {
  const tasks = new Map<string, MatrixTask>()
  methods.set('tools/list', () => ({ tools: [JOB, { ...JOB, name: 'quick' }] }))
  tools.set('quick', () => DONE)
  tools.set('job', ({ meta }) => {
    const { extensions } = meta[META.clientCapabilities] as { readonly extensions?: object }
    const requiredCapabilities = { extensions: { [TASKS_EXTENSION]: {} } }
    if (!extensions || !(TASKS_EXTENSION in extensions))
      throw new ToolError(-32021, 'Missing required client capability', { requiredCapabilities })
    const created = { ...addTask(tasks), ...TIMES, ttlMs: 60_000, pollIntervalMs: POLL_MS }
    return { ...created, resultType: 'task' }
  })
  methods.set('tasks/get', ({ taskId }) => {
    const { status } = taskOf(tasks, taskId)
    const detail =
      status === 'completed'
        ? { status, result: DONE }
        : { status: 'input_required', inputRequests: { go: { method: 'elicitation/create', params: FORM } } }
    return { taskId, ...detail, ...TIMES, ttlMs: 60_000, pollIntervalMs: POLL_MS }
  })
  methods.set('tasks/update', ({ taskId }) => {
    taskOf(tasks, taskId).status = 'completed'
    return {}
  })
}

const addTask = (tasks: Map<string, MatrixTask>): MatrixTask => {
  const task = { taskId: `t-${tasks.size + 1}`, status: 'working' }
  tasks.set(task.taskId, task)
  return task
}

const taskOf = (tasks: ReadonlyMap<string, MatrixTask>, id: unknown): MatrixTask => {
  const task = tasks.get(String(id))
  if (!task) throw new ToolError(-32602, 'Task not found')
  return task
}
