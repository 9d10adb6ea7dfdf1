import { createServer, type IncomingHttpHeaders, request } from 'node:http'
import type { AddressInfo } from 'node:net'

/** What a request looked like. */
export interface ProxiedRequest {
  readonly method: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** What becomes of a response: another status, other headers, another body. */
export interface ResponseChange {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: (text: string) => string
}

/** A proxy in front of a URL that changes some of the responses. */
export const startChangingProxy = async (
  target: string,
  changeOf: (request: ProxiedRequest) => ResponseChange | undefined,
): Promise<{ url: string; close(): Promise<void> }> => {
  const { hostname, port, pathname } = new URL(target)
  const server = createServer(async (incoming, outgoing) => {
    const { method = '', headers, url: path } = incoming
    const body = Buffer.concat(await incoming.toArray())
    const change = changeOf({ method, headers, body: body.toString() })
    const own = `127.0.0.1:${(server.address() as AddressInfo).port}`
    const sent = { ...headers, host: headers.host === own ? `${hostname}:${port}` : headers.host }
    const forwarded = request({ hostname, port, path, method, headers: sent }, async response => {
      response.on('error', () => outgoing.destroy())
      if (!change?.body) {
        outgoing.writeHead(change?.status ?? response.statusCode ?? 0, { ...response.headers, ...change?.headers })
        outgoing.flushHeaders()
        return void response.pipe(outgoing)
      }
      const text = Buffer.concat(await response.toArray()).toString()
      const { 'content-length': _, 'transfer-encoding': __, ...kept } = response.headers
      outgoing.writeHead(change.status ?? response.statusCode ?? 0, { ...kept, ...change.headers })
      outgoing.end(change.body(text))
    })
    forwarded.on('error', () => outgoing.destroy())
    outgoing.on('close', () => forwarded.destroy())
    forwarded.end(body)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const close = (): Promise<void> =>
    new Promise(resolve => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${pathname}`, close }
}
