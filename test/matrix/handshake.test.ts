import { expect, test } from 'vitest'
import { META } from '../../src/protocol/meta.ts'
import { REVISIONS } from '../../src/protocol/revisions.ts'
import { startTestGateway } from '../support/gateway.ts'
import { modern, send } from '../support/raw.ts'
import { scriptedServer, sendJson } from '../support/scripted-server.ts'
import { clientOf, inCell, SERVERS, serverOf } from './cells.ts'
import type { MatrixServer } from './server.ts'

test('A1: a modern client discovers a legacy server', async () => {
  const probed: string[] = []
  const prepare = ({ arrivals }: MatrixServer): void => {
    const push = arrivals.push.bind(arrivals)
    arrivals.push = (...more) => {
      probed.push(...more.map(({ message, verb }) => message.method ?? String(verb)))
      return push(...more)
    }
  }
  await inCell(clientOf('2026-07-28'), serverOf('2025-11-25'), { prepare }, async ({ client, server }) => {
    const { result } = await client.call('server/discover')
    expect(result).toMatchObject({
      resultType: 'complete',
      ttlMs: 0,
      cacheScope: 'private',
      instructions: 'be kind',
      _meta: { [META.serverInfo]: { name: 'raw-legacy' } },
    })
    expect(result?.supportedVersions).toEqual(['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'])
    expect(result).not.toHaveProperty('serverInfo')
    expect(result?.capabilities).not.toHaveProperty('tasks')
    for (const _ of [1, 2]) await client.call('server/discover')
    expect(probed.filter(method => method === 'server/discover')).toHaveLength(1) // when the gateway looked at it first
    expect(server.of('initialize').map(({ message }) => message.params?.protocolVersion)).toEqual(['2025-11-25'])
    expect(server.of('notifications/initialized')).toHaveLength(1)
    const streams = server.arrivals.filter(({ verb }) => verb === 'GET')
    expect(streams.map(({ headers }) => headers.accept)).toEqual(['text/event-stream'])
  })
})

test('A2: a legacy client shakes hands with a modern server, which never hears of it', async () => {
  await inCell(clientOf('2025-06-18'), serverOf('2026-07-28'), {}, async ({ client, server, url }) => {
    await client.close() // its session would share the request of the next one
    const body = {
      jsonrpc: '2.0',
      id: 1,
      method: 'initialize',
      params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 't', version: '1' } },
    }
    const reply = await send(url, { body })
    expect(reply.headers['mcp-session-id']).toBeDefined()
    expect(reply.json.result).toMatchObject({
      protocolVersion: '2025-06-18',
      serverInfo: { name: 'raw-modern' },
      instructions: 'be kind',
    })
    for (const name of ['resultType', 'ttlMs', 'cacheScope', 'supportedVersions'])
      expect(reply.json.result).not.toHaveProperty(name)
    const capabilities = reply.json.result?.capabilities as { extensions?: object } | undefined
    expect(capabilities?.extensions ?? {}).not.toHaveProperty('io.modelcontextprotocol/tasks')
    const headers = {
      'mcp-session-id': String(reply.headers['mcp-session-id']),
      'mcp-protocol-version': '2025-06-18',
    }
    const listening = server.of('subscriptions/listen').length
    const ready = await send(url, { headers, body: { jsonrpc: '2.0', method: 'notifications/initialized' } })
    expect([ready.status, ready.text]).toEqual([202, ''])
    await server.arrived('subscriptions/listen', listening + 1)
    expect(server.of('server/discover')[0]?.headers).toMatchObject({
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'server/discover',
    })
    expect(server.of('initialize')).toEqual([])
    expect(server.of('notifications/initialized')).toEqual([])
  })
})

test.each(SERVERS)('A6: faults of header and body stop at the front of a $name server', async kind => {
  await inCell(clientOf('2026-07-28'), kind, {}, async ({ server, url }) => {
    server.arrivals.length = 0
    const good = modern(7, 'tools/call', { name: 'echo' })
    const withHeaders = (headers: Record<string, string | undefined>) => ({
      headers: Object.fromEntries(
        Object.entries({ ...good.headers, ...headers }).filter(([, value]) => value !== undefined),
      ) as Record<string, string>,
      body: good.body,
    })
    const meta = good.body.params._meta as Record<string, unknown>
    const withMeta = (changed: Record<string, unknown>) => ({
      headers: good.headers,
      body: { ...good.body, params: { ...good.body.params, _meta: { ...meta, ...changed } } },
    })
    const faults = [
      [withHeaders({ 'mcp-protocol-version': undefined }), 400, -32020],
      [withHeaders({ 'mcp-method': 'tools/list' }), 400, -32020],
      [withHeaders({ 'mcp-name': 'other' }), 400, -32020],
      [withMeta({ [META.clientCapabilities]: undefined }), 400, -32602],
      [
        {
          ...withMeta({ [META.protocolVersion]: '1900-01-01' }),
          headers: { ...good.headers, 'mcp-protocol-version': '1900-01-01' },
        },
        400,
        -32022,
      ],
      [modern(7, 'ping'), 404, -32601],
      [modern(7, 'initialize'), 404, -32601],
    ] as const
    for (const [request, status, code] of faults) {
      const reply = await send(url, request)
      expect([reply.status, reply.json.error?.code, reply.json.id]).toEqual([status, code, 7])
      if (code === -32022)
        expect(reply.json.error?.data).toMatchObject({ supported: [...REVISIONS].reverse(), requested: '1900-01-01' })
    }
    expect(
      server.arrivals.filter(
        ({ message }) => message.method !== undefined && !message.method.startsWith('subscriptions'),
      ),
    ).toEqual([])
  })
})

test('A8: a 401 to the probe is no verdict; the next attempt probes again', async () => {
  let isOpen = false
  const server = await scriptedServer((arrived, response) => {
    if (arrived.method !== 'POST') return void response.writeHead(405).end()
    if (!isOpen) return sendJson(response, { error: 'unauthorized' }, 401)
    const result = {
      resultType: 'complete',
      supportedVersions: ['2026-07-28'],
      capabilities: { tools: {} },
      ttlMs: 0,
      cacheScope: 'private',
      tools: [],
    }
    sendJson(response, { jsonrpc: '2.0', id: arrived.body.id, result })
  })
  const gateway = await startTestGateway(server.url)
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } }
  const opened = await send(gateway.url, { body: { jsonrpc: '2.0', id: 1, method: 'initialize', params } })
  expect(opened.json.result).toMatchObject({ protocolVersion: '2025-11-25' }) // a legacy client is served, too
  const list = async () => (await send(gateway.url, modern(1, 'tools/list'))).json.result?.tools
  expect(await list()).toMatchObject([{ name: 'login' }]) // the caller is asked to log in meanwhile
  expect(server.of('initialize')).toEqual([])
  isOpen = true
  await expect.poll(list).toEqual([])
  expect(server.of('initialize')).toEqual([])
  await gateway.close()
  await server.close()
})
