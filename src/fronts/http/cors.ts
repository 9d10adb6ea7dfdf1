import type { IncomingMessage, ServerResponse } from 'node:http'
import type { HttpRoutes, RequestHandler } from './listen.ts'

const METHODS = 'GET, POST, PATCH, DELETE'
const REQUEST_HEADERS = [
  'authorization',
  'content-type',
  'accept',
  'cache-control',
  'last-event-id',
  'prefer',
  'mcp-session-id',
  'mcp-protocol-version',
  'mcp-method',
  'mcp-name',
  'traceparent',
  'tracestate',
  'baggage',
]
const RESPONSE_HEADERS = 'Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate, Retry-After, Location'
const PREFLIGHT_S = '7200' // no browser caches it longer

/**
 * Lets pages in browsers use these routes and read their responses. The guard has already rejected foreign origins.
 * The gateway uses no cookies, so pages are never allowed to send any.
 */
export const allowCors = (routes: HttpRoutes): HttpRoutes =>
  Object.fromEntries(Object.entries(routes).map(([path, handler]) => [path, withCors(handler)]))

const withCors =
  (handler: RequestHandler): RequestHandler =>
  (request, response, path) => {
    const { origin } = request.headers
    if (origin !== undefined) {
      response.setHeader('access-control-allow-origin', origin)
      response.setHeader('access-control-expose-headers', RESPONSE_HEADERS)
      response.setHeader('vary', 'Origin')
      if (isPreflight(request)) return sendPreflight(request, response)
    }
    handler(request, response, path)
  }

const isPreflight = ({ method, headers }: IncomingMessage): boolean =>
  method === 'OPTIONS' && headers['access-control-request-method'] !== undefined

const sendPreflight = ({ headers }: IncomingMessage, response: ServerResponse): void => {
  const wanted = String(headers['access-control-request-headers'] ?? '')
  response.removeHeader('access-control-expose-headers')
  // Private Network Access: a page from the internet uses a gateway in the local network.
  if (headers['access-control-request-private-network'] === 'true')
    response.setHeader('access-control-allow-private-network', 'true')
  response.writeHead(204, {
    'access-control-allow-methods': METHODS,
    'access-control-allow-headers': [...new Set([...REQUEST_HEADERS, ...mcpHeaders(wanted)])].join(', '),
    'access-control-max-age': PREFLIGHT_S,
  })
  response.end()
}

/** `Mcp-Param-*` and other MCP headers, whose names are only known from the request. */
const mcpHeaders = (wanted: string): string[] =>
  wanted
    .split(',')
    .map(name => name.trim().toLowerCase())
    .filter(name => /^mcp-[a-z0-9-]+$/.test(name))
