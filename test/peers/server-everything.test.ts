import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ClientKind, TestClient } from '../support/client.ts'
import { textOf } from '../support/client.ts'
import { connectV1 } from '../support/client-v1.ts'
import { connectV2 } from '../support/client-v2.ts'
import { startTestGateway } from '../support/gateway.ts'
import { startServerEverything } from '../support/server-everything.ts'

const CLIENTS: readonly ClientKind[] = ['SDK v1', 'SDK v2 modern']

describe.each(['sse', 'streamableHttp'] as const)('server-everything over %s', mode => {
  const closing: (() => Promise<unknown>)[] = []
  let url: string
  beforeAll(async () => {
    const server = await startServerEverything(mode)
    const gateway = await startTestGateway(server.url)
    url = gateway.url
    closing.push(server.close, gateway.close)
  })
  afterAll(async () => {
    for (const close of closing.reverse()) await close()
  })

  describe.each(CLIENTS)('for %s', kind => {
    let client: TestClient
    beforeAll(async () => {
      client = await (kind === 'SDK v1' ? connectV1({ url }) : connectV2(kind, { url }))
      closing.push(() => client.close())
    })

    it('has its tools, also those it has only for clients that can be asked', async () => {
      const names = await client.toolNames()
      expect(names).toContain('echo')
      expect(names).toContain('trigger-elicitation-request')
      expect(client.serverName).toBe('mcp-servers/everything')
    })

    it('answers', async () => {
      expect(textOf(await client.call('echo', { message: 'hello' }))).toBe('Echo: hello')
      expect(textOf(await client.call('get-sum', { a: 2, b: 40 }))).toContain('42')
      expect((await client.promptNames()).length).toBeGreaterThan(0)
      expect((await client.resourceUris()).length).toBeGreaterThan(0)
    })

    it('reports progress', async () => {
      const heard: number[] = []
      const onProgress = ({ progress }: { progress: number }) => heard.push(progress)
      await client.call('trigger-long-running-operation', { duration: 0.2, steps: 4 }, { onProgress })
      expect(heard.at(-1)).toBe(4)
    })

    it('asks the person, the model and the host', async () => {
      const sampled = await client.call('trigger-sampling-request', { prompt: 'capital?', maxTokens: 10 })
      expect(textOf(sampled)).toContain('Paris')
      expect(textOf(await client.call('get-roots-list'))).toContain('file:///home/ada')
      expect(textOf(await client.call('trigger-elicitation-request'))).toContain('Ada')
    })
  })
})
