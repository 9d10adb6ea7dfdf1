import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Configured, startConfigured } from '../../e2e/endpoints/configured.ts'
import { type Answerer, type ClientKind, obliging, type TestClient, textOf } from '../../support/client.ts'
import { connectV1 } from '../../support/client-v1.ts'
import { connectV2 } from '../../support/client-v2.ts'
import { startServerEverything } from '../../support/server-everything.ts'
import { recordHttp } from '../../support/servers/recorded-http.ts'
import { recordStdio } from '../../support/servers/recorded-stdio.ts'
import type { Recorded } from '../../support/servers/recording.ts'

const PROGRAM = fileURLToPath(import.meta.resolve('@modelcontextprotocol/server-everything/dist/index.js'))
const ALL = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} }

/** Fills in the one field that must be; goes where it is sent. */
const answerAs =
  (name: string): Answerer =>
  asked => {
    if (asked.method !== 'elicitation/create') return obliging(asked)
    return asked.params.mode === 'url' ? { action: 'accept' } : { action: 'accept', content: { name } }
  }

/** The server as it comes from its package, and everything it is sent. */
const startServer = async (mode: 'streamableHttp' | 'sse' | 'stdio'): Promise<Recorded> => {
  if (mode === 'stdio') return recordStdio([PROGRAM, 'stdio'])
  const server = await startServerEverything(mode)
  const recorded = await recordHttp(server.url)
  return { ...recorded, close: () => recorded.close().then(server.close) }
}

describe.each(['streamableHttp', 'sse', 'stdio'] as const)('server-everything over %s', mode => {
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

  describe.each<ClientKind>(['SDK v2 modern', 'SDK v1'])('for %s', kind => {
    const clients: TestClient[] = []
    const connect = async (
      capabilities: Record<string, object> = ALL,
      answer = answerAs('Ada'),
    ): Promise<TestClient> => {
      const options = { url: gateway.gateway.url('everything'), capabilities, answer }
      const client = await (kind === 'SDK v1' ? connectV1(options) : connectV2('SDK v2 modern', options))
      clients.push(client)
      return client
    }
    afterAll(() => Promise.all(clients.map(client => client.close())))

    let usual: Promise<TestClient> | undefined
    /** The client that most tests share, and the questions it is asked from now on. */
    const connectOnce = async () => {
      usual ??= connect()
      const client = await usual
      const before = client.asked.length
      const asked = (method: string) => client.asked.slice(before).filter(question => question.method === method)
      return { client, asked }
    }

    /** Calls a tool, and checks that the server was called exactly once. */
    const callOnce = async (client: TestClient, name: string, given?: Record<string, unknown>): Promise<string> => {
      const before = server.sent('tools/call', name).length
      const result = await client.call(name, given)
      expect(server.sent('tools/call', name)).toHaveLength(before + 1)
      expect(result.isError).toBe(false)
      return textOf(result)
    }

    it('answers, and lists everything it has', async () => {
      const { client } = await connectOnce()
      expect(client.serverName).toBe('mcp-servers/everything')
      expect(await callOnce(client, 'echo', { message: 'hello' })).toBe('Echo: hello')
      expect((await client.promptNames()).length).toBeGreaterThan(0)
      expect((await client.resourceUris()).length).toBeGreaterThan(0)
      expect((await client.templates()).length).toBeGreaterThan(0)
    })

    it('has the tools that fit what the client can be asked, in sessions of their own', async () => {
      const before = server.sent('tools/list').length
      expect(await (await connect(ALL)).toolNames()).toHaveLength(17)
      expect(await (await connect({})).toolNames()).toHaveLength(13)
      const sessions = server
        .sent('tools/list')
        .slice(before)
        .map(({ session }) => session)
      expect(new Set(sessions).size).toBe(2)
    })

    it('asks the user to fill in a form', async () => {
      const { client, asked } = await connectOnce()
      expect(await callOnce(client, 'trigger-elicitation-request')).toContain('- Name: Ada')
      expect(asked('elicitation/create')).toMatchObject([{ params: { requestedSchema: { required: ['name'] } } }])
    })

    it('asks the user to open a page', async () => {
      const { client, asked } = await connectOnce()
      const text = await callOnce(client, 'trigger-url-elicitation', { url: 'https://example.com/pay', message: 'Pay' })
      expect(text).toContain('User completed the URL elicitation flow')
      expect(asked('elicitation/create')).toMatchObject([
        { params: { mode: 'url', url: 'https://example.com/pay', message: 'Pay' } },
      ])
    })

    it('asks the model', async () => {
      const { client, asked } = await connectOnce()
      expect(await callOnce(client, 'trigger-sampling-request', { prompt: 'capital?', maxTokens: 10 })).toContain(
        'Paris',
      )
      expect(asked('sampling/createMessage')).toMatchObject([
        { params: { maxTokens: 10, systemPrompt: 'You are a helpful test server.' } },
      ])
    })

    it('asks for the roots, once in a session', async () => {
      const client = await connect({ roots: {} })
      expect(await callOnce(client, 'get-roots-list')).toContain('file:///home/ada')
      expect(await callOnce(client, 'get-roots-list')).toContain('file:///home/ada')
      expect(client.asked.map(({ method }) => method)).toEqual(['roots/list'])
    })

    it('asks the client that made the call, however many call at once', async () => {
      const names = ['Ada', 'Grace', 'Mary']
      const callers = await Promise.all(names.map(name => connect({ elicitation: {} }, answerAs(name))))
      const before = server.sent('tools/call', 'trigger-elicitation-request').length
      const results = await Promise.all(callers.map(client => client.call('trigger-elicitation-request')))
      expect(results.map(result => /- Name: (.*)/.exec(textOf(result))?.[1])).toEqual(names)
      expect(server.sent('tools/call', 'trigger-elicitation-request')).toHaveLength(before + names.length)
    })

    it('reports progress to the client that asked for it, under tokens of its own', async () => {
      const before = server.sent('tools/call').length
      const heard = async (client: TestClient, steps: number): Promise<[number, number | undefined][]> => {
        const found: [number, number | undefined][] = []
        await client.call(
          'trigger-long-running-operation',
          { duration: 0.3, steps },
          { onProgress: ({ progress, total }) => found.push([progress, total]) },
        )
        return found
      }
      const [{ client: one }, other] = [await connectOnce(), await connect()]
      expect(await Promise.all([heard(one, 2), heard(other, 3)])).toEqual([
        [1, 2].map(step => [step, 2]),
        [1, 2, 3].map(step => [step, 3]),
      ])
      const calls = server.sent('tools/call').slice(before)
      const tokens = calls.map(({ session, params }) => JSON.stringify([session, params?._meta]))
      expect(new Set(tokens).size).toBe(2)
    })

    it('gets the cancellation of a call, and answers the next', async () => {
      const { client } = await connectOnce()
      const cancelling = new AbortController()
      const call = client.call(
        'trigger-long-running-operation',
        { duration: 60, steps: 600 },
        { onProgress: () => cancelling.abort(), signal: cancelling.signal },
      )
      await expect(call).rejects.toThrow()
      const cancelled = server
        .sent('tools/call')
        .findLast(({ params }) => params?.name === 'trigger-long-running-operation')
      await server.seen(
        'notifications/cancelled',
        ({ session, params }) => session === cancelled?.session && params?.requestId === cancelled.id,
      )
      expect(await callOnce(client, 'echo', { message: 'still here' })).toBe('Echo: still here')
    })
  })
})
