import { afterEach, expect, test } from 'vitest'
import { type Gateway, startGateway } from '../../../src/app/gateway.ts'
import { DEFAULT_LIMITS, DEFAULT_LISTEN, defaultRules } from '../../../src/config/snapshot.ts'
import { SILENT } from '../../../src/telemetry/log.ts'
import { openChannel } from '../../support/channel.ts'
import { modern, openSession, openStream, send } from '../../support/raw.ts'

let gateway: Gateway
const start = async (): Promise<string> => {
  gateway = await startGateway(
    {
      listen: { ...DEFAULT_LISTEN, port: 0 },
      limits: { ...DEFAULT_LIMITS, shutdownMs: 200 },
      servers: new Map([['demo', { name: 'demo', disabled: false, kind: 'builtin', builtin: 'demo' }]]),
      workspaces: new Map([['default', { name: 'default', servers: ['demo'], ...defaultRules(1) }]]),
      warnings: [],
    },
    { log: SILENT },
  )
  return gateway.url()
}
afterEach(() => gateway.close())

test('a gateway is idle from the last request on, unless a session, a channel or a stream is open', async () => {
  const url = await start()
  await expect.poll(() => gateway.idleMs()).toBeGreaterThan(20)
  await send(url, modern(1, 'tools/list'))
  expect(gateway.idleMs()).toBeLessThan(1000)

  const { headers } = await openSession(url)
  expect(gateway.idleMs()).toBe(0)
  await send(url, { method: 'DELETE', headers })
  await expect.poll(() => gateway.idleMs()).toBeGreaterThan(0)

  const channel = await openChannel(`${url}/default/sse`)
  expect(gateway.idleMs()).toBe(0)
  channel.close()
  await expect.poll(() => gateway.idleMs()).toBeGreaterThan(0)

  const stream = await openStream(url, modern(2, 'subscriptions/listen', { notifications: { toolsListChanged: true } }))
  await stream.next()
  expect(gateway.idleMs()).toBe(0)
  stream.close()
  await expect.poll(() => gateway.idleMs()).toBeGreaterThan(0)
})
