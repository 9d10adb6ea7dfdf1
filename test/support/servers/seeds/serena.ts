import { type Arrived, scriptedServer } from '../../scripted-server.ts'

type State = 'connecting' | 'initializing' | 'ready'

interface Channel {
  readonly response: Arrived['response']
  state: State
}

export const LISTING = { dirs: ['src', 'tests'], files: ['main.py'] }

/** The daemon of the document: it takes calls only when its client is ready, and answers on the channel. */
export const serena = async () => {
  const channels = new Map<string, Channel>()
  const waiting: (() => void)[] = [] // calls that are answered when the test says so
  let holds = false
  let count = 0

  const answer = ({ method, params = {} }: Arrived['body'], channel: Channel): object => {
    if (method === 'initialize') {
      channel.state = 'initializing'
      const serverInfo = { name: 'serena', version: '0.1.0' }
      return { result: { protocolVersion: '2024-11-05', capabilities: { tools: {} }, serverInfo } }
    }
    if (channel.state !== 'ready') return { error: { code: -32600, message: 'Invalid request: not initialized' } }
    if (method === 'tools/list') return { result: { tools: [{ name: 'list_dir', inputSchema: { type: 'object' } }] } }
    if (method !== 'tools/call') return { error: { code: -32601, message: 'Method not found' } }
    const given = params.arguments as { relative_path?: string }
    if (given.relative_path === undefined)
      return { error: { code: -32602, message: "Invalid params: missing required field 'relative_path'" } }
    const text = given.relative_path === '.' ? JSON.stringify(LISTING) : given.relative_path
    return { result: { content: [{ type: 'text', text }], isError: false } }
  }

  const server = await scriptedServer(({ method, url, body }, response) => {
    const { pathname, searchParams } = new URL(url, server.origin)
    if (method === 'GET' && pathname === '/sse') {
      const session = `abc123def45${++count}`
      channels.set(session, { response, state: 'connecting' })
      response.on('close', () => channels.delete(session))
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      return void response.write(`data: ${server.origin}/messages/?session_id=${session}\n\n`)
    }
    const channel = channels.get(searchParams.get('session_id') ?? '')
    if (pathname !== '/messages/' || !channel) return void response.writeHead(404).end('Could not find session')
    response.writeHead(202).end('Accepted')
    if (body.method === 'notifications/initialized') channel.state = 'ready'
    if (body.id === undefined) return
    const reply = { jsonrpc: '2.0', id: body.id, ...answer(body, channel) }
    const send = () => void channel.response.write(`event: message\ndata: ${JSON.stringify(reply)}\n\n`)
    if (holds && body.method === 'tools/call') waiting.push(send)
    else send()
  })

  return {
    ...server,
    channels,
    hold: () => {
      holds = true
    },
    /** Answers what waits, the last first. */
    release: () => {
      for (const send of waiting.splice(0).reverse()) send()
    },
  }
}
