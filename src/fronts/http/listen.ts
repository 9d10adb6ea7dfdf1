import { createServer, type IncomingMessage, type Server, ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import type { Limits, Listen } from '../../config/snapshot.ts'
import { rpcError } from '../../protocol/errors.ts'
import type { Log } from '../../telemetry/log.ts'
import { encodeError, joinBuffers } from '../../wire/json-rpc.ts'
import type { RequestGuard } from './guard.ts'
import { destroySoon, PRIVATE_HEADERS, rejectUnread } from './response.ts'

export type RequestHandler = (request: IncomingMessage, response: ServerResponse, path: string) => void

/** Handlers by path: with a trailing `*` a prefix, with a leading `/*` whatever the first segment is, otherwise the exact path. */
export type HttpRoutes = Readonly<Record<string, RequestHandler>>

export interface HttpListener {
  readonly port: number
  /** Time of the last request. */
  readonly lastRequest: number
  /** Number of open sockets. */
  connections(): Promise<number>
  /** Accepts no new connection, and no further request on open ones. */
  stop(): void
  /** Destroys the connections that are still open. */
  close(): Promise<void>
}

/** Where connections come from if the server has no port of its own. */
export interface ConnectionSource {
  /** Hands over connections until it is stopped; `port` is the one that clients use. */
  open(
    address: Pick<Listen, 'host' | 'port'>,
    accept: (socket: Socket) => void,
  ): Promise<{ readonly port: number; stop(): void }>
}

interface ListenOptions {
  readonly listen: Pick<Listen, 'host' | 'port'>
  readonly limits: Limits
  readonly guard: RequestGuard
  readonly routes: HttpRoutes
  /** Notes at a request which client it is from, if that is not the one that has connected. */
  readonly noteClientAddress?: ((request: IncomingMessage) => void) | undefined
  /** Both sides prove who they are; undefined: plain HTTP. */
  readonly tls?: { readonly cert: string; readonly key: string; readonly ca: string } | undefined
  readonly maxHeaderBytes?: number | undefined
  readonly source?: ConnectionSource | undefined // undefined: the server listens itself
  readonly log: Log
}

/** Pages that a browser may open, even from a link on a page of another site. */
const PAGES: ReadonlySet<string> = new Set([
  '/',
  '/mem',
  '/healthz',
  '/readyz',
  '/metrics',
  '/oauth/authorize', // clients lead there
  '/oauth/clients',
  '/oauth/callback', // authorization servers lead back there
])
const PAGE_FOLDERS: readonly string[] = [
  '/oauth/callback/', // as above
  '/oauth/login/', // clients show links to these pages
  '/oauth/signed-in/', // issuers lead back there
]
const CONNECTION_CHECK_MS = 1000
const LARGE_BACKLOG = 64 * 1024 // bytes of a response that the client has yet to take
const IDLE_SOCKET_MS = 65_000 // longer than the 60 s for which most proxies keep idle connections

/** Opens the port that all routes share. */
export const listen = async (options: ListenOptions): Promise<HttpListener> => {
  const { listen: address, limits, guard, routes, noteClientAddress, tls, log } = options
  const find = routeFinder(routes)
  let isStopping = false
  let lastRequest = Date.now()

  const handle = (request: IncomingMessage, response: ServerResponse): void => {
    const { headers } = request
    const { authority, url } = splitTarget(request.url)
    lastRequest = Date.now()
    noteClientAddress?.(request)
    if (response.socket === null) forwardClose(request.socket, response)
    if (isStopping) response.setHeader('connection', 'close')
    const query = url.indexOf('?')
    const path = query < 0 ? url : url.slice(0, query)
    const forbidden = guard({
      host: authority ?? headers.host,
      origin: headers.origin,
      fetchSite: single(headers['sec-fetch-site']),
      isPageVisit: isNavigation(request) && isPage(path),
    })
    if (forbidden !== undefined)
      return rejectUnread(request, response, 403, rpcError('invalidRequest', `Forbidden: ${forbidden}`))
    const route = find(path)
    if (!route) {
      const error = rpcError('invalidRequest', `Not Found: ${path}; MCP is served at /mcp`)
      return rejectUnread(request, response, 404, error)
    }
    try {
      route(request, response, path)
    } catch (error) {
      log.error({ err: error }, 'request failed with an internal error')
      if (!response.headersSent) rejectUnread(request, response, 500, rpcError('internal'))
    }
  }

  const settings = {
    ServerResponse: limitStalls(limits.stallMs),
    noDelay: true,
    requestTimeout: limits.requestTimeoutMs,
    headersTimeout: Math.min(60_000, limits.requestTimeoutMs),
    keepAliveTimeout: IDLE_SOCKET_MS,
    connectionsCheckingInterval: Math.min(CONNECTION_CHECK_MS, limits.requestTimeoutMs),
    maxHeaderSize: options.maxHeaderBytes,
  }
  const server = tls
    ? createTlsServer({ ...settings, ...tls, requestCert: true, rejectUnauthorized: true }, handle)
    : createServer(settings, handle)
  server.on('clientError', rejectBadHttp)
  const { port, stop } = await (options.source ? acceptFrom(options.source, server, address) : bind(server, address))
  server.on('error', error => log.error({ err: error }, 'listener failed'))
  return {
    port,
    get lastRequest() {
      return lastRequest
    },
    connections: () => new Promise(done => server.getConnections((_, count) => done(count))),
    stop: () => {
      isStopping = true
      stop()
      server.close()
      server.closeIdleConnections()
    },
    close: () =>
      new Promise(done => {
        server.close(() => done())
        server.closeAllConnections()
      }),
  }
}

interface BoundServer {
  readonly port: number
  stop(): void
}

const bind = (server: Server, { port, host }: ListenOptions['listen']): Promise<BoundServer> =>
  new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      resolve({ port: (server.address() as AddressInfo).port, stop: () => {} })
    })
  })

