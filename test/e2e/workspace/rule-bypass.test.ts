import { describe, expect, test } from 'vitest'
import { EVERYTHING, type Policy } from '../../../src/protocol/policy.ts'
import { serverOf } from '../../matrix/cells.ts'
import type { MatrixServer } from '../../matrix/server.ts'
import { send } from '../../support/raw.ts'
import { KINDS, MEMBERS, text } from './every-kind.ts'
import { amongMany, type Many } from './many.ts'

const HIDDEN = { hidden: true, fixed: {}, defaults: {} }
const FIXED = { hidden: false, fixed: { repo: 'mine' }, defaults: {} }
const POLICY: Policy = { ...EVERYTHING, deny: { tools: ['*/delete*'], resources: ['file:///secret/*'] } }

const RULES = {
  'a policy': { policy: POLICY },
  'an overlay': { overlays: new Map([['only', new Map([['delete_everything', HIDDEN]])]]) },
}

const furnish = (server: MatrixServer): void => {
  for (const name of ['read', 'delete_everything', 'open']) server.tools.set(name, () => text(name))
  for (const method of ['acme/run', 'acme/watch']) server.methods.set(method, () => ({ ran: true }))
}

const only = (server = serverOf('2025-06-18', 'stdio').start) => ({ only: server })

/** Waits until the server has read everything that was sent before. */
const settle = async ({ client, server }: { client: Awaited<ReturnType<Many['client']>>; server: MatrixServer }) => {
  const before = server.of('tools/call').length
  expect((await client.call('tools/call', { name: 'read', arguments: { last: true } })).error).toBeUndefined()
  return server.of('tools/call').slice(0, before + 1)
}

describe.each(Object.entries(RULES))('with %s, a server never reads', (_rule, rules) => {
  test.each(KINDS)('a hidden tool called without an id, of $name', kind =>
    amongMany(only(), { rules }, async ({ servers, client: open }) => {
      const server = servers.only as MatrixServer
      furnish(server)
      const client = await open(kind)
      await client.call('tools/call', { name: 'read' })
      await client.notify('tools/call', { name: 'delete_everything', arguments: {} })
      await client.notify('acme/note', { n: 1 })
      await client.notify('acme/note', { tool: 'delete_everything' })
      await server.arrived('acme/note')
      const called = await settle({ client, server })
      expect(called.map(({ message }) => message.params?.name)).toEqual(['read', 'read'])
      expect(server.of('acme/note').map(({ message }) => message.params?.n)).toEqual([1])
    }),
  )

  test.each([
    { name: 'delete_everything' },
    { Name: 'delete_everything' },
    { tool_name: 'delete_everything' },
    { calls: [{ name: 'read' }, { name: 'delete_everything', arguments: {} }] },
    { ref: { type: 'ref/tool', name: 'delete_everything' } },
    { tools: ['read', 'delete_everything'] },
  ])('an extension method that names a hidden tool: %j', async params =>
    amongMany(only(), { rules }, async ({ servers, client: open }) => {
      const server = servers.only as MatrixServer
      furnish(server)
      const client = await open(KINDS[1] as (typeof KINDS)[number])
      expect((await client.call('acme/run', params)).error).toMatchObject({
        code: -32602,
        message: 'Unknown tool: delete_everything',
      })
      expect(server.of('acme/run')).toEqual([])
      const allowed = { name: 'read', arguments: { name: 'delete_everything' }, user: { name: 'Bob' } }
      expect((await client.call('acme/run', allowed)).result).toMatchObject({ ran: true })
    }),
  )
})

test.each([
  { uri: 'file:///secret/1' },
  { uris: ['file:///open/1', 'file:/secret/1'] },
  { resource_uri: 'FILE:///secret/1' },
])('an extension method that names a hidden resource is answered as if there were none: %j', params =>
  amongMany(only(), { rules: { policy: POLICY } }, async ({ servers, client: open }) => {
    const server = servers.only as MatrixServer
    furnish(server)
    const client = await open(KINDS[0] as (typeof KINDS)[number])
    expect((await client.call('acme/watch', params)).error).toMatchObject({
      code: -32602,
      message: expect.stringMatching(/^Unknown resource: /),
    })
    expect((await client.call('acme/watch', { uri: 'file:///open/1' })).result).toMatchObject({ ran: true })
    expect(server.of('acme/watch')).toHaveLength(1)
  }),
)

