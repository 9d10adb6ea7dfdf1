import { Agent, type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http'

/** A whole answer. */
export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

type Headers = Readonly<Record<string, string>>

/** One client with sockets of its own, which `leave` cuts off without a word. */
export interface HttpClient {
  post(url: string, message: object, headers?: Headers): Promise<Answer>
  stream(url: string, headers: Headers): Promise<number>
  /** The head of an answer that goes on: to a GET, or to a POST of that message. */
  open(url: string, headers: Headers, message?: object): Promise<Omit<Answer, 'body'>>
  leave(): void
}

const open = (agent: Agent, url: string, method: string, headers: Headers, body?: string): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const outgoing = request(url, { agent, method, headers })
    outgoing.once('error', reject)
    outgoing.once('response', response => {
      // Sockets are cut off on purpose, so a late error is nobody's business.
      outgoing.on('error', () => {})
      response.on('error', () => {})
      resolve(response)
    })
    outgoing.end(body)
  })

const read = async (response: IncomingMessage): Promise<Buffer> => {
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk)
  return Buffer.concat(chunks)
}

export const httpClient = (): HttpClient => {
  const agent = new Agent({ keepAlive: true })
  const accept = 'application/json, text/event-stream'
  return {
    post: async (url, message, headers = {}) => {
      const all = { 'content-type': 'application/json', accept, ...headers }
      const response = await open(agent, url, 'POST', all, JSON.stringify({ jsonrpc: '2.0', ...message }))
      return { status: response.statusCode ?? 0, headers: response.headers, body: await read(response) }
    },
    stream: async (url, headers) => {
      const response = await open(agent, url, 'GET', { accept: 'text/event-stream', ...headers })
      response.resume()
      return response.statusCode ?? 0
    },
    open: async (url, headers, message) => {
      const all = { accept, ...(message && { 'content-type': 'application/json' }), ...headers }
      const body = message && JSON.stringify({ jsonrpc: '2.0', ...message })
      const response = await open(agent, url, message ? 'POST' : 'GET', all, body)
      response.resume()
      return { status: response.statusCode ?? 0, headers: response.headers }
    },
    leave: () => agent.destroy(),
  }
}

/** The last JSON-RPC message of an answer, whichever way it was wrapped. */
export const messageOf = ({ headers, body }: Answer): { result?: Record<string, unknown>; error?: unknown } => {
  const text = body.toString()
  if (!headers['content-type']?.startsWith('text/event-stream')) return JSON.parse(text)
  const start = text.lastIndexOf('\ndata: {') + '\ndata: '.length
  return JSON.parse(text.slice(start, text.indexOf('\n', start)))
}
