// The server behind every contestant: plain node:http, just enough MCP of both eras, as cheap as can be.
import { randomUUID } from 'node:crypto'
import { createServer, type OutgoingHttpHeaders, type ServerResponse } from 'node:http'
import { listening } from './peer.ts'
import { SCENARIOS, scenario } from './scenarios.ts'

const MODERN = '2026-07-28'
const LEGACY = '2025-11-25'
const INFO = { name: 'bench-upstream', version: '1.0.0' }
const CACHE = { ttlMs: 60_000, cacheScope: 'public' }

interface Request {
  readonly id?: string | number
  readonly method: string
  readonly params?: { readonly name?: string; readonly arguments?: { readonly text?: string } }
}

const schema = { type: 'object', properties: { text: { type: 'string' }, limit: { type: 'number' } } }
const tools = SCENARIOS.map(({ name }) => ({ name, description: `The ${name} scenario`, inputSchema: schema }))
const big = JSON.stringify(scenario('big').result)
const bigResult = { modern: `{"resultType":"complete",${big.slice(1)}`, legacy: big }

type Era = keyof typeof bigResult

// Each answers with the JSON text of a result; the big one is rendered once, so that it costs the gateway and not us.
const METHODS: Readonly<Record<string, (era: Era, params: Request['params']) => string | undefined>> = {
  'server/discover': () =>
    JSON.stringify({
      resultType: 'complete',
      supportedVersions: [MODERN],
      capabilities: { tools: {} },
      _meta: { 'io.modelcontextprotocol/serverInfo': INFO },
      ...CACHE,
    }),
  initialize: () => JSON.stringify({ protocolVersion: LEGACY, capabilities: { tools: {} }, serverInfo: INFO }),
  ping: () => '{}',
  'tools/list': era => JSON.stringify(era === 'modern' ? { resultType: 'complete', tools, ...CACHE } : { tools }),
  'tools/call': (era, params) => {
    if (params?.name === 'big') return bigResult[era]
    if (params?.name !== 'echo') return undefined
    const content = [{ type: 'text', text: params.arguments?.text }]
    return JSON.stringify(era === 'modern' ? { resultType: 'complete', content } : { content })
  },
}

interface Reply {
  readonly status: number
  readonly headers: OutgoingHttpHeaders
  readonly body: string
}

const JSON_TYPE = { 'Content-Type': 'application/json' }

const answer = (era: Era, { id, method, params }: Request): Reply => {
  if (id === undefined) return { status: 202, headers: {}, body: '' }
  const result = METHODS[method]?.(era, params)
  const headers = method === 'initialize' ? { ...JSON_TYPE, 'Mcp-Session-Id': randomUUID() } : JSON_TYPE
  if (result !== undefined) {
    return { status: 200, headers, body: `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}` }
  }
  const error = '{"code":-32601,"message":"Method not found"}'
  const status = era === 'modern' ? 404 : 200
  return { status, headers, body: `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"error":${error}}` }
}

const send = (response: ServerResponse, { status, headers, body }: Reply): void => {
  response.writeHead(status, { ...headers, 'Content-Length': Buffer.byteLength(body) })
  response.end(body)
}

const server = createServer((request, response) => {
  if (request.method !== 'POST') {
    send(response, { status: request.method === 'DELETE' ? 200 : 405, headers: {}, body: '' })
    return
  }
  const era = request.headers['mcp-protocol-version'] === MODERN ? 'modern' : 'legacy'
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => send(response, answer(era, JSON.parse(Buffer.concat(chunks).toString()))))
})

process.once('disconnect', () => process.exit())
process.send?.(await listening(server))
