import type { AddressInfo } from 'node:net'
import { connect, createServer, type Socket } from 'node:net'

/** A network before a PostgreSQL that listens on a Unix socket. */
export interface SilentNetwork {
  readonly url: string
  /** From now on nothing passes on the connections that are open, not even their end. New ones work. */
  silence(): void
  close(): Promise<void>
}

/** Starts a TCP port before the PostgreSQL of that URL. */
export const startSilentNetwork = async (target: string): Promise<SilentNetwork> => {
  const folder = new URL(target).searchParams.get('host')
  const pairs = new Set<readonly [Socket, Socket]>()
  const server = createServer({ allowHalfOpen: true }, near => {
    const far = connect(`${folder}/.s.PGSQL.5432`)
    pairs.add([near, far])
    near.pipe(far).pipe(near)
    for (const socket of [near, far]) socket.on('error', () => {})
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `postgresql://postgres@127.0.0.1:${port}/postgres`,
    silence: () => {
      for (const [near, far] of pairs) {
        near.unpipe(far).pause()
        far.unpipe(near).pause()
      }
    },
    close: () =>
      new Promise(resolve => {
        server.close(() => resolve())
        for (const pair of pairs) for (const socket of pair) socket.destroy()
      }),
  }
}
