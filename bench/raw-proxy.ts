import type { IncomingMessage, ServerResponse } from 'node:http'
import { Pool } from 'undici'

const FORWARDED = ['content-type', 'accept', 'mcp-protocol-version', 'mcp-method', 'mcp-name']

const forwardedHeaders = (request: IncomingMessage): string[] => {
  const headers: string[] = []
  for (const name of FORWARDED) {
    const value = request.headers[name]
    if (typeof value === 'string') headers.push(name, value)
  }
  return headers
}

const whole = (chunks: readonly Buffer[]): Buffer =>
  chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks)

type Post = (request: IncomingMessage, body: Buffer | string, done: (status: number, body: Buffer) => void) => void

/** Sends bodies to one URL over a pool of undici's own and hands back the status and the whole answer. */
export const postTo = (url: string): Post => {
  const { origin, pathname } = new URL(url)
  const pool = new Pool(origin, { connections: 256 })
  return (request, body, done) => {
    const chunks: Buffer[] = []
    let status = 502
    pool.dispatch(
      { path: pathname, method: 'POST', headers: forwardedHeaders(request), body },
      {
        onRequestStart: () => {},
        onResponseStart: (_controller, statusCode) => {
          status = statusCode
        },
        onResponseData: (_controller, chunk) => {
          chunks.push(chunk)
        },
        onResponseEnd: () => done(status, whole(chunks)),
        onResponseError: (_controller, error) => done(502, Buffer.from(error.message)),
      },
    )
  }
}

export const readBody = (request: IncomingMessage, done: (body: Buffer) => void): void => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => done(whole(chunks)))
}

export const reply = (response: ServerResponse, status: number, body: Buffer | string): void => {
  response.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) })
  response.end(body)
}
