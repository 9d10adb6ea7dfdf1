import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type OutgoingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'

/** A server of both eras that counts what it is left with. */
export interface SoakUpstream {
  readonly url: string
  readonly sessions: ReadonlySet<string>
  close(): void
}

const MODERN = '2026-07-28'
const INFO = { name: 'soak', version: '1.0.0' }
const COMPLETE = { resultType: 'complete', ttlMs: 0, cacheScope: 'private' }
const SLOW_MS = 200

interface Message {
  readonly id?: unknown
  readonly method: string
  readonly params?: { readonly name?: string; readonly arguments?: unknown }
}

type Results = Readonly<Record<string, (params: Message['params']) => unknown>>

const resultsWith = (blob: string): Results => ({
  'server/discover': () => ({
    ...COMPLETE,
    supportedVersions: [MODERN],
    capabilities: { tools: {}, resources: {} },
    _meta: { 'io.modelcontextprotocol/serverInfo': INFO },
  }),
  initialize: () => ({
    protocolVersion: '2025-11-25',
    capabilities: { tools: { listChanged: true }, resources: {} },
    serverInfo: INFO,
  }),
  ping: () => ({}),
  'tools/list': () => ({
    ...COMPLETE,
    tools: ['echo', 'slow', 'held'].map(name => ({ name, inputSchema: { type: 'object' } })),
  }),
  'tools/call': params => ({ ...COMPLETE, content: [{ type: 'text', text: JSON.stringify(params?.arguments) }] }),
  'resources/read': () => ({ ...COMPLETE, contents: [{ uri: 'soak://blob', mimeType: 'image/png', blob }] }),
})

const send = (response: ServerResponse, status: number, headers: OutgoingHttpHeaders = {}, body = ''): void => {
  response.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(body) }).end(body)
}

/** Starts it on a free port; `blob` is what `resources/read` answers with. */
export const startSoakUpstream = async (blob = ''): Promise<SoakUpstream> => {
  const sessions = new Set<string>()
  const results = resultsWith(blob)

  const post = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { id, method, params }: Message = JSON.parse(await text(request))
    const session = request.headers['mcp-session-id']
    const isModern = request.headers['mcp-protocol-version'] === MODERN
    if (!isModern && method !== 'initialize' && !sessions.has(String(session))) {
      send(response, method === 'server/discover' ? 400 : 404)
      return
    }
    if (id === undefined) {
      send(response, 202)
      return
    }
    if (params?.name === 'held') return // never answered
    if (params?.name === 'slow') await sleep(SLOW_MS)
    const headers: Record<string, string> = { 'content-type': 'application/json' }
    if (method === 'initialize') {
      headers['mcp-session-id'] = randomUUID()
      sessions.add(headers['mcp-session-id'])
    }
    const result = results[method]?.(params)
    const outcome = result ? { result } : { error: { code: -32601, message: 'Method not found' } }
    send(response, result || !isModern ? 200 : 404, headers, JSON.stringify({ jsonrpc: '2.0', id, ...outcome }))
  }

  const server = createServer((request, response) => {
    const session = String(request.headers['mcp-session-id'])
    if (request.method === 'POST') post(request, response).catch(() => response.destroy())
    else if (request.method === 'DELETE') send(response, sessions.delete(session) ? 200 : 404)
    else if (sessions.has(session)) response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
    else send(response, 405)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    sessions,
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}
