import { createServer, type Server, type Socket } from 'node:net'

/** Where clients connect. */
export interface PublicAddress {
  readonly host: string
  readonly port: number // 0: any free one
}

/** An open port. */
export interface OpenPort {
  readonly port: number
  /** Accepts nothing more. */
  stop(): void
}

/** A port whose connections are handed out. */
export interface SharedPort extends OpenPort {
  /** Hands a connection out again that was not taken. */
  share(socket: Socket): void
}

/** Takes a connection that has not been read from. */
export type TakeConnection = (socket: Socket) => void

/**
 * Listens in this process and hands the connections out in turn: `takers` are asked for each one, because workers come and
 * go. In turn, because a few connections that stay open for long must not all be in one process.
 */
export const shareConnections = (
  { host, port }: PublicAddress,
  takers: () => readonly TakeConnection[],
): Promise<SharedPort> => {
  let turn = 0
  const share: TakeConnection = socket => {
    const all = takers()
    const take = all[turn++ % Math.max(1, all.length)]
    if (take) take(socket)
    else socket.destroy()
  }
  // Half-open as in an HTTP server: a client may close its side before it has read the response.
  const server: Server = createServer({ allowHalfOpen: true, pauseOnConnect: true, noDelay: true }, share)
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      server.on('error', () => {}) // of single connections, for example without a free file descriptor
      const address = server.address()
      resolve({
        port: typeof address === 'object' && address ? address.port : port,
        share,
        stop: () => void server.close(),
      })
    })
  })
}
