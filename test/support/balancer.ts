import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A plain round-robin HTTP proxy: no affinity, no retry of what may have arrived. */
export interface Balancer {
  readonly origin: string
  close(): Promise<void>
}

/** Sends each request to the next of these origins; one that refuses the connection is passed over. */
export const startBalancer = async (origins: () => readonly string[]): Promise<Balancer> => {
  const agent = new Agent({ keepAlive: true })
  let turn = 0

  const forward = (
    incoming: IncomingMessage,
    outgoing: ServerResponse,
    body: Buffer,
    order: readonly string[],
  ): void => {
    const [origin, ...others] = order
    if (origin === undefined) return void outgoing.writeHead(502, { 'x-chaos-balancer': 'none' }).end()
    const { method = 'GET', headers } = incoming
    const onward = request(`${origin}${incoming.url}`, { method, headers, agent })
    const leave = () => onward.destroy()
    outgoing.once('close', leave)
    onward.once('response', response => {
      outgoing.writeHead(response.statusCode ?? 502, response.headers)
      outgoing.flushHeaders()
      response.pipe(outgoing)
      response.once('error', () => outgoing.destroy())
      response.once('aborted', () => outgoing.destroy())
    })
    onward.on('error', (error: NodeJS.ErrnoException) => {
      outgoing.off('close', leave)
      // Node repeats nothing on a kept connection that broke, and neither may a balancer repeat a POST.
      if (error.code === 'ECONNREFUSED' && !outgoing.headersSent) forward(incoming, outgoing, body, others)
      else outgoing.destroy()
    })
    onward.end(body)
  }

  const server = createServer(async (incoming, outgoing) => {
    const chunks: Buffer[] = []
    incoming.on('error', () => {})
    outgoing.on('error', () => {})
    try {
      for await (const chunk of incoming) chunks.push(chunk)
    } catch {
      return
    }
    const all = origins()
    const first = turn++ % all.length
    forward(incoming, outgoing, Buffer.concat(chunks), [...all.slice(first), ...all.slice(0, first)])
  })
  server.requestTimeout = 0
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      agent.destroy()
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}