/** Without a port of its own, a server limits the time of its connections only if it is told that it listens. */
const acceptFrom = (
  source: ConnectionSource,
  server: Server,
  address: ListenOptions['listen'],
): Promise<BoundServer> => {
  server.emit('listening')
  return source.open(address, socket => void server.emit('connection', socket))
}

/**
 * Responses whose client must keep reading after their end: Node resets the timeout with the next request, and counts
 * only time in which the client reads nothing. A class, because a listener for each response would cost every call.
 */
const limitStalls = (stallMs: number) =>
  class<R extends IncomingMessage = IncomingMessage> extends ServerResponse<R> {
    override end(...args: unknown[]): this {
      super.end(...(args as Parameters<ServerResponse['end']>))
      if ((this.socket?.writableLength ?? 0) > LARGE_BACKLOG) this.socket?.setTimeout(stallMs)
      return this
    }
  }

/** Node emits `close` only on the response whose turn it is; a pipelined one behind it gets the event from here. */
const forwardClose = (socket: Socket, response: ServerResponse): void => {
  const onClose = (): void => {
    if (response.socket === null) response.emit('close')
  }
  socket.once('close', onClose)
  response.once('close', () => socket.off('close', onClose))
}

const isPage = (path: string): boolean => PAGES.has(path) || PAGE_FOLDERS.some(folder => path.startsWith(folder))

/** True if a browser shows the response as a page of its own, which no other page can read. */
const isNavigation = ({ method, headers }: IncomingMessage): boolean =>
  (method === 'GET' || method === 'HEAD') &&
  headers['sec-fetch-mode'] === 'navigate' &&
  headers['sec-fetch-dest'] === 'document'

const single = (header: string | string[] | undefined): string | undefined =>
  Array.isArray(header) ? header[0] : header

/** Splits a request target: one sent to a proxy is a whole URL, whose host overrides the Host header. */
export const splitTarget = (target = '/'): { readonly authority?: string; readonly url: string } => {
  if (target.startsWith('/')) return { url: target }
  const [, authority, url = ''] = /^https?:\/\/([^/?#]*)(.*)$/i.exec(target) ?? []
  return authority === undefined ? { url: target } : { authority, url: url || '/' }
}

/** The handler of a path; undefined if there is none. */
export const routeFinder = (routes: HttpRoutes): ((path: string) => RequestHandler | undefined) => {
  const exact = new Map(Object.entries(routes).filter(([path]) => !path.includes('*')))
  const suffixes = new Map(
    Object.entries(routes).flatMap(([path, handler]) => (path.startsWith('/*/') ? [[path.slice(2), handler]] : [])),
  )
  const prefixes = Object.entries(routes).flatMap(([path, handler]) =>
    path.endsWith('*') ? [{ prefix: path.slice(0, -1), handler }] : [],
  )
  return path =>
    exact.get(path) ??
    prefixes.find(({ prefix }) => path.startsWith(prefix))?.handler ??
    suffixes.get(path.slice(Math.max(0, path.indexOf('/', 1))))
}

const BAD_HTTP: Readonly<Record<string, readonly [string, string]>> = {
  HPE_HEADER_OVERFLOW: ['431 Request Header Fields Too Large', 'The request headers are too large'],
  ERR_HTTP_REQUEST_TIMEOUT: ['408 Request Timeout', 'The request did not arrive in time'],
}

const PRIVATE = Object.entries(PRIVATE_HEADERS)
  .map(([name, value]) => `${name}: ${value}\r\n`)
  .join('')

/** Responds to bytes that Node could not parse as HTTP. */
const rejectBadHttp = (error: Error & { code?: string }, socket: Socket): void => {
  if (!socket.writable || error.code === 'ECONNRESET') return void socket.destroy()
  const [status, message] = BAD_HTTP[error.code ?? ''] ?? ['400 Bad Request', 'The request is not valid HTTP']
  const body = joinBuffers(encodeError(undefined, rpcError('invalidRequest', message)))
  socket.end(
    `HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-type: application/json\r\n${PRIVATE}content-length: ${body.length}\r\n\r\n${body}`,
  )
  destroySoon(socket)
}
