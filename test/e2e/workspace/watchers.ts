import { expect, test } from 'vitest'
import { gatewayBefore } from '../../matrix/cells.ts'
import type { MatrixClient, Wire } from '../../matrix/client.ts'
import type { Arrival, MatrixServer } from '../../matrix/server.ts'
import { sessionServer } from '../../matrix/session-server.ts'
import { statelessClient } from '../../matrix/stateless-client.ts'
import { statelessServer } from '../../matrix/stateless-server.ts'

const URIS = Array.from({ length: 50 }, (_, n) => `test://r${n}`)
const UPDATED = 'notifications/resources/updated'
const LISTENS: ReadonlySet<string> = new Set(['subscriptions/listen', 'resources/subscribe'])
const ROUND_MS = 1000

/** What the server is asked for by all clients together. */
interface UpstreamUse {
  readonly listens: number // open ones
  readonly uris: readonly string[]
}

/** The open requests of a modern server, and what they ask for. */
const listensAt = (server: MatrixServer): UpstreamUse => {
  const open = server.of('subscriptions/listen').filter(({ isGone }) => !isGone)
  const filters = open.map(({ message }) => message.params?.notifications as { resourceSubscriptions?: string[] })
  return { listens: open.length, uris: filters.flatMap(({ resourceSubscriptions = [] }) => resourceSubscriptions) }
}

/** The sessions of a legacy server that have a GET stream, and what was subscribed to in them. */
const subscriptionsAt = (server: MatrixServer): UpstreamUse => {
  const { sessions } = server as Awaited<ReturnType<typeof sessionServer>>
  const isAlive = ({ headers }: Arrival): boolean => sessions.has(String(headers['mcp-session-id']))
  const open = server.arrivals.filter(each => each.verb === 'GET' && !each.isGone && isAlive(each))
  const uris = server.of('resources/subscribe').filter(isAlive)
  return { listens: open.length, uris: uris.map(({ message }) => String(message.params?.uri)) }
}

/** When each resource has changed, and when each client has heard of it, in steps that a clock counts. */
const createClock = () => {
  let now = 0
  let listenedAt = 0
  const changed = new Map<string, number>()
  const heard = new Map<MatrixClient, Map<string, number>>()
  return {
    change: (uri: string): number => {
      changed.set(uri, ++now)
      return now
    },
    listen: (): void => {
      listenedAt = now
    },
    /** The gateway's own notice, after a gap, is about everything before it listened again. */
    hear: (client: MatrixClient, { method, params }: Wire): void => {
      if (method === UPDATED) heard.get(client)?.set(String(params?.uri), Number(params?.at ?? listenedAt))
    },
    add: (client: MatrixClient): void => void heard.set(client, new Map()),
    /** Changes that some client has not heard of since. */
    unheard: (): string[] =>
      [...changed].flatMap(([uri, at]) =>
        [...heard.values()].some(own => (own.get(uri) ?? 0) < at) ? `${uri} changed at ${at}` : [],
      ),
  }
}

/**
 * Lets clients watch the same 50 resources of one server, which is killed and started again that often, while its resources
 * change before, during and after each outage.
 */
const watchThroughRestarts = async (
  server: MatrixServer,
  count: number,
  restarts: number,
  useOf: (server: MatrixServer) => UpstreamUse,
): Promise<void> => {
  server.methods.set('resources/list', () => ({ resources: URIS.map(uri => ({ uri, name: uri })) }))
  const clock = createClock()
  const record = server.arrivals.push.bind(server.arrivals)
  server.arrivals.push = (...arrivals) => {
    if (arrivals.some(({ verb, message }) => verb === 'GET' || LISTENS.has(message.method ?? ''))) clock.listen()
    return record(...arrivals)
  }
  const gateway = await gatewayBefore(server.config)
  const clients: MatrixClient[] = []
  const change = (uri: string): void => {
    server.say(UPDATED, { uri, at: clock.change(uri) })
  }
  try {
    for (let n = 0; n < count; n++) {
      const client = await statelessClient(gateway.url(), {})
      clients.push(client)
      clock.add(client)
      const push = client.received.push.bind(client.received)
      client.received.push = (...messages) => {
        for (const message of messages) clock.hear(client, message)
        return push(...messages)
      }
      await client.listen(URIS)
    }
    const use = (): UpstreamUse => {
      const { listens, uris } = useOf(server)
      return { listens, uris: [...uris].sort() }
    }
    const one = { listens: 1, uris: [...URIS].sort() }
    await expect.poll(use).toEqual(one)
    for (const uri of URIS) change(uri)
    await expect.poll(clock.unheard, { timeout: 10_000 }).toEqual([])
    for (let n = 0; n < restarts; n++) {
      for (const uri of URIS.slice(0, 20)) change(uri)
      await server.kill()
      for (const uri of URIS.slice(10, 40)) change(uri)
      await server.restart()
      for (const uri of URIS.slice(30)) change(uri)
      const end = Date.now() + ROUND_MS
      while (Date.now() < end && clock.unheard().length > 0) await new Promise(done => setTimeout(done, 20))
    }
    await expect.poll(clock.unheard, { timeout: 150_000, interval: 100 }).toEqual([])
    await expect.poll(use).toEqual(one)
    for (const uri of URIS) change(uri)
    await expect.poll(clock.unheard, { timeout: 10_000 }).toEqual([])
    const ended = clients.filter(({ received }) => received.some(({ method }) => method === undefined))
    expect(ended).toEqual([])
  } finally {
    for (const client of clients) await client.close()
    await gateway.close()
    await server.close()
  }
}

/** Declares the tests, at a server of each era. */
export const watchersMissNothing = (count: number, restarts: number): void => {
  test.each([
    ['2026-07-28', statelessServer, listensAt],
    ['2025-11-25', () => sessionServer('2025-11-25'), subscriptionsAt],
  ] as const)(
    `${count} clients that watch 50 resources of a server of %s share one listen, and miss no change if it restarts (${restarts} times)`,
    async (_revision, start, useOf) => watchThroughRestarts(await start(), count, restarts, useOf),
    300_000,
  )
}
