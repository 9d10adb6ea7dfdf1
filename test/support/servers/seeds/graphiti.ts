import type { Arrived, Script } from '../../scripted-server.ts'

export const TOOLS = [
  ...['add_memory', 'search_nodes', 'search_memory_facts', 'delete_entity_edge', 'delete_episode'],
  ...['get_entity_edge', 'get_episodes', 'clear_graph', 'get_status'],
]
const INTRODUCTION = {
  protocolVersion: '2024-11-05',
  capabilities: {
    experimental: {},
    prompts: { listChanged: false },
    resources: { subscribe: false, listChanged: false },
    tools: { listChanged: false },
  },
  serverInfo: { name: 'Graphiti Agent Memory', version: '1.21.0' },
  instructions: 'Graphiti is a memory service for AI agents...',
}
export const STATUS = {
  status: 'ok',
  message: 'Graphiti MCP server is running and connected to falkordb database',
}

/** The server of the document, with its session ids, and the errors it answers under an id of its own. */
export const graphiti = () => {
  const sessions = new Set<string>()
  let count = 0

  const refuse = (response: Arrived['response'], status: number, message: string): void => {
    response.writeHead(status, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ jsonrpc: '2.0', id: 'server-error', error: { code: -32600, message } }))
  }
  const say = (response: Arrived['response'], message: object, headers = {}): void => {
    response.writeHead(200, { 'content-type': 'text/event-stream', ...headers })
    response.end(`event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`)
  }
  const answer = ({ method, params = {} }: Arrived['body']): object => {
    if (method === 'tools/list')
      return { result: { tools: TOOLS.map(name => ({ name, inputSchema: { type: 'object' } })) } }
    if (method !== 'tools/call') return { error: { code: -32601, message: 'Method not found' } }
    if (params.name !== 'get_status') return { error: { code: -32602, message: `Unknown tool: ${params.name}` } }
    const content = [{ type: 'text', text: JSON.stringify(STATUS) }]
    return { result: { content, structuredContent: STATUS, isError: false } }
  }

  const script: Script = ({ method, headers, body }, response) => {
    const accept = headers.accept ?? ''
    if (!accept.includes('application/json') || !accept.includes('text/event-stream'))
      return refuse(response, 406, 'Not Acceptable: Client must accept both application/json and text/event-stream')
    if (body.method === 'initialize') {
      const session = `047eb56945e0462b84daa562dd6d8f7${++count}`
      sessions.add(session)
      return say(response, { id: body.id, result: INTRODUCTION }, { 'mcp-session-id': session })
    }
    const session = headers['mcp-session-id']
    if (session === undefined) return refuse(response, 400, 'Bad Request: Missing session ID')
    if (!sessions.has(String(session))) return refuse(response, 404, 'Session not found')
    if (method !== 'POST') return void response.writeHead(method === 'DELETE' ? 200 : 405).end()
    if (body.id === undefined) return void response.writeHead(202).end()
    if (body.params?.name === 'clear_graph')
      return say(response, { id: 'server-error', error: { code: -32600, message: 'Not allowed here' } })
    say(response, { id: body.id, ...answer(body) })
  }
  return { script, sessions }
}
