// What an idle SSE channel costs at least: node:http, one event, and a map to find the channel by its id.
import { randomUUID } from 'node:crypto'
import { createServer, type ServerResponse } from 'node:http'
import { listening } from './peer.ts'

const channels = new Map<string, ServerResponse>()

const server = createServer((_request, response) => {
  const id = randomUUID()
  channels.set(id, response)
  response.on('close', () => channels.delete(id))
  response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache' })
  response.write(`event: endpoint\ndata: /messages?session_id=${id}\n\n`)
})

process.send?.(await listening(server))
