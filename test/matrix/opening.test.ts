import { expect, test } from 'vitest'
import { META } from '../../src/protocol/meta.ts'
import { openRawChannel } from '../support/channel.ts'
import { connectV2 } from '../support/client-v2.ts'
import { send } from '../support/raw.ts'
import type { sseServer } from '../support/sse-server.ts'
import { CLIENTS, clientOf, gatewayBefore, inCell, serverOf } from './cells.ts'
import type { pipeServer } from './pipe-server.ts'
import type { Arrival } from './server.ts'

const CLIENT_INFO = { name: 'test', version: '1' }
const MODERN_WORDS =
  /resultType|ttlMs|cacheScope|inputRe|requestState|supportedVersions|subscriptions\/|io\.modelcontextprotocol/
const metaOf = ({ message }: Arrival) => (message.params?._meta ?? {}) as Record<string, unknown>
const initialize = (protocolVersion: string, capabilities: object = {}) => ({
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion, capabilities, clientInfo: CLIENT_INFO },
})

test('A3: a 2024-11-05 client opens its channel at /mcp; the modern server sees complete envelopes', async () => {
  await inCell(clientOf('2024-11-05', 'http-sse'), serverOf('2026-07-28'), {}, async ({ server, url }) => {
    server.tools.set('t', () => ({ content: [] }))
    server.arrivals.length = 0
    const channel = await openRawChannel(url)
    const { event, data: endpoint } = (await channel.next()) ?? { event: 'none', data: '' }
    expect([channel.status, event, endpoint]).toEqual([200, 'endpoint', expect.stringMatching(/^\/[^/]/)])
    const post = async (message: { id?: number }): Promise<Record<string, unknown>> => {
      const reply = await send(new URL(endpoint, url).href, { body: message })
      expect([reply.status, reply.headers['mcp-session-id']]).toEqual([202, undefined])
      return message.id === undefined ? {} : JSON.parse((await channel.nextOf('message')).data)
    }
    expect(await post(initialize('2024-11-05'))).toMatchObject({ id: 1, result: { protocolVersion: '2024-11-05' } })
    await post({ jsonrpc: '2.0', method: 'notifications/initialized' } as object)
    const params = { name: 't', arguments: { a: 1 } }
    const answer = await post({ jsonrpc: '2.0', id: 2, method: 'tools/call', params } as { id: number })
    expect(answer).toEqual({ jsonrpc: '2.0', id: 2, result: { content: [] } })
    expect(channel.text()).not.toMatch(MODERN_WORDS)
    channel.close()

    const requests = server.arrivals.filter(({ message }) => message.id !== undefined)
    expect(requests.map(({ message }) => message.method)).toContain('tools/call')
    for (const arrival of requests) {
      expect(arrival.verb).toBe('POST')
      expect(metaOf(arrival)).toMatchObject({
        [META.protocolVersion]: '2026-07-28',
        [META.clientInfo]: CLIENT_INFO,
        [META.clientCapabilities]: {},
      })
      const { method } = arrival.message
      expect(arrival.headers).toMatchObject({ 'mcp-protocol-version': '2026-07-28', 'mcp-method': method })
      if (method === 'tools/call') expect(arrival.headers['mcp-name']).toBe('t')
    }
    expect(server.of('initialize')).toEqual([])
  })
})

test('A4: a whole 2025-11-25 session on a pipe before a modern pipe: each hears only its own language', async () => {
  await inCell(
    clientOf('2025-11-25', 'stdio'),
    serverOf('2026-07-28', 'stdio'),
    { capabilities: { elicitation: {}, roots: { listChanged: true } } },
    async ({ client, server }) => {
      server.tools.set('ask', async call => {
        call.progress(1)
        call.log('info', 'asking')
        await call.ask('n', 'elicitation/create', { message: 'Name?', requestedSchema: { type: 'object' } })
        return { content: [], structuredContent: [1] }
      })
      const errors: unknown[] = []
      const say = async (method: string, params: Record<string, unknown> = {}, options = {}) => {
        const outcome = await client.call(method, params, options)
        if (outcome.error) errors.push([method, outcome.error])
        return outcome
      }
      await say('ping')
      for (const list of ['tools/list', 'prompts/list', 'resources/list', 'resources/templates/list']) await say(list)
      await say('logging/setLevel', { level: 'debug' })
      await say('resources/subscribe', { uri: 'test://a' })
      server.say('notifications/resources/updated', { uri: 'test://a' })
      await client.heard('notifications/resources/updated')
      await client.notify('notifications/roots/list_changed')
      const answer = () => ({ action: 'accept', content: {} })
      const { asked, notices, result } = await say(
        'tools/call',
        { name: 'ask' },
        { answer, meta: { progressToken: 'p' } },
      )
      expect(asked.map(({ key, method }) => [key, method])).toEqual([
        [expect.stringMatching(/^gw-/), 'elicitation/create'],
      ])
      expect(notices.map(({ method }) => method)).toContain('notifications/message')
      expect(result).toEqual({ content: [], structuredContent: { result: [1] } })
      await say('resources/unsubscribe', { uri: 'test://a' })
      expect(errors).toEqual([])
      for (const text of client.texts) expect(text).not.toMatch(MODERN_WORDS)

      expect(server.arrivals.filter(({ message }) => message.method === undefined)).toEqual([])
      // One process was asked whether it takes a handshake, and does not.
      expect(server.of('initialize')).toHaveLength(1)
      const arrivals = server.arrivals.filter(({ message }) => message.method !== 'initialize')
      for (const arrival of arrivals.filter(({ message }) => message.id !== undefined))
        expect(metaOf(arrival)).toMatchObject({
          [META.protocolVersion]: '2026-07-28',
          [META.clientInfo]: expect.anything(),
          [META.clientCapabilities]: expect.anything(),
        })
      const methods = new Set(arrivals.map(({ message }) => message.method))
      for (const legacy of ['notifications/initialized', 'ping', 'logging/setLevel', 'resources/subscribe'])
        expect(methods).not.toContain(legacy)
    },
  )
})

