import type { AddressInfo } from 'node:net'
import { connect, createServer, type Socket } from 'node:net'

/** A wire between a client and a server that a test can cut. */
export interface Relay {
  /** The target's address as it is reached through the relay. */
  readonly url: string
  /** Breaks every connection at once; new ones work. */
  cut(): void
  /** Passes nothing on until `resume`, as if the target hung. */
  pause(): void
  resume(): void
  /** Breaks every connection, and there is nobody at the address until `start`. */
  stop(): Promise<void>
  start(): Promise<void>
  /** New connections go to another URL. */
  redirect(target: string): void
  close(): Promise<void>
}

/** Starts a TCP relay in front of a URL. */
export const startRelay = async (target: string): Promise<Relay> => {
  const { pathname } = new URL(target)
  let { hostname, port } = new URL(target)
  const sockets = new Set<Socket>()
  const pairs = new Map<Socket, Socket>()
  const server = createServer(near => {
    const far = connect(Number(port), hostname)
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from)
      pairs.set(from, to)
      from.on('error', () => to.destroy())
      from.on('close', () => {
        sockets.delete(from)
        pairs.delete(from)
        to.destroy()
      })
      from.pipe(to)
    }
  })
  const start = (at: number): Promise<void> => new Promise(resolve => server.listen(at, '127.0.0.1', resolve))
  await start(0)
  const own = (server.address() as AddressInfo).port
  const cut = () => {
    for (const socket of sockets) socket.destroy()
  }
  const stop = (): Promise<void> =>
    new Promise(resolve => {
      server.close(() => resolve())
      cut()
    })
  const redirect = (next: string): void => {
    ;({ hostname, port } = new URL(next))
  }
  const pause = () => {
    for (const socket of sockets) socket.unpipe()
  }
  const resume = () => {
    for (const [from, to] of pairs) from.pipe(to)
  }
  return {
    url: `http://127.0.0.1:${own}${pathname}`,
    cut,
    pause,
    resume,
    stop,
    start: () => start(own),
    redirect,
    close: stop,
  }
}
