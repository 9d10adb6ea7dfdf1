import { expect, test } from 'vitest'
import { META } from '../../src/protocol/meta.ts'
import { scriptedServer, sendJson } from '../../src/upstreams/scripted-server.fixture.ts'
import { startTestGateway } from '../support/gateway.ts'
import { modern, send } from '../support/raw.ts'
import { clientOf, inCell, serverOf } from './cells.ts'

test('A1: a modern client discovers a legacy server', async () => {
  await inCell(clientOf('2026-07-28'), serverOf('2025-11-25'), {}, async ({ client, server }) => {
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
    expect(server.of('server/discover')).toEqual([]) // probed once, when the gateway looked at it first
    expect(server.of('initialize')[0]?.message.params).toMatchObject({ protocolVersion: '2025-11-25' })
    expect(server.of('notifications/initialized')).toHaveLength(1)
  })
})

test('A2: a legacy client shakes hands with a modern server, which never hears of it', async () => {
  await inCell(clientOf('2025-06-18'), serverOf('2026-07-28'), {}, async ({ server, url }) => {
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
    await server.arrived('subscriptions/listen')
    expect(server.of('server/discover')[0]?.headers).toMatchObject({
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'server/discover',
    })
    expect(server.of('initialize')).toEqual([])
    expect(server.of('notifications/initialized')).toEqual([])
  })
})

test.each(['2026-07-28', '2025-11-25'] as const)(
  'A6: faults of header and body stop at the front of a %s server',
  async revision => {
    await inCell(clientOf('2026-07-28'), serverOf(revision), {}, async ({ server, url }) => {
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
      }
      expect(
        server.arrivals.filter(
          ({ message }) => message.method !== undefined && !message.method.startsWith('subscriptions'),
        ),
      ).toEqual([])
    })
  },
)

test('A8: a 401 to the probe is no verdict; the next attempt probes again', async () => {
  let isOpen = false
  const server = await scriptedServer((arrived, response) => {
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
  const initialize = {
    jsonrpc: '2.0',
    id: 1,
    method: 'initialize',
    params: { protocolVersion: '2025-11-25', capabilities: {} },
  }
  const refused = await send(gateway.url, { body: initialize })
  expect(refused.json.error).toMatchObject({ code: -32603, data: { reason: 'upstream_auth' } })
  expect(server.of('initialize')).toEqual([])
  isOpen = true
  await expect
    .poll(async () => (await send(gateway.url, { body: initialize })).json.result?.protocolVersion)
    .toBe('2025-11-25')
  expect(server.of('initialize')).toEqual([])
  await gateway.close()
  await server.close()
})
