import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Configured, startConfigured } from '../../e2e/endpoints/configured.ts'
import { type Answerer, textOf } from '../../support/client.ts'
import { connectV1 } from '../../support/client-v1.ts'
import { recordHttp } from '../../support/servers/recorded-http.ts'
import { recordStdio } from '../../support/servers/recorded-stdio.ts'
import type { Recorded } from '../../support/servers/recording.ts'
import { start } from '../../support/servers/sdk-v2-server.ts'

const STDIO = fileURLToPath(new URL('../../support/servers/sdk-v2-stdio.ts', import.meta.url))

const startServer = async (mode: 'Streamable HTTP' | 'stdio'): Promise<Recorded> => {
  if (mode === 'stdio') return recordStdio(['--import', import.meta.resolve('tsx'), STDIO])
  const server = await start()
  const recorded = await recordHttp(server.url)
  return { ...recorded, close: () => recorded.close().then(server.close) }
}

const storyteller = (): Answerer => {
  const sentences = ['Once there was a bridge.', 'Many crossed it.', 'None looked back.']
  return () => ({ role: 'assistant', model: 'a-model', content: { type: 'text', text: sentences.shift() } })
}

describe.each(['Streamable HTTP', 'stdio'] as const)(
  'SDK v1 with a server that speaks only 2026-07-28 over %s',
  mode => {
    let server: Recorded
    let gateway: Configured
    beforeAll(async () => {
      server = await startServer(mode)
      gateway = await startConfigured({ mcpServers: { everything: server.entry } })
    })
    afterAll(async () => {
      await gateway.close()
      await server.close()
    })

    it.each([
      { before: 'Streamable HTTP', path: '', sse: false },
      { before: 'HTTP+SSE', path: '/sse', sse: true },
    ])('completes a tool of three rounds over $before', async ({ path, sse }) => {
      const before = server.sent('tools/call', 'tell_story').length
      const url = `${gateway.gateway.url('everything')}${path}`
      const client = await connectV1({ url, sse, capabilities: { sampling: {} }, answer: storyteller() })
      expect(textOf(await client.call('tell_story'))).toBe(
        'Once there was a bridge. Many crossed it. None looked back.',
      )

      const calls = server.sent('tools/call', 'tell_story').slice(before)
      const answered = calls.map(({ params }) => Object.keys((params?.inputResponses as object | undefined) ?? {}))
      expect(answered).toEqual([[], ['first'], ['second'], ['third']])
      expect(new Set(calls.map(({ id }) => id)).size).toBe(4)
      expect(client.asked.map(({ params }) => JSON.stringify(params.messages).includes('Go on: Once'))).toEqual([
        false,
        true,
        false,
      ])
      await client.close()
    })
  },
)
