import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { MemoryCluster } from '../../../src/stores/state/memory-state.ts'
import { randomKeys } from '../../../src/stores/state/secret.ts'
import { type TestClient, textOf } from '../../support/client.ts'
import { connectV1 } from '../../support/client-v1.ts'
import { connectV2 } from '../../support/client-v2.ts'
import { startTestGateway } from '../../support/gateway.ts'
import { type Relay, startRelay } from '../../support/relay.ts'
import { start as startV1 } from '../../support/servers/sdk-v1-server.ts'
import { start as startV2 } from '../../support/servers/sdk-v2-server.ts'

const WATCHED = 'test://watched-resource'
const SERVERS = { 'SDK v1': startV1, 'SDK v2': startV2 }
const CLIENTS = {
  'SDK v1': (url: string) => connectV1({ url, persistent: true }),
  'SDK v2': (url: string) => connectV2('SDK v2 legacy', { url, persistent: true }),
}
const CELLS = (['SDK v1', 'SDK v2'] as const).flatMap(client =>
  (['SDK v1', 'SDK v2'] as const).map(server => ({ client, server })),
)

/** A gateway that can be replaced by another with the same state, at the same URL. */
const startReplaceable = async (server: string) => {
  const cluster = new MemoryCluster()
  const keys = randomKeys()
  const start = async () => {
    const store = cluster.join()
    const upstream = await startRelay(server)
    return { store, upstream, ...(await startTestGateway(upstream.url, { store, keys })) }
  }
  const all = [await start()]
  const relay: Relay = await startRelay(all[0]?.url ?? '')
  return {
    url: relay.url,
    replace: async (how: 'crash' | 'planned stop') => {
      const former = all.at(-1)
      if (how === 'crash') {
        cluster.kill(former?.store.members.self ?? '')
        await former?.upstream.stop()
      } else {
        await former?.close()
        await former?.store.close()
      }
      const next = await start()
      all.push(next)
      relay.redirect(next.url)
      relay.cut()
    },
    close: async () => {
      await relay.close()
      for (const gateway of all) {
        await gateway.close()
        await gateway.upstream.close()
      }
    },
  }
}

describe.each(CELLS)('a session of client $client with server $server', ({ client: kind, server }) => {
  let fixture: Awaited<ReturnType<typeof startV1>>
  let gateway: Awaited<ReturnType<typeof startReplaceable>>
  let client: TestClient
  beforeAll(async () => {
    fixture = await SERVERS[server]()
  })
  afterAll(() => fixture.close())
  beforeEach(async () => {
    gateway = await startReplaceable(fixture.url)
    client = await CLIENTS[kind](gateway.url)
  })
  afterEach(async () => {
    await client.close()
    await gateway.close()
  })

  it.each(['crash', 'planned stop'] as const)(
    'goes on after a %s of the gateway',
    async how => {
      await client.watch(WATCHED)
      let replaced: Promise<void> | undefined
      const onProgress = (): void => {
        replaced ??= gateway.replace(how)
      }
      const lost = await client.call('wait', { ms: 60_000 }, { onProgress }).catch((error: unknown) => error)
      await replaced
      expect(lost).toMatchObject({ code: -32603 })
      if (how === 'crash') expect(lost).toMatchObject({ data: { reason: 'gateway_restarted' } })
      const echo = () => client.call('echo', { text: 'here' })
      // A connection that was cut just now may still be in the client's pool.
      expect(textOf(await echo().catch(error => (`${error}`.includes('fetch failed') ? echo() : error)))).toContain(
        'here',
      )
      expect(client.requests.filter(({ headers }) => !headers.has('mcp-session-id'))).toHaveLength(1) // initialize
      await client.notices.next('notifications/resources/updated') // something may have changed meanwhile
      await client.call('change_watched_resource')
      expect((await client.notices.next('notifications/resources/updated')).params.uri).toBe(WATCHED)
    },
    30_000,
  )
})
