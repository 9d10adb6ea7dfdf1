import { once } from 'node:events'
import { connect, createServer, type NetConnectOpts, type Socket } from 'node:net'
import { join } from 'node:path'

/** A proxy before PostgreSQL that counts what passes it. */
export interface StatementCounter {
  readonly url: string
  /** Statements since the start: simple queries and executions of prepared ones. */
  count(): number
  close(): void
}

const COUNTED = new Set(['Q', 'E'].map(letter => letter.charCodeAt(0)))
const HEADER_BYTES = 5 // type and length

/** Reads the messages of one client; the first has no type. */
const countMessages = (socket: Socket, onStatement: () => void): void => {
  let held = Buffer.alloc(0)
  let isFirst = true
  socket.on('data', chunk => {
    held = Buffer.concat([held, chunk])
    for (;;) {
      if (held.length < HEADER_BYTES) return
      const size = isFirst ? held.readInt32BE(0) : held.readInt32BE(1) + 1
      if (held.length < size) return
      if (!isFirst && COUNTED.has(held[0] ?? 0)) onStatement()
      isFirst = false
      held = held.subarray(size)
    }
  })
}

const targetOf = (url: URL): NetConnectOpts => {
  const folder = url.searchParams.get('host')
  const port = Number(url.port || 5432)
  return folder ? { path: join(folder, `.s.PGSQL.${port}`) } : { host: url.hostname, port }
}

/** Listens on a free port for clients of that database. */
export const countStatements = async (databaseUrl: string): Promise<StatementCounter> => {
  const url = new URL(databaseUrl)
  const target = targetOf(url)
  let statements = 0
  const sockets = new Set<Socket>()
  const server = createServer(client => {
    const database = connect(target)
    countMessages(client, () => void statements++)
    for (const [from, to] of [
      [client, database],
      [database, client],
    ] as const) {
      sockets.add(from)
      from.pipe(to)
      from.on('error', () => to.destroy())
      from.on('close', () => to.destroy())
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  return {
    url: `postgresql://${url.username}@127.0.0.1:${port}${url.pathname}`,
    count: () => statements,
    close: () => {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}
