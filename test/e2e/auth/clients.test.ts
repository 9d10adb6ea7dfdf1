import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Created, type Guarded, startGuarded } from './guarded.ts'

let gateway: Guarded
let token: Created
beforeAll(async () => {
  gateway = await startGuarded()
  token = await gateway.create()
})
afterAll(() => gateway.close())

interface Connection {
  toolNames(): Promise<string[]>
  close(): Promise<void>
}
type Connect = (headers: Record<string, string>) => Promise<Connection>

const connectV1 = async (transport: unknown): Promise<Connection> => {
  const client = new ClientV1({ name: 'test', version: '1' })
  await client.connect(transport as Transport)
  return {
    toolNames: async () => (await client.listTools()).tools.map(({ name }) => name),
    close: () => client.close(),
  }
}

const CLIENTS: Readonly<Record<string, Connect>> = {
  'SDK v1 over Streamable HTTP': headers =>
    connectV1(new StreamableHTTPClientTransport(new URL(gateway.url), { requestInit: { headers } })),
  'SDK v1 over HTTP+SSE': headers =>
    connectV1(new SSEClientTransport(new URL(`${gateway.origin}/sse`), { requestInit: { headers } })),
  'SDK v2': async headers => {
    const client = new ClientV2({ name: 'test', version: '1' })
    await client.connect(new TransportV2(new URL(gateway.url), { requestInit: { headers } }))
    return {
      toolNames: async () => (await client.listTools()).tools.map(({ name }) => name),
      close: () => client.close(),
    }
  },
}

describe.each(Object.entries(CLIENTS))('%s', (_name, connect) => {
  it('comes in with a token', async () => {
    const client = await connect({ ...token.headers })
    expect(await client.toolNames()).toContain('example-ping')
    await client.close()
  })

  it('is told that it needs one', async () => {
    await expect(connect({})).rejects.toThrow(/401|unauthorized/i)
  })
})
