import { type Arrived, scriptedServer } from '../../scripted-server.ts'

export const TOKEN = 'kulturarv-token-1'
export const TOOLS = [
  {
    name: 'example-ping',
    description: 'Returns a simple pong response',
    inputSchema: { type: 'object', properties: {}, required: [] },
  },
  {
    name: 'example-echo',
    description: 'Echoes back the provided message',
    inputSchema: {
      type: 'object',
      properties: { message: { type: 'string', description: 'The message to echo back' } },
      required: ['message'],
    },
  },
]

const text = (text: string, isError = false) => ({ result: { content: [{ type: 'text', text }], isError } })
const error = (code: number, message: string) => ({ error: { code, message } })

const answer = ({ method, params = {} }: Arrived['body']): object => {
  const serverInfo = { name: 'kulturarv-mcp-server', version: '1.0.0' }
  if (method === 'initialize')
    return { result: { protocolVersion: '2024-11-05', capabilities: { tools: {} }, serverInfo } }
  if (method === 'tools/list') return { result: { tools: TOOLS } }
  if (method !== 'tools/call') return error(-32601, 'Method not found')
  if (params.name === 'example-ping') return text('pong')
  if (params.name === 'broken') return text('Error: Could not connect to API', true)
  if (params.name === 'failing') return error(-32000, 'Tool execution error')
  return text(`Echo: ${(params.arguments as { message?: string }).message}`)
}

/** The server of the document. `answers`: it pushes to the channel too where a session id was given. */
export const kulturarv = async () => {
  const channels = new Map<string, Arrived['response']>()
  let limit = Number.POSITIVE_INFINITY
  let count = 0
  const server = await scriptedServer(({ method, url, headers, body }, response) => {
    const { pathname, searchParams } = new URL(url, server.origin)
    const reply = (status: number, message: object, more = {}): void => {
      response.writeHead(status, { 'content-type': 'application/json', ...more })
      response.end(JSON.stringify({ jsonrpc: '2.0', id: body.id ?? null, ...message }))
    }
    if (headers.authorization !== `Bearer ${TOKEN}`) return reply(401, error(-32001, 'Authentication required'))
    if (method === 'GET' && pathname === '/sse') {
      const session = `abc123-def45${++count}`
      channels.set(session, response)
      response.on('close', () => channels.delete(session))
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      return void response.write(`event: endpoint\ndata: /message?session_id=${session}\n\nevent: ping\ndata: \n\n`)
    }
    if (method !== 'POST' || pathname !== '/message') return reply(405, { detail: 'Method Not Allowed' })
    if (body.id === undefined) return void response.writeHead(202).end()
    if (body.method === 'tools/call' && limit-- <= 0) return reply(429, error(-32002, 'Rate limit exceeded'))
    if (body.params?.name === 'hanging') return void response.writeHead(202).end()
    const message = answer(body)
    reply(200, message)
    const pushed = JSON.stringify({ jsonrpc: '2.0', id: body.id, ...message })
    channels.get(searchParams.get('session_id') ?? '')?.write(`event: message\ndata: ${pushed}\n\n`)
  })
  return {
    ...server,
    push: (raw: string) => {
      for (const channel of channels.values()) channel.write(raw)
    },
    allow: (calls: number) => {
      limit = calls
    },
  }
}
