import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestClient, textOf } from '../../support/client.ts'
import { connectV1 } from '../../support/client-v1.ts'
import { connectV2 } from '../../support/client-v2.ts'
import { startReplicas } from '../../support/replicas.ts'

const CLIENTS = {
  'SDK v1, Streamable HTTP': url => connectV1({ url }),
  'SDK v1, HTTP+SSE': url => connectV1({ url: url.replace('/mcp', '/sse'), sse: true }),
  'SDK v2, legacy': url => connectV2('SDK v2 legacy', { url }),
  'SDK v2, legacy, HTTP+SSE': url => connectV2('SDK v2 legacy', { url: url.replace('/mcp', '/sse'), sse: true }),
  'SDK v2, modern': url => connectV2('SDK v2 modern', { url }),
} satisfies Record<string, (url: string) => Promise<TestClient>>

describe.each(Object.entries(CLIENTS))('%s, each request at another of three replicas', (_, connect) => {
  let cluster: Awaited<ReturnType<typeof startReplicas>>
  let client: TestClient
  beforeAll(async () => {
    cluster = await startReplicas({ size: 3 })
    client = await connect(cluster.url)
  })
  afterAll(async () => {
    await client.close()
    await cluster.close()
  })

  test('lists and calls', async () => {
    expect(await client.toolNames()).toContain('example-echo')
    const calls = Array.from({ length: 12 }, (_, i) => client.call('example-echo', { message: `m${i}` }))
    const texts = (await Promise.all(calls)).map(textOf)
    expect(texts).toEqual(Array.from({ length: 12 }, (_, i) => expect.stringContaining(`m${i}`)))
  })

  test('progress', async () => {
    const seen: number[] = []
    await client.call('test_tool_with_progress', {}, { onProgress: ({ progress }) => seen.push(progress) })
    expect(seen.slice(0, 2)).toEqual([0, 50]) // the SDK drops what arrives together with the result
  })

  test('elicitation and sampling', async () => {
    for (let i = 0; i < 3; i++) {
      expect(textOf(await client.call('test_elicitation', { message: 'Who?' }))).toContain('Ada')
      expect(textOf(await client.call('test_sampling', { prompt: 'Where?' }))).toContain('Paris')
    }
  })

  test('a stream that the server closes goes on, at other replicas', async () => {
    const texts = await Promise.all([1, 2, 3].map(() => client.call('test_reconnection', {})))
    expect(texts.map(textOf)).toEqual(texts.map(() => expect.stringMatching(/Reconnect/i)))
  })

  test('cancellation', async () => {
    for (let i = 0; i < 3; i++) {
      const stop = new AbortController()
      const call = client.call('test_reconnection', {}, { signal: stop.signal })
      setTimeout(() => stop.abort(), 20)
      await expect(call).rejects.toThrow()
    }
    await expect.poll(() => cluster.replicas.map(({ gateway }) => gateway.load().calls)).toEqual([0, 0, 0])
  })
})