test('A5: a modern client on a pipe lists the tools of a 2024-11-05 channel', async () => {
  const server = (await serverOf('2024-11-05', 'http-sse').start()) as Awaited<ReturnType<typeof sseServer>>
  server.tools.set('t', () => ({ content: [] }))
  const gateway = await gatewayBefore(server.config)
  const client = await clientOf('2026-07-28', 'stdio').open(gateway.url(), {})
  const { result } = await client.call('tools/list')
  expect(result).toMatchObject({
    resultType: 'complete',
    ttlMs: 0,
    cacheScope: 'private',
    tools: [{ name: 't', description: 't', inputSchema: { type: 'object' } }],
  })
  expect(server.channels.size).toBeGreaterThan(0) // opened by GET; every arrival came to the address it named
  const methods = server.arrivals.map(({ message }) => message.method)
  expect(methods.indexOf('initialize')).toBeGreaterThanOrEqual(0)
  expect(methods.indexOf('tools/list')).toBeGreaterThan(methods.indexOf('initialize'))
  expect(server.of('initialize')[0]?.message.params?.protocolVersion).toBe('2025-11-25')
  for (const { text } of server.of('tools/list')) expect(text).not.toMatch(MODERN_WORDS)
  await client.close()
  await gateway.close()
  await server.close()
})

test('A7: a client of both eras finds the gateway modern before a server that is not', async () => {
  await inCell(clientOf('2026-07-28'), serverOf('2025-11-25'), {}, async ({ server, url }) => {
    server.tools.set('t', () => ({ content: [] }))
    const client = await connectV2('SDK v2 auto', { url })
    expect([client.era, await client.toolNames()]).toEqual(['modern', ['t']])
    expect(client.requests.map(({ method, headers }) => [method, headers.get('mcp-protocol-version')])).toEqual(
      client.requests.map(() => ['POST', '2026-07-28']),
    )
    expect(client.requests.every(({ headers }) => headers.get('mcp-method') !== 'initialize')).toBe(true)
    await client.close()
    expect(server.of('initialize').map(({ message }) => message.params?.protocolVersion)).toContain('2025-11-25')
    expect(server.of('tools/list').every(({ text }) => !MODERN_WORDS.test(text))).toBe(true)
  })
})

test.each(CLIENTS)('A9: a server that quits when probed is started again and initialized ($name)', async kind => {
  const server = (await serverOf('2025-06-18', 'stdio').start()) as Awaited<ReturnType<typeof pipeServer>>
  server.tools.set('t', () => ({ content: [] }))
  server.methods.set('server/discover', () => {
    for (const socket of server.processes) socket.destroy()
    return {}
  })
  const gateway = await gatewayBefore(server.config)
  const client = await kind.open(gateway.url(), {})
  const { result, error } = await client.call('tools/list')
  expect([error, (result?.tools as { name: string }[] | undefined)?.map(({ name }) => name)]).toEqual([
    undefined,
    ['t'],
  ])
  const heard = (process: number) =>
    server.arrivals.filter(arrival => arrival.process === process).map(({ message }) => message.method)
  expect(heard(1)).toEqual(['server/discover'])
  expect(heard(2)[0]).toBe('initialize')
  expect(server.of('server/discover')).toHaveLength(1)
  await client.close()
  await gateway.close()
  await server.close()
})
