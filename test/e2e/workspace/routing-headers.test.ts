import { expect, test } from 'vitest'
import { CLIENTS, inCell, serverOf } from '../../matrix/cells.ts'
import type { MatrixServer } from '../../matrix/server.ts'
import { sessionClient } from '../../matrix/session-client.ts'
import { modern, send } from '../../support/raw.ts'
import { amongMany, namesIn } from './many.ts'

const MODERN_OVER_HTTP = CLIENTS[0] as (typeof CLIENTS)[number]
const annotated = (header: string) => ({
  type: 'object',
  properties: { region: { type: 'string', 'x-mcp-header': header } },
})
const tool = (name: string, header: string) => ({ name, description: name, inputSchema: annotated(header) })

test('H20: headers are held against the arguments before anybody is called, and sent on', () =>
  amongMany({ a: serverOf('2026-07-28').start, b: serverOf('2025-06-18').start }, {}, async ({ servers, gateway }) => {
    for (const server of Object.values(servers)) {
      server.tools.set('x', () => ({ content: [] }))
      server.methods.set('tools/list', () => ({ tools: [tool('x', 'Region')] }))
    }
    const call = async (name: string, headers: Record<string, string>) => {
      const request = modern(1, 'tools/call', { name, arguments: { region: 'Hello, 世界' } })
      return send((await gateway()).url(), { ...request, headers: { ...request.headers, ...headers } })
    }
    const encoded = `=?base64?${Buffer.from('Hello, 世界').toString('base64')}?=`
    for (const name of ['a__x', 'b__x', 'a/x']) {
      for (const headers of [{}, { 'mcp-param-region': 'elsewhere' }]) {
        const { status, json } = await call(name, headers as Record<string, string>)
        expect([status, json.error?.code, json.id]).toEqual([400, -32020, 1])
      }
      expect((await call(name, { 'mcp-param-region': encoded, 'mcp-param-own': '1' })).status).toBe(200)
    }
    expect(Object.values(servers).map(({ of }) => of('tools/call').length)).toEqual([2, 1])
    const [arrival] = servers.a?.of('tools/call') ?? []
    expect([
      arrival?.headers['mcp-param-region'],
      arrival?.headers['mcp-param-own'],
      arrival?.headers['mcp-name'],
    ]).toEqual([encoded, '1', 'x'])
  }))

test('E8: for a client that knows no such headers they are made', () =>
  amongMany({ a: serverOf('2026-07-28').start, b: serverOf('2025-06-18').start }, {}, async ({ servers, client }) => {
    servers.a?.tools.set('x', () => ({ content: [] }))
    servers.a?.methods.set('tools/list', () => ({ tools: [tool('x', 'Region')] }))
    const legacy = await client({ open: (url, capabilities) => sessionClient(url, '2025-06-18', capabilities) })
    expect((await legacy.call('tools/call', { name: 'a__x', arguments: { region: 'eu' } })).error).toBeUndefined()
    expect(servers.a?.of('tools/call')[0]?.headers['mcp-param-region']).toBe('eu')
  }))

test('H20: a tool with a broken annotation is not shown where it came over HTTP, and bare where it came over a pipe', () =>
  amongMany(
    { http: serverOf('2026-07-28').start, pipe: serverOf('2026-07-28', 'stdio').start },
    {},
    async ({ servers, client }) => {
      for (const server of Object.values(servers))
        server.methods.set('tools/list', () => ({ tools: [tool('good', 'Region'), tool('bad', 'No Name')] }))
      const { result } = await (await client(MODERN_OVER_HTTP)).call('tools/list')
      expect(namesIn(result, 'tools')).toEqual(['http__good', 'pipe__good', 'pipe__bad'])
      expect(((result?.tools ?? []) as { inputSchema: unknown }[])[2]?.inputSchema).toEqual({
        type: 'object',
        properties: { region: { type: 'string' } },
      })
    },
  ))

test.each([serverOf('2025-06-18'), serverOf('2025-11-25', 'http-sse'), serverOf('2026-07-28', 'stdio')])(
  'H20: headers are checked for a single server of $name, which does not see them',
  kind => {
    let header = 'Region'
    const prepare = (server: MatrixServer): void => {
      server.tools.set('x', () => ({ content: [] }))
      server.methods.set('tools/list', () => ({ tools: [tool('x', header)] }))
    }
    return inCell(MODERN_OVER_HTTP, kind, { prepare }, async ({ server, url }) => {
      const call = async (headers: Record<string, string>, name = 'x') => {
        const request = modern(1, 'tools/call', { name, arguments: { region: 'eu' } })
        const { status, json } = await send(url, { ...request, headers: { ...request.headers, ...headers } })
        return [status, json.error?.code]
      }
      await expect.poll(() => call({})).toEqual([400, -32020]) // once the gateway has read the list
      const before = server.of('tools/call').length
      expect(await call({ 'mcp-param-region': 'us' })).toEqual([400, -32020])
      expect(await call({ 'mcp-param-region': 'us' }, 'server__x')).toEqual([400, -32020])
      expect(server.of('tools/call')).toHaveLength(before)
      expect(await call({ 'mcp-param-region': 'eu' })).toEqual([200, undefined])
      header = 'Place' // the list has changed since the gateway has read it
      expect(await call({ 'mcp-param-place': 'eu' })).toEqual([200, undefined])
      expect(server.of('tools/call')).toHaveLength(before + 2)
    })
  },
)
