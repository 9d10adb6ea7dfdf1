import { expect, onTestFinished, test } from 'vitest'
import type { MatrixServer } from '../../matrix/server.ts'
import { sessionServer } from '../../matrix/session-server.ts'
import { statelessClient } from '../../matrix/stateless-client.ts'
import { statelessServer } from '../../matrix/stateless-server.ts'
import { startGatewayBefore } from '../../support/gateway.ts'

const UPDATED = 'notifications/resources/updated'
const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged'
const URIS = Array.from({ length: 10_000 }, (_, at) => `test://r${at}`)

/** The URIs that a server is asked for by listens that are open, or with `resources/subscribe`. */
const askedFor = (server: MatrixServer): string[] => {
  const listens = server.of('subscriptions/listen').filter(({ isGone }) => !isGone)
  const filters = listens.map(({ message }) => message.params?.notifications as { resourceSubscriptions?: string[] })
  const subscribed = server.of('resources/subscribe').map(({ message }) => String(message.params?.uri))
  return [...filters.flatMap(({ resourceSubscriptions = [] }) => resourceSubscriptions), ...subscribed]
}

test.each([
  ['alone', '2026-07-28', statelessServer],
  ['alone', '2025-11-25', () => sessionServer('2025-11-25')],
  ['among others', '2026-07-28', statelessServer],
  ['among others', '2025-11-25', () => sessionServer('2025-11-25')],
] as const)('of 10,000 URIs a listener gets the first 1,000 (%s, server of %s)', async (way, _revision, start) => {
  const server = await start()
  server.methods.set('resources/list', () => ({ resources: URIS.map(uri => ({ uri, name: uri })) }))
  const other = await statelessServer()
  const servers = way === 'alone' ? [server.config] : [server.config, { ...other.config, name: 'other' }]
  const gateway = await startGatewayBefore(servers)
  const client = await statelessClient(gateway.url, {})
  onTestFinished(async () => {
    await client.close()
    await gateway.close()
    await Promise.all([server.close(), other.close()])
  })
  await client.call('resources/list')
  await client.listen(URIS)
  const acknowledged = client.received.find(({ method }) => method === ACKNOWLEDGED)?.params?.notifications
  const { resourceSubscriptions } = acknowledged as { resourceSubscriptions: string[] }
  const first = new Set(URIS.slice(0, 1000))
  expect(resourceSubscriptions.filter(uri => !first.has(uri))).toEqual([])
  // A legacy server gets a request for each, and those that are not answered within five seconds are not acknowledged.
  if (server.revision === '2026-07-28') expect(resourceSubscriptions).toHaveLength(1000)
  await expect.poll(() => askedFor(server).sort(), { timeout: 20_000 }).toEqual([...first].sort())
  server.say(UPDATED, { uri: resourceSubscriptions.at(-1) })
  await client.heard(UPDATED)
  expect((await client.call('tools/list')).error).toBeUndefined()
})
