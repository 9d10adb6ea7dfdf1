/**
 * A legacy server (SDK v1) with state in each session: `count` says how often it was called there, `ask` elicits.
 * Run as a program, it serves stdio; otherwise Streamable HTTP with a session for each `initialize`.
 */
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'

const text = value => ({ content: [{ type: 'text', text: String(value) }] })

const createCounter = name => {
  const server = new McpServer({ name: 'counter', version: '1.0.0' }, { capabilities: { logging: {} } })
  let count = 0
  server.registerTool('count', { description: 'Counts the calls of this session' }, () => text(`${name} ${++count}`))
  server.registerTool('slow', { description: 'Takes half a second' }, async () => {
    await new Promise(resolve => setTimeout(resolve, 500))
    return text(`${name} ${++count}`)
  })
  server.registerTool('grow', { description: 'Adds a tool to this session' }, () => {
    server.registerTool(`extra${++count}`, { description: 'Another one' }, () => text('extra'))
    return text(`${name} ${count}`)
  })
  server.registerTool('ask', { description: 'Asks for a name' }, async () => {
    const requestedSchema = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] }
    const { action, content } = await server.server.elicitInput({ message: 'Your name?', requestedSchema })
    return text(`${name} ${++count} ${action} ${content?.name}`)
  })
  return server
}

/** Serves it over HTTP; with `isStateless` without session ids. */
export const startCounter = async ({ isStateless = false } = {}) => {
  const sessions = new Map()
  const handle = async (request, response) => {
    const id = request.headers['mcp-session-id']
    let transport = sessions.get(id)
    if (id !== undefined && !transport) return void response.writeHead(404).end()
    if (!transport) {
      const name = `s${sessions.size + 1}`
      transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: isStateless ? undefined : randomUUID,
        onsessioninitialized: given => void sessions.set(given, transport),
      })
      await createCounter(name).connect(transport)
    }
    await transport.handleRequest(request, response)
  }
  const http = createServer((request, response) => void handle(request, response).catch(() => response.destroy()))
  await new Promise(resolve => http.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${http.address().port}/mcp`,
    sessions,
    close: () =>
      new Promise(resolve => {
        http.close(() => resolve())
        http.closeAllConnections()
      }),
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  await createCounter(`p${process.pid}`).connect(new StdioServerTransport())
