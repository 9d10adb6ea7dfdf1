import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Handler, Routes } from './listen.ts'

const METHODS = 'GET, POST, DELETE'
const REQUEST_HEADERS = [
  'authorization',
  'content-type',
  'accept',
  'cache-control',
  'last-event-id',
  'mcp-session-id',
  'mcp-protocol-version',
  'mcp-method',
  'mcp-name',
  'traceparent',
  'tracestate',
  'baggage',
]
const RESPONSE_HEADERS = 'Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate, Retry-After'
const PREFLIGHT_S = '7200' // no browser remembers it longer

/**
 * Lets pages in browsers use these doors and read their answers. Foreign origins never get this far: the guard has
 * refused them. Cookies mean nothing here, so pages are never allowed to send any.
 */
export const openToPages = (doors: Routes): Routes =>
  Object.fromEntries(Object.entries(doors).map(([path, door]) => [path, opened(door)]))

const opened =
  (door: Handler): Handler =>
  (request, response, path) => {
    const { origin } = request.headers
    if (origin !== undefined) {
      response.setHeader('access-control-allow-origin', origin)
      response.setHeader('access-control-expose-headers', RESPONSE_HEADERS)
      response.setHeader('vary', 'Origin')
      if (isPreflight(request)) return answerPreflight(request, response)
    }
    door(request, response, path)
  }

const isPreflight = ({ method, headers }: IncomingMessage): boolean =>
  method === 'OPTIONS' && headers['access-control-request-method'] !== undefined

const answerPreflight = ({ headers }: IncomingMessage, response: ServerResponse): void => {
  const wanted = String(headers['access-control-request-headers'] ?? '')
  response.removeHeader('access-control-expose-headers')
  // A page from the internet asks a gateway in the local network.
  if (headers['access-control-request-private-network'] === 'true')
    response.setHeader('access-control-allow-private-network', 'true')
  response.writeHead(204, {
    'access-control-allow-methods': METHODS,
    'access-control-allow-headers': [...new Set([...REQUEST_HEADERS, ...parameterHeaders(wanted)])].join(', '),
    'access-control-max-age': PREFLIGHT_S,
  })
  response.end()
}

/** `Mcp-Param-*` and whatever else is MCP's own: their names are only known when they are asked for. */
const parameterHeaders = (wanted: string): string[] =>
  wanted
    .split(',')
    .map(name => name.trim().toLowerCase())
    .filter(name => /^mcp-[a-z0-9-]+$/.test(name))
