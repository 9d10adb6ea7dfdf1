import { createServer } from 'node:http'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { toNodeHandler } from '@modelcontextprotocol/node'
import { createMcpHandler, Server } from '@modelcontextprotocol/server'
import { listening, type Peer } from '../peer.ts'

const INFO = { name: 'sdk-v2-proxy', version: '1.0.0' }

export const peer: Peer = {
  about: 'the shortest proxy on SDK v2: its client on one side, its HTTP handler on the other',
  dialect: 'modern',
  start: async upstream => {
    const client = new Client(INFO, { versionNegotiation: { mode: { pin: '2026-07-28' } } })
    await client.connect(new StreamableHTTPClientTransport(new URL(upstream.url)))
    const handler = createMcpHandler(() => {
      const server = new Server(INFO, { capabilities: { tools: {} } })
      server.setRequestHandler('tools/list', ({ params }) => client.listTools(params))
      server.setRequestHandler('tools/call', ({ params }, { mcpReq }) =>
        client.callTool({ name: params.name, arguments: params.arguments ?? {} }, { signal: mcpReq.signal }),
      )
      return server
    })
    return listening(createServer(toNodeHandler(handler)))
  },
}
