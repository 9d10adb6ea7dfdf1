import { createServer, type IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Limits, Listen } from '../../config/snapshot.ts'
import { rpcError } from '../../protocol/errors.ts'
import type { Log } from '../../telemetry/log.ts'
import { errorPieces, join } from '../../wire/json-rpc.ts'
import type { Guard } from './guard.ts'
import { destroySoon, PRIVATE_HEADERS, refuseUnread } from './response.ts'

/** Serves what comes to one path. */
export type Handler = (request: IncomingMessage, response: ServerResponse, path: string) => void

/** A path; with a trailing `*` everything that begins like it; with a leading `/*` what follows any first segment. */
export type Routes = Readonly<Record<string, Handler>>

export interface Listener {
  readonly port: number
  /** When the last request came in. */
  readonly lastRequest: number
  /** Sockets that are open now. */
  connections(): Promise<number>
  /** Takes no new connection and no further request on the old ones. */
  stop(): void
  /** Cuts what is still open. */
  close(): Promise<void>
}

interface Options {
  readonly listen: Listen
  readonly limits: Limits
  readonly guard: Guard
  readonly routes: Routes
  readonly log: Log
}

/** What a person may open in a browser, also from a link on a page of another site. */
const PAGES: ReadonlySet<string> = new Set(['/', '/healthz', '/readyz', '/metrics'])
const CONNECTION_CHECK_MS = 1000
const LARGE_REST = 64 * 1024 // bytes of an answer that the peer has yet to take
const IDLE_SOCKET_MS = 65_000 // longer than the 60 s most proxies keep theirs

/** Opens the one port all doors share. */
export const listen = ({ listen: where, limits, guard, routes, log }: Options): Promise<Listener> => {
  const find = routeFinder(routes)
  let isStopping = false
  let lastRequest = Date.now()

  const handle = (request: IncomingMessage, response: ServerResponse): void => {
    const { headers } = request
    const { authority, url } = targetOf(request.url)
    lastRequest = Date.now()
    if (response.socket === null) follow(request.socket, response)
    if (isStopping) response.setHeader('connection', 'close')
    const query = url.indexOf('?')
    const path = query < 0 ? url : url.slice(0, query)
    const refusal = guard({
      host: authority ?? headers.host,
      origin: headers.origin,
      fetchSite: single(headers['sec-fetch-site']),
      isPageVisit: PAGES.has(path) && isNavigation(request),
    })
    if (refusal !== undefined)
      return refuseUnread(request, response, 403, rpcError('invalidRequest', `Forbidden: ${refusal}`))
    const route = find(path)
    if (!route)
      return refuseUnread(
        request,
        response,
        404,
        rpcError('invalidRequest', `Not Found: ${path}; MCP is served at /mcp`),
      )
    try {
      route(request, response, path)
    } catch (error) {
      log.error({ err: error }, 'a request failed inside the gateway')
      if (!response.headersSent) refuseUnread(request, response, 500, rpcError('internal'))
    }
  }

  const server = createServer(
    {
      ServerResponse: limitStalls(limits.stallMs),
      noDelay: true,
      requestTimeout: limits.requestTimeoutMs,
      headersTimeout: Math.min(60_000, limits.requestTimeoutMs),
      keepAliveTimeout: IDLE_SOCKET_MS,
      connectionsCheckingInterval: Math.min(CONNECTION_CHECK_MS, limits.requestTimeoutMs),
    },
    handle,
  )
  server.on('clientError', answerBadHttp)
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(where.port, where.host, () => {
      server.off('error', reject)
      server.on('error', error => log.error({ err: error }, 'listener failed'))
      resolve({
        port: (server.address() as AddressInfo).port,
        get lastRequest() {
          return lastRequest
        },
        connections: () => new Promise(done => server.getConnections((_, count) => done(count))),
        stop: () => {
          isStopping = true
          server.close()
          server.closeIdleConnections()
        },
        close: () =>
          new Promise(done => {
            server.close(() => done())
            server.closeAllConnections()
          }),
      })
    })
  })
}

/**
 * Responses whose peer must go on taking them once they have ended: Node sets the timeout anew with the next request, and
 * counts only time in which the peer takes nothing. A class, because a listener for each response costs every call.
 */
const limitStalls = (stallMs: number) =>
  class<R extends IncomingMessage = IncomingMessage> extends ServerResponse<R> {
    override end(...args: unknown[]): this {
      super.end(...(args as Parameters<ServerResponse['end']>))
      if ((this.socket?.writableLength ?? 0) > LARGE_REST) this.socket?.setTimeout(stallMs)
      return this
    }
  }

/** Node tells only the response whose turn it is that its socket has closed; one that waits behind it hears it from here. */
const follow = (socket: Socket, response: ServerResponse): void => {
  const onClose = (): void => {
    if (response.socket === null) response.emit('close')
  }
  socket.once('close', onClose)
  response.once('close', () => socket.off('close', onClose))
}

/** A browser shows the answer in a window of its own, where no page can read it. */
const isNavigation = ({ method, headers }: IncomingMessage): boolean =>
  (method === 'GET' || method === 'HEAD') &&
  headers['sec-fetch-mode'] === 'navigate' &&
  headers['sec-fetch-dest'] === 'document'

const single = (header: string | string[] | undefined): string | undefined =>
  Array.isArray(header) ? header[0] : header

/** A proxy's client names the whole URL, and then its host counts and not the header's. */
const targetOf = (target = '/'): { readonly authority?: string; readonly url: string } => {
  const [, authority, url = ''] = /^https?:\/\/([^/?#]*)(.*)$/i.exec(target) ?? []
  return authority === undefined ? { url: target } : { authority, url: url || '/' }
}

const routeFinder = (routes: Routes): ((path: string) => Handler | undefined) => {
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

/** What Node could not parse as HTTP still gets an answer. */
const answerBadHttp = (error: Error & { code?: string }, socket: Socket): void => {
  if (!socket.writable || error.code === 'ECONNRESET') return void socket.destroy()
  const [status, message] = BAD_HTTP[error.code ?? ''] ?? ['400 Bad Request', 'The request is not valid HTTP']
  const body = join(errorPieces(undefined, rpcError('invalidRequest', message)))
  socket.end(
    `HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-type: application/json\r\n${PRIVATE}content-length: ${body.length}\r\n\r\n${body}`,
  )
  destroySoon(socket)
}
