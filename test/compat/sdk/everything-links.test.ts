import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Configured, startConfigured } from '../../e2e/endpoints/configured.ts'
import { textOf } from '../../support/client.ts'
import { connectV1 } from '../../support/client-v1.ts'
import { connectV2 } from '../../support/client-v2.ts'
import { startServerEverything } from '../../support/server-everything.ts'
import { recordHttp } from '../../support/servers/recorded-http.ts'
import type { Recorded } from '../../support/servers/recording.ts'

const TOOL = 'trigger-url-elicitation'
const OPTIONS = { capabilities: { elicitation: { url: {} } }, answer: () => ({ action: 'accept' }) }
const given = (url: string) => ({ url, errorPath: true })

let server: Recorded & { readonly origin: { close(): Promise<void> } }
let gateway: Configured
let url: string
beforeAll(async () => {
  const origin = await startServerEverything('streamableHttp')
  server = { ...(await recordHttp(origin.url)), origin }
  gateway = await startConfigured({ mcpServers: { everything: server.entry } })
  url = gateway.gateway.url('everything')
})
afterAll(async () => {
  await gateway.close()
  await server.close()
  await server.origin.close()
})

// The server never says that the page was seen, and is given ten seconds to do so.
it('a modern client is sent to the page of an error, and the call is made again', async () => {
  const client = await connectV2('SDK v2 modern', { url, ...OPTIONS })
  expect(textOf(await client.call(TOOL, given('https://example.com/modern')))).toContain('User completed')
  expect(client.asked.map(({ params }) => params.url)).toEqual([
    'https://modelcontextprotocol.io',
    'https://example.com/modern',
  ])
  expect(server.sent('tools/call', TOOL)).toHaveLength(2)
  await client.close()
})

it('a client of the server’s own revision gets the error as it is, and calls again itself', async () => {
  const before = server.sent('tools/call', TOOL).length
  const client = await connectV1({ url, ...OPTIONS })
  await expect(client.call(TOOL, given('https://example.com/legacy'))).rejects.toMatchObject({
    code: -32042,
    data: { elicitations: [{ mode: 'url', url: 'https://modelcontextprotocol.io' }] },
  })
  expect(textOf(await client.call(TOOL, given('https://example.com/legacy')))).toContain('User completed')
  expect(client.asked.map(({ params }) => params.url)).toEqual(['https://example.com/legacy'])
  expect(server.sent('tools/call', TOOL)).toHaveLength(before + 2)
  await client.close()
})
