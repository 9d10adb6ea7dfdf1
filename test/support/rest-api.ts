import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A request that an API was sent. */
export interface ApiHit {
  readonly method: string
  readonly url: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

export type Answer = (hit: ApiHit, response: ServerResponse) => void | Promise<void>

/** An HTTP server that answers by path, and keeps what it was sent. */
export const startRestApi = async (answers: Readonly<Record<string, Answer>>) => {
  const hits: ApiHit[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { method = '', url = '', headers } = request
      const hit = { method, url, headers, body: Buffer.concat(chunks).toString('latin1') }
      hits.push(hit)
      const answer = answers[url.split('?')[0] ?? ''] ?? answers['*']
      if (answer) void answer(hit, response)
      else response.writeHead(404, { 'content-type': 'text/plain' }).end('nothing here')
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    hits,
    /** The requests for a path, oldest first. */
    hitsOf: (path: string): ApiHit[] => hits.filter(({ url }) => url.split('?')[0] === path),
    close: () =>
      new Promise<void>(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** Answers with a body of that type. */
export const answerWith =
  (type: string, body: string | Buffer, status = 200, headers: Record<string, string> = {}): Answer =>
  (_, response) =>
    void response.writeHead(status, { 'content-type': type, ...headers }).end(body)

export const answerJson = (value: unknown, status = 200): Answer =>
  answerWith('application/json', JSON.stringify(value), status)
