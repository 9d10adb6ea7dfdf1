import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, it } from 'vitest'
import { type ClientKind, type TestClient, textOf } from '../../support/client.ts'
import { connectV1 } from '../../support/client-v1.ts'
import { connectV2 } from '../../support/client-v2.ts'
import { nodeServer, startGatewayBefore } from '../../support/gateway.ts'

const SERVER = fileURLToPath(new URL('../../support/servers/stdio/server.mjs', import.meta.url))
const CLIENTS: readonly ClientKind[] = ['SDK v1', 'SDK v2 legacy', 'SDK v2 auto', 'SDK v2 modern']
const ACCEPT = { action: 'accept', content: { name: 'Ada' } }

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close().catch(() => undefined)
})

const connect = async (kind: ClientKind, answer: () => Promise<Record<string, unknown>>): Promise<TestClient> => {
  const { url, close } = await startGatewayBefore([nodeServer('asking', [SERVER, '{}'], { CLIENT: kind })])
  closing.push(close)
  const options = { url, answer, capabilities: { elicitation: {} } }
  const client = await (kind === 'SDK v1' ? connectV1(options) : connectV2(kind, options))
  closing.push(client.close)
  return client
}

describe.each(CLIENTS)('%s', kind => {
  it('answers a question after the server has answered the call, and the server hears "accept"', async () => {
    let accept = () => {}
    const decided = new Promise<void>(resolve => {
      accept = resolve
    })
    const client = await connect(kind, async () => {
      await decided
      return ACCEPT
    })
    expect(textOf(await client.call('askAlong'))).toBe('asked')
    if (client.era === 'legacy') await expect.poll(() => client.asked.length).toBe(1) // a modern one is asked next time
    accept()
    await expect.poll(async () => textOf(await client.call('heard'))).toBe(JSON.stringify([ACCEPT]))
    expect(client.asked).toHaveLength(1)
  })
})
