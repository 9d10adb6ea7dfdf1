// A 2025-11-25 server over Streamable HTTP whose tool asks a question on the stream of its call and waits for the answer.
import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { LEGACY } from './mcp-answers.ts'
import { listening } from './peer.ts'

interface Message {
  readonly id?: string | number
  readonly method?: string
  readonly params?: { readonly arguments?: { readonly number?: number }; readonly requestId?: string | number }
  readonly result?: { readonly action?: string; readonly content?: { readonly answer?: string } }
}

interface Waiting {
  readonly id: Message['id']
  readonly number: number | undefined
  readonly response: ServerResponse
}

const waiting = new Map<string, Waiting>() // by the id of the question
let asked = 0

const RESULTS: Readonly<Record<string, object>> = {
  initialize: {
    protocolVersion: LEGACY,
    capabilities: { tools: {} },
    serverInfo: { name: 'bench-asking', version: '1.0.0' },
  },
  ping: {},
  'tools/list': {
    tools: [{ name: 'ask', inputSchema: { type: 'object', properties: { number: { type: 'number' } } } }],
  },
}

const event = (message: object): string => `event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`

const ask = ({ id, params }: Message, response: ServerResponse): void => {
  const question = `question-${++asked}`
  const number = params?.arguments?.number
  waiting.set(question, { id, number, response })
  response.on('close', () => waiting.delete(question))
  response.writeHead(200, { 'Content-Type': 'text/event-stream' })
  const requestedSchema = { type: 'object', properties: { answer: { type: 'string' } }, required: ['answer'] }
  const asking = { message: `What about ${number}?`, requestedSchema }
  response.write(event({ id: question, method: 'elicitation/create', params: asking }))
}

const finish = ({ id: question, result }: Message): void => {
  const call = waiting.get(String(question))
  if (!call) return
  const said = result?.action === 'accept' ? result.content?.answer : result?.action
  call.response.end(event({ id: call.id, result: { content: [{ type: 'text', text: `${call.number}: ${said}` }] } }))
}

const cancel = ({ params }: Message): void => {
  for (const call of waiting.values()) if (call.id === params?.requestId) call.response.end()
}

const take = (message: Message, response: ServerResponse): void => {
  if (message.method === 'tools/call') return ask(message, response)
  if (message.method === 'notifications/cancelled') cancel(message)
  if (message.method === undefined) finish(message)
  if (message.id === undefined || message.method === undefined) return void response.writeHead(202).end()
  const result = RESULTS[message.method]
  const outcome = result ? { result } : { error: { code: -32601, message: 'Method not found' } }
  const session = message.method === 'initialize' ? { 'Mcp-Session-Id': randomUUID() } : {}
  response.writeHead(200, { 'Content-Type': 'application/json', ...session })
  response.end(JSON.stringify({ jsonrpc: '2.0', id: message.id, ...outcome }))
}

const server = createServer((request: IncomingMessage, response: ServerResponse) => {
  if (request.method !== 'POST') return void response.writeHead(request.method === 'DELETE' ? 200 : 405).end()
  void text(request).then(body => take(JSON.parse(body), response))
})

process.on('message', () => process.send?.(waiting.size))
process.once('disconnect', () => process.exit())
const target = await listening(server)
server.keepAliveTimeout = Number(process.argv[2])
process.send?.(target)
