import { randomUUID } from 'node:crypto'
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js'
import type { Everything } from '../../../support/servers/everything/everything.ts'
import { type Endpoint, listen } from '../../../support/servers/http.ts'
import { createJournal } from '../../../support/servers/journal.ts'
import { createServer, serveEverything } from '../../../support/servers/sdk-v1-handlers.ts'

/** A session that was opened and not ended. */
export interface OpenSession {
  readonly id: string
  readonly openedAt: number
  knownAt: number | undefined // the first request with its id: the gateway has read the answer to the handshake
  usedAt: number // its last request
  streams: number // open GET streams
}

interface Session extends OpenSession {
  readonly transport: WebStandardStreamableHTTPServerTransport
}

const notFound = (): Response =>
  Response.json({ jsonrpc: '2.0', error: { code: -32001, message: 'Session not found' }, id: null }, { status: 404 })

/** A legacy server on SDK v1 over Streamable HTTP that knows when each of its sessions was used. */
export const startSessionServer = async (
  everything: Everything,
): Promise<Endpoint & { openSessions(): OpenSession[] }> => {
  const sessions = new Map<string, Session>()
  const journal = createJournal()

  const openTransport = async (): Promise<WebStandardStreamableHTTPServerTransport> => {
    const server = createServer()
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: id => {
        sessions.set(id, { id, transport, openedAt: Date.now(), knownAt: undefined, usedAt: Date.now(), streams: 0 })
      },
      onsessionclosed: id => void sessions.delete(id),
    })
    serveEverything(server, everything, journal, () => {})
    await server.connect(transport)
    return transport
  }

  const handle = async (request: Request): Promise<Response> => {
    const id = request.headers.get('mcp-session-id')
    if (id === null) return (await openTransport()).handleRequest(request)
    const session = sessions.get(id)
    if (!session) return notFound()
    session.usedAt = Date.now()
    session.knownAt ??= session.usedAt
    if (request.method === 'GET') {
      session.streams++
      request.signal.addEventListener('abort', () => void session.streams--, { once: true })
    }
    return session.transport.handleRequest(request)
  }

  const endpoint = await listen(handle)
  return { ...endpoint, openSessions: () => [...sessions.values()] }
}
