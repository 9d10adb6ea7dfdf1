import { setTimeout as sleep } from 'node:timers/promises'
import { openStream, result, type ScriptedServer, scriptedServer, sendJson } from './scripted-server.ts'

/** One task of the server, as a test changes it. */
export interface ScriptedTask {
  readonly id: string
  status: string
  result?: unknown
  error?: { readonly code: number; readonly message: string }
}

const PATIENCE_MS = 5000
const CALL_TEXT = { content: [{ type: 'text', text: 'done' }] }
const QUESTION = {
  message: 'Go on?',
  requestedSchema: { type: 'object', properties: { go: { type: 'boolean' } } },
}

/**
 * A server of 2025-11-25 in this process. `job` runs only as a task, whose state the test sets; `plain` never does and
 * answers when `finish` is called, as `asking` does, which asks when `ask` is called. Tasks outlive the gateway's sessions,
 * which it has only if `session` is their id.
 */
export const startTaskServer = async (pollMs = 100, session?: string) => {
  const tasks = new Map<string, ScriptedTask>()
  const open: ((value: unknown) => void)[] = [] // calls of `plain`
  const answers: unknown[] = []
  let asking: ReturnType<typeof openStream> | undefined
  const shown = ({ id, status }: ScriptedTask) => ({
    taskId: id,
    status,
    ttl: 3_600_000,
    pollInterval: pollMs,
    createdAt: new Date(0).toISOString(),
    lastUpdatedAt: new Date(0).toISOString(),
  })
  let isHolding = false
  const unknown = { code: -32602, message: 'Task not found' }

  const respond = (method: string, params: Record<string, unknown>): { result?: unknown; error?: unknown } => {
    const task = tasks.get(String(params.taskId))
    switch (method) {
      case 'initialize':
        return {
          result: {
            protocolVersion: '2025-11-25',
            capabilities: { tools: {}, tasks: { cancel: {}, list: {}, requests: { tools: { call: {} } } } },
            serverInfo: { name: 'tasks', version: '1' },
          },
        }
      case 'tools/list':
        return {
          result: {
            tools: [
              { name: 'job', inputSchema: { type: 'object' }, execution: { taskSupport: 'required' } },
              { name: 'plain', inputSchema: { type: 'object' } },
              { name: 'asking', inputSchema: { type: 'object' } },
            ],
          },
        }
      case 'tools/call': {
        const created: ScriptedTask = { id: `t${tasks.size + 1}`, status: 'working' }
        tasks.set(created.id, created)
        return { result: { task: shown(created) } }
      }
      case 'tasks/get':
        return task ? { result: shown(task) } : { error: unknown }
      case 'tasks/list':
        return { result: { tasks: [...tasks.values()].map(shown) } }
      case 'tasks/cancel':
        if (task) task.status = 'cancelled'
        return task ? { result: shown(task) } : { error: unknown }
      case 'tasks/result':
        return task?.error ? { error: task.error } : { result: task?.result ?? CALL_TEXT }
      case 'ping':
        return { result: {} }
      default:
        return { error: { code: -32601, message: 'Method not found' } }
    }
  }

  const server: ScriptedServer = await scriptedServer(({ method, body }, response) => {
    if (method !== 'POST') return sendJson(response, {}, 405)
    if (body.method === undefined) {
      answers.push(body.result)
      const task = [...tasks.values()].find(({ status }) => status === 'input_required')
      if (task) task.status = 'completed'
      asking?.event(result(asked, CALL_TEXT))
      asking?.end()
      return void response.writeHead(202).end()
    }
    if (body.id === undefined) return void response.writeHead(202).end()
    const { id, params = {} } = body
    if (body.method === 'tools/call' && params.name === 'plain') {
      open.push(value => sendJson(response, result(id, value)))
      return
    }
    if (body.method === 'tools/call' && params.name === 'asking') {
      const stream = openStream(response)
      ask = () => stream.event({ jsonrpc: '2.0', id: 'ask', method: 'elicitation/create', params: QUESTION })
      open.push(value => {
        stream.event(result(id, value))
        stream.end()
      })
      return
    }
    if (body.method === 'tools/call' && isHolding) return
    const isAsking = body.method === 'tasks/result' && tasks.get(String(params.taskId))?.status === 'input_required'
    if (isAsking) {
      asked = id
      asking = openStream(response)
      asking.event({ jsonrpc: '2.0', id: 'ask', method: 'elicitation/create', params: QUESTION })
      return
    }
    const headers = body.method === 'initialize' && session !== undefined ? { 'mcp-session-id': session } : {}
    sendJson(response, { jsonrpc: '2.0', id, ...respond(String(body.method), params) }, 200, headers)
  })
  let asked: unknown
  let ask: (() => void) | undefined

  return {
    ...server,
    tasks,
    answers,
    /** Answers the oldest open call of `plain`. */
    finish: (value: unknown = CALL_TEXT): void => open.shift()?.(value),
    /** Resolves when a call of `plain` or `asking` is open. */
    called: async (): Promise<void> => {
      for (const start = Date.now(); open.length === 0; await sleep(5))
        if (Date.now() - start > PATIENCE_MS) throw new Error('waited in vain for a call')
    },
    /** From now on does not answer calls of `job`. */
    holdCalls: (): void => {
      isHolding = true
    },
    /** Asks a question in the call of `asking`. */
    ask: (): void => ask?.(),
  }
}
