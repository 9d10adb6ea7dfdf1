import { afterEach, expect, test } from 'vitest'
import type { ServerConfig } from '../../../src/config/snapshot.ts'
import { META } from '../../../src/protocol/meta.ts'
import { MODERN } from '../../../src/protocol/revisions.ts'
import { ALL_CAPABILITIES } from '../../support/client.ts'
import { connectV2 } from '../../support/client-v2.ts'
import { startReplicas } from '../../support/replicas.ts'
import { start as startModern } from '../../support/servers/sdk-v2-server.ts'

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

/** As the clients do, but for the lists that they cache themselves. */
const countTools = async (url: string): Promise<number> => {
  const method = 'tools/list'
  const params = { _meta: { [META.protocolVersion]: MODERN, [META.clientCapabilities]: ALL_CAPABILITIES } }
  const accept = 'application/json, text/event-stream'
  const headers = { 'content-type': 'application/json', accept, 'mcp-protocol-version': MODERN, 'mcp-method': method }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
  const response = await fetch(url, { method: 'POST', headers, body })
  const { result } = (await response.json()) as { result: { tools: unknown[] } }
  return result.tools.length
}

const open = async () => {
  const server = await startModern()
  closing.push(server.close)
  const entry: ServerConfig = {
    ...{ name: 'far', disabled: false, kind: 'remote', url: server.url, type: 'auto', headers: {} },
    ...{ era: 'auto', timeoutMs: 20_000 },
  }
  // With rules of its own a workspace caches lists.
  const { replicas, close } = await startReplicas({ size: 3, entry: () => entry, rules: { instructions: 'Be brief.' } })
  closing.push(close)
  await Promise.all(replicas.map(({ gateway }) => gateway.ready))
  return { replicas, counts: () => Promise.all(replicas.map(({ url }) => countTools(url))) }
}

test('after a list has changed no replica answers with the old one, wherever the change was announced', async () => {
  const { replicas, counts } = await open()
  const clients = await Promise.all(replicas.map(({ url }) => connectV2('SDK v2 modern', { url })))
  closing.push(...clients.map(client => client.close))
  const before = await counts()
  const [listening, calling] = clients
  if (!listening || !calling) throw new Error('three clients')
  await listening.watch((await listening.resourceUris())[0] ?? '')
  const changed = listening.notices.next('notifications/tools/list_changed')
  await calling.call('test_trigger_tool_change')
  await changed
  expect(await counts()).toEqual(before.map(count => count + 1))
})
