import { type Arrived, scriptedServer } from '../../scripted-server.ts'

export const ISSUES = 'github/list_issues'

const lifecycle = (method: string, params: object): string =>
  `event: lifecycle\ndata: ${JSON.stringify({ jsonrpc: '2.0', method, params })}\n\n`

/** The gateway of the document: it knows tools and nothing else. */
export const hub = async () => {
  const streams = new Set<Arrived['response']>()
  let answers = true
  const answer = ({ method, params = {} }: Arrived['body']): object => {
    if (method === 'tools/list') return { result: { tools: [{ name: ISSUES, description: 'List GitHub issues' }] } }
    if (method !== 'tools/call') return { error: { code: -32601, message: 'Method not found' } }
    if (params.name !== ISSUES) return { error: { code: -32602, message: `Unknown tool ${params.name}` } }
    if ((params.arguments as { repo?: string }).repo === 'user/busy')
      return { error: { code: -32603, message: 'GitHub API rate limit exceeded', data: { retry_after: 3600 } } }
    return { result: { content: [{ type: 'text', text: 'Issue list: ...' }] } }
  }
  const server = await scriptedServer(({ method, url, body }, response) => {
    if (url !== '/mcp/workspace') return void response.writeHead(404).end()
    if (method === 'GET') {
      streams.add(response)
      response.on('close', () => streams.delete(response))
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      return void response.write(lifecycle('streamOpened', { timestamp: '2025-01-11T12:00:00Z' }))
    }
    if (method !== 'POST') return void response.writeHead(405).end()
    response.writeHead(202).end()
    if (body.id === undefined || !answers) return
    const message = JSON.stringify({ jsonrpc: '2.0', id: body.id, ...answer(body) })
    for (const stream of streams) stream.write(`event: response\ndata: ${message}\n\n`)
  })
  return {
    ...server,
    ping: () => {
      for (const stream of streams) stream.write(lifecycle('ping', { timestamp: '2025-01-11T12:01:00Z' }))
    },
    shutDown: () => {
      for (const stream of streams) stream.end(lifecycle('streamClosed', { reason: 'shutdown' }))
    },
    fallSilent: (isSilent: boolean) => {
      answers = !isSilent
    },
  }
}
