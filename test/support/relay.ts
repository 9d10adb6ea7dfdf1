import type { AddressInfo } from 'node:net'
import { connect, createServer, type Socket } from 'node:net'

/** A wire between a client and a server that a test can cut. */
export interface Relay {
  /** The target's address as it is reached through the relay. */
  readonly url: string
  /** Breaks every connection at once; new ones work. */
  cut(): void
  close(): Promise<void>
}

/** Starts a TCP relay in front of a URL. */
export const startRelay = async (target: string): Promise<Relay> => {
  const { hostname, port, pathname } = new URL(target)
  const sockets = new Set<Socket>()
  const server = createServer(near => {
    const far = connect(Number(port), hostname)
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from)
      from.on('error', () => to.destroy())
      from.on('close', () => {
        sockets.delete(from)
        to.destroy()
      })
      from.pipe(to)
    }
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const cut = () => {
    for (const socket of sockets) socket.destroy()
  }
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${pathname}`,
    cut,
    close: () =>
      new Promise(resolve => {
        server.close(() => resolve())
        cut()
      }),
  }
}
