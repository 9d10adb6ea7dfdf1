import { expect, test } from 'vitest'
import type { TestClient } from '../../support/client.ts'
import { connectV1 } from '../../support/client-v1.ts'
import { connectV2 } from '../../support/client-v2.ts'
import { startTestGateway } from '../../support/gateway.ts'
import type { Endpoint } from '../../support/servers/http.ts'
import { start as startV1 } from '../../support/servers/sdk-v1-server.ts'
import { start as startSse } from '../../support/servers/sdk-v1-sse.ts'
import { start as startV2 } from '../../support/servers/sdk-v2-server.ts'

const WATCHED = 'test://watched-resource'
const UPDATED = 'notifications/resources/updated'

test.each<[string, (port?: number) => Promise<Endpoint>]>([
  ['SDK v2', startV2],
  ['SDK v1, Streamable HTTP', startV1],
  ['SDK v1, HTTP+SSE', startSse],
])('clients of every SDK keep their subscriptions when a server of %s restarts', async (_name, start) => {
  const first = await start()
  const gateway = await startTestGateway(first.url)
  const options = { url: gateway.url, capabilities: {} }
  const clients: TestClient[] = [
    await connectV1(options),
    await connectV1({ ...options, url: `${gateway.url}/default/sse`, sse: true }),
    await connectV2('SDK v2 modern', options),
  ]
  const watched = await Promise.all(clients.map(client => client.watch(WATCHED)))
  let lost = 0
  for (const { lost: end } of watched) void end.then(() => lost++)

  await first.close()
  const second = await start(Number(new URL(first.url).port))

  const hear = async (): Promise<void> => {
    for (const { notices } of clients) expect((await notices.next(UPDATED)).params).toMatchObject({ uri: WATCHED })
  }
  await hear() // it may have changed meanwhile
  await clients[0]?.call('change_watched_resource')
  await hear()
  expect(lost).toBe(0)
  await Promise.all(clients.map(client => client.close()))
  await gateway.close()
  await second.close()
})
