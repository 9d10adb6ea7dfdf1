import { expect, onTestFinished, test } from 'vitest'
import { gatewayBefore } from '../../matrix/cells.ts'
import type { MatrixServer } from '../../matrix/server.ts'
import { sessionServer } from '../../matrix/session-server.ts'
import { statelessServer } from '../../matrix/stateless-server.ts'
import { modern, openStream, type RawStream } from '../../support/raw.ts'

const UPDATED = 'notifications/resources/updated'
const TOOLS_CHANGED = 'notifications/tools/list_changed'
const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged'
const URIS = Array.from({ length: 200 }, (_, at) => `test://r${at}`)
const ROUNDS = 20
const PADDING = 'x'.repeat(8000)
const MOST_SOCKET = 0.75 // of all notifications fit in the buffers of the sockets
const LATEST_BYTES = URIS.length * (PADDING.length + 500) // one notification of each resource

const SERVERS: readonly [string, () => Promise<MatrixServer>][] = [
  ['2026-07-28', statelessServer],
  ['2025-11-25', () => sessionServer('2025-11-25')],
]

const start = async (startServer: () => Promise<MatrixServer>) => {
  const server = await startServer()
  server.methods.set('resources/list', () => ({ resources: URIS.map(uri => ({ uri, name: uri })) }))
  const gateway = await gatewayBefore(server.config)
  onTestFinished(async () => {
    await gateway.close()
    await server.close()
  })
  const listen = async (id: string, uris: readonly string[]): Promise<RawStream> => {
    const notifications = { toolsListChanged: true, resourceSubscriptions: uris }
    const stream = await openStream(gateway.url(), modern(id, 'subscriptions/listen', { notifications }))
    onTestFinished(() => stream.close())
    expect((await stream.next())?.json.method).toBe(ACKNOWLEDGED)
    return stream
  }
  return { server, gateway, listen }
}

test.each(SERVERS)(
  'a listener that reads nothing costs one notification for each resource, delays no other, and hears the latest later (server of %s)',
  async (_revision, startServer) => {
    const { server, gateway, listen } = await start(startServer)
    const [slow, fast] = [await listen('slow', URIS), await listen('fast', URIS)]
    slow.response.pause()
    let most = 0
    for (let round = 1; round <= ROUNDS; round++) {
      for (const uri of URIS) server.say(UPDATED, { uri, round, padding: PADDING })
      const heard = new Set<unknown>()
      while (heard.size < URIS.length) {
        const { params } = (await fast.next())?.json ?? {}
        if (params?.round === round) heard.add(params.uri)
      }
      most = Math.max(most, gateway.load().logBytes)
    }
    expect(most).toBeLessThan(LATEST_BYTES * 2) // of 32 MB
    server.say(TOOLS_CHANGED)
    slow.response.resume()
    const latest = new Map<unknown, unknown>()
    let count = 0
    for (let event = await slow.next(); event?.json.method !== TOOLS_CHANGED; event = await slow.next()) {
      if (!event) throw new Error('the stream of the slow listener has ended')
      latest.set(event.json.params?.uri, event.json.params?.round)
      count++
    }
    expect(latest).toEqual(new Map(URIS.map(uri => [uri, ROUNDS])))
    expect(count).toBeLessThan(URIS.length * ROUNDS * MOST_SOCKET) // what filled the sockets, and the latest of each
    await expect.poll(() => gateway.load().logBytes).toBe(0)
  },
  60_000,
)

/** What the server is asked for now: by listens that are open, or by subscriptions that have not ended. */
const watchedAt = (server: MatrixServer): string[] => {
  const listens = server.of('subscriptions/listen').filter(({ isGone }) => !isGone)
  const filters = listens.map(({ message }) => message.params?.notifications as { resourceSubscriptions?: string[] })
  const named = new Set(filters.flatMap(({ resourceSubscriptions = [] }) => resourceSubscriptions))
  for (const { message } of server.arrivals) {
    if (message.method === 'resources/subscribe') named.add(String(message.params?.uri))
    if (message.method === 'resources/unsubscribe') named.delete(String(message.params?.uri))
  }
  return [...named].sort()
}

test.each(SERVERS)(
  'a listener that leaves takes what only it watched away from the server; those that stay miss nothing (server of %s)',
  async (_revision, startServer) => {
    const { server, listen } = await start(startServer)
    const [first, second] = [URIS.slice(0, 120), URIS.slice(100)]
    const [one, two] = [await listen('one', first), await listen('two', second)]
    await expect.poll(() => watchedAt(server)).toEqual([...URIS].sort())
    one.response.destroy() // as a process that was killed
    await expect.poll(() => watchedAt(server), { timeout: 15_000 }).toEqual([...second].sort())
    for (const uri of second) server.say(UPDATED, { uri })
    const heard = new Set<unknown>()
    while (heard.size < second.length) heard.add((await two.next())?.json.params?.uri)
    two.close()
    await expect.poll(() => watchedAt(server), { timeout: 15_000 }).toEqual([])
  },
  60_000,
)