test('among several servers an extension method is judged too, whichever way it finds its server', () =>
  amongMany(
    { modern: MEMBERS.modern, legacy: MEMBERS.legacy },
    { rules: { policy: POLICY } },
    async ({ servers, client: open }) => {
      for (const server of Object.values(servers)) furnish(server)
      const client = await open(KINDS[0] as (typeof KINDS)[number])
      const params = { name: 'legacy__read', after: { tool: 'delete_everything' } }
      expect((await client.call('acme/run', params)).error).toMatchObject({ code: -32602 })
      expect((await client.call('acme/run', { name: 'legacy__read' })).result).toMatchObject({ ran: true })
      expect(servers.legacy?.of('acme/run')).toHaveLength(1)
    },
  ))

test('a tool with fixed arguments is not reached by a method that would not fill them in', () =>
  amongMany(
    only(),
    { rules: { overlays: new Map([['only', new Map([['open', FIXED]])]]) } },
    async ({ servers, client: open }) => {
      furnish(servers.only as MatrixServer)
      const client = await open(KINDS[0] as (typeof KINDS)[number])
      const params = { name: 'open', arguments: { repo: 'theirs' } }
      expect((await client.call('acme/run', params)).error).toMatchObject({ code: -32602 })
      expect((await client.call('tools/call', params)).error).toBeUndefined()
      expect(servers.only?.of('tools/call')[0]?.message.params?.arguments).toEqual({ repo: 'mine' })
    },
  ))

describe('a member that some servers take for one that is judged is refused', () => {
  const initialize = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'c', version: '1' } }
  const body = (method: string, params: string) => `{"jsonrpc":"2.0","id":1,"method":"${method}","params":${params}}`

  test.each([
    ['tools/call', '{"name":"read","Name":"delete_everything"}', 'Name'],
    ['tools/call', '{"name":"delete_everything","name":"read"}', 'name'],
    ['tools/call', '{"name":"read","name\\u0000":"delete_everything"}', 'name\\u0000'],
    ['tools/call', '{"name":"open","Arguments":{"repo":"theirs"}}', 'Arguments'],
    ['tools/call', '{"name":"open","arguments":{"Repo":"theirs"}}', 'Repo'],
    ['tools/call', '{"name":"open","arguments":{"repo":"a","repo":"b"}}', 'repo'],
    ['resources/read', '{"uri":"file:///open","URI":"file:///secret/1"}', 'URI'],
    ['resources/read', '{"uri":"file:///open","ur\u0131":"file:///secret/1"}', 'urı'],
    [
      'completion/complete',
      '{"ref":{"type":"ref/prompt","name":"a","NAME":"b"},"argument":{"name":"x","value":""}}',
      'NAME',
    ],
    ['acme/run', '{"name":"read","Name":"delete_everything"}', 'Name'],
    ['acme/run', '{"uri":"file:///open","Uri":"file:///secret/1"}', 'Uri'],
  ])('%s %s', (method, params, rival) =>
    amongMany(
      only(serverOf('2025-06-18').start),
      { rules: { policy: POLICY, overlays: new Map([['only', new Map([['open', FIXED]])]]) } },
      async ({ servers, gateway }) => {
        const server = servers.only as MatrixServer
        furnish(server)
        const { headers } = await send((await gateway()).url(), {
          body: JSON.parse(body('initialize', JSON.stringify(initialize))),
        })
        const session = { 'mcp-session-id': String(headers['mcp-session-id']) }
        const { json } = await send((await gateway()).url(), { headers: session, body: body(method, params) })
        expect(json.error).toMatchObject({ code: -32602, message: expect.stringContaining(rival) })
        expect(server.of(method)).toEqual([])
      },
    ),
  )
})
