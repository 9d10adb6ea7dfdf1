// The server behind every contestant: plain node:http, just enough MCP of both eras, as cheap as can be.
import { randomUUID } from 'node:crypto'
import { createServer, type OutgoingHttpHeaders, type ServerResponse } from 'node:http'
import { answerTo, type Era, MODERN, progressOf, type Request } from './mcp-answers.ts'
import { listening } from './peer.ts'

interface Reply {
  readonly status: number
  readonly headers: OutgoingHttpHeaders
  readonly body: string
}

const JSON_TYPE = { 'Content-Type': 'application/json' }

const answer = (era: Era, request: Request): Reply => {
  if (request.id === undefined) return { status: 202, headers: {}, body: '' }
  const { isKnown, text } = answerTo(era, request)
  const headers = request.method === 'initialize' ? { ...JSON_TYPE, 'Mcp-Session-Id': randomUUID() } : JSON_TYPE
  return { status: isKnown || era === 'legacy' ? 200 : 404, headers, body: text }
}

const send = (response: ServerResponse, { status, headers, body }: Reply): void => {
  response.writeHead(status, { ...headers, 'Content-Length': Buffer.byteLength(body) })
  response.end(body)
}

/** Progress first, each notification an event of its own, then the response. */
const stream = (response: ServerResponse, progress: readonly string[], body: string): void => {
  response.writeHead(200, { 'Content-Type': 'text/event-stream' })
  for (const text of progress) response.write(`data: ${text}\n\n`)
  response.end(`data: ${body}\n\n`)
}

const reply = (response: ServerResponse, era: Era, request: Request): void => {
  const progress = progressOf(request)
  if (progress.length > 0) stream(response, progress, answerTo(era, request).text)
  else send(response, answer(era, request))
}

const server = createServer((request, response) => {
  if (request.method !== 'POST') {
    send(response, { status: request.method === 'DELETE' ? 200 : 405, headers: {}, body: '' })
    return
  }
  const era = request.headers['mcp-protocol-version'] === MODERN ? 'modern' : 'legacy'
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => reply(response, era, JSON.parse(Buffer.concat(chunks).toString())))
})

process.once('disconnect', () => process.exit())
process.send?.(await listening(server))
