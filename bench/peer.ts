import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Where calls go, and the process whose CPU they are charged to. */
export interface Target {
  readonly url: string
  readonly pid: number
  readonly startedAt?: number // when its process was started; none: when the contestant's own was
}

/** How the load client talks to a contestant. */
export type Dialect = 'modern' | 'legacy'

/** One contestant: each file in `peers/` exports one as `peer`. */
export interface Peer {
  readonly about: string
  readonly dialect: Dialect
  readonly missing?: string | undefined // why it cannot be started here
  readonly start: (upstream: Target) => Promise<Target>
}

/** Listens on a free port of this machine and says where. */
export const listening = async (server: Server): Promise<Target> => {
  server.keepAliveTimeout = 60_000
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`, pid: process.pid }
}
