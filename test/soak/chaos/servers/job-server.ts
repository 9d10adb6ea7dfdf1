import { randomUUID } from 'node:crypto'
import { type Endpoint, type Handler, listen } from '../../../support/servers/http.ts'
import { resultOf } from '../ledger.ts'

const TTL_MS = 600_000
const POLL_MS = 200

interface Job {
  readonly number: number
  readonly endsAt: number
  readonly startedAt: number
}

const TOOL = {
  name: 'job',
  description: 'Works for a while, only as a task',
  inputSchema: {
    type: 'object',
    properties: { number: { type: 'integer' }, ms: { type: 'integer' } },
    required: ['number'],
  },
  execution: { taskSupport: 'required' },
}

const METHODS: Readonly<Record<string, unknown>> = {
  initialize: {
    protocolVersion: '2025-11-25',
    capabilities: { tools: {}, tasks: { cancel: {}, requests: { tools: { call: {} } } } },
    serverInfo: { name: 'chaos-jobs', version: '1.0.0' },
  },
  'tools/list': { tools: [TOOL] },
  ping: {},
}

/** A server of 2025-11-25 without sessions, whose only tool runs as a task; tasks outlive the gateway that started them. */
export const startJobServer = (executed: (number: number) => void): Promise<Endpoint> => {
  const jobs = new Map<string, Job>()

  const stateOf = (taskId: string, { startedAt, endsAt }: Job): object => ({
    taskId,
    status: Date.now() < endsAt ? 'working' : 'completed',
    ttl: TTL_MS,
    pollInterval: POLL_MS,
    createdAt: new Date(startedAt).toISOString(),
    lastUpdatedAt: new Date().toISOString(),
  })

  const begin = (given: Readonly<Record<string, unknown>>): object => {
    const number = Number(given.number)
    const job = { number, startedAt: Date.now(), endsAt: Date.now() + Number(given.ms ?? 0) }
    const taskId = randomUUID()
    executed(number)
    jobs.set(taskId, job)
    return { task: stateOf(taskId, job) }
  }

  const respond = (method: string, params: Readonly<Record<string, unknown>>): object => {
    if (method in METHODS) return { result: METHODS[method] }
    if (method === 'tools/call') return { result: begin(params.arguments as Readonly<Record<string, unknown>>) }
    const taskId = String(params.taskId)
    const job = jobs.get(taskId)
    if (!method.startsWith('tasks/')) return { error: { code: -32601, message: `Method not found: ${method}` } }
    if (!job) return { error: { code: -32602, message: 'Task not found' } }
    if (method !== 'tasks/result') return { result: stateOf(taskId, job) }
    return { result: { content: [{ type: 'text', text: resultOf({ tool: 'job', number: job.number }) }] } }
  }

  const handle: Handler = async request => {
    if (request.method !== 'POST') return new Response(null, { status: 405 })
    const {
      id,
      method,
      params = {},
    } = (await request.json()) as {
      readonly id?: unknown
      readonly method?: string
      readonly params?: Readonly<Record<string, unknown>>
    }
    if (id === undefined || method === undefined) return new Response(null, { status: 202 })
    return Response.json({ jsonrpc: '2.0', id, ...respond(method, params) })
  }

  return listen(handle)
}
