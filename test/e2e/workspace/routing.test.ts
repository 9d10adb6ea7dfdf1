import { describe, expect, test } from 'vitest'
import { EVERYTHING } from '../../../src/protocol/policy.ts'
import { isModern } from '../../../src/protocol/revisions.ts'
import { CLIENTS } from '../../matrix/cells.ts'
import { everyKind, MEMBERS, text } from './every-kind.ts'
import { amongMany, namesIn } from './many.ts'

everyKind(
  'H17: a tool is called by any form of its name and reaches its server by its own',
  async ({ servers }, client) => {
    for (const [name, server] of Object.entries(servers)) server.tools.set('who', () => text(name))
    for (const server of ['modern', 'legacy', 'oldest'])
      for (const name of [`${server}__who`, `${server}/who`]) {
        const { result, error } = await client.call('tools/call', { name, arguments: { n: 1 } })
        expect([result?.content, error]).toEqual([text(server).content, undefined])
        expect(servers[server]?.of('tools/call').at(-1)?.message.params).toMatchObject({
          name: 'who',
          arguments: { n: 1 },
        })
      }
    const ambiguous = await client.call('tools/call', { name: 'who' })
    expect(ambiguous.error).toMatchObject({
      code: -32602,
      data: { candidates: ['modern__who', 'legacy__who', 'oldest__who'] },
    })
  },
)

everyKind(
  'E9: a tool with a name beyond ASCII is called by a plain one, and its server reads its own',
  async ({ servers }, client) => {
    servers.modern?.tools.set('données', () => text('ok'))
    const [name] = namesIn((await client.call('tools/list')).result, 'tools') as string[]
    expect(name).toMatch(/^modern__[0-9a-f]{8}_donn_es$/)
    expect((await client.call('tools/call', { name, arguments: {} })).result?.content).toEqual(text('ok').content)
    const arrival = await servers.modern?.arrived('tools/call')
    expect(arrival?.message.params?.name).toBe('données')
    expect(arrival?.headers['mcp-name']).toBe(`=?base64?${Buffer.from('données').toString('base64')}?=`)
  },
)

everyKind(
  'H21: an unknown method is for whoever has the thing it names, or for nobody',
  async ({ servers }, client) => {
    servers.legacy?.tools.set('only', () => text('x'))
    servers.legacy?.methods.set('acme/do', () => ({ done: true }))
    expect((await client.call('acme/do', { name: 'legacy__only', more: 1 })).result).toMatchObject({ done: true })
    expect(servers.legacy?.of('acme/do')[0]?.message.params).toMatchObject({ name: 'only', more: 1 })
    expect((await client.call('acme/do', { more: 1 })).error).toMatchObject({ code: -32601 })
  },
)

describe('H26: a question says which server asks', () => {
  const kinds = CLIENTS.filter(({ name }) =>
    ['2026-07-28 stateless', '2025-06-18 streamable', '2025-11-25 stdio'].includes(name),
  )
  test.each(kinds)('$name', kind =>
    amongMany({ modern: MEMBERS.modern, legacy: MEMBERS.legacy }, {}, async ({ servers, client }) => {
      const requestedSchema = { type: 'object', properties: { ok: { type: 'boolean' } } }
      for (const server of Object.values(servers))
        server.tools.set('ask', async call => {
          const { content } = await call.ask('q', 'elicitation/create', { message: 'Sure?', requestedSchema })
          return { structuredContent: content as object, content: [] }
        })
      const asking = await client(kind, { elicitation: {} })
      for (const name of ['modern', 'legacy']) {
        const { result, asked } = await asking.call(
          'tools/call',
          { name: `${name}__ask`, arguments: {} },
          { answer: () => ({ action: 'accept', content: { ok: true } }) },
        )
        expect(asked.map(({ params }) => params.message)).toEqual([`[${name}] Sure?`])
        expect(result?.structuredContent).toEqual({ ok: true })
      }
    }),
  )
})

const denied = {
  rules: { policy: { ...EVERYTHING, deny: { tools: ['*/secret'], prompts: ['*/p'], resources: ['test://*'] } } },
}

everyKind(
  'H42: what the policy hides is unknown under every name, and no server hears of it',
  async ({ servers }, client) => {
    for (const server of Object.values(servers)) {
      server.tools.set('secret', () => text('leaked'))
      server.tools.set('open', () => text('ok'))
    }
    expect(namesIn((await client.call('tools/list')).result, 'tools')).toEqual([
      'modern__open',
      'legacy__open',
      'oldest__open',
    ])
    expect([
      namesIn((await client.call('prompts/list')).result, 'prompts'),
      namesIn((await client.call('resources/list')).result, 'resources'),
    ]).toEqual([[], []])
    for (const name of ['modern__secret', 'legacy/secret', 'secret', 'oldest__secret'])
      expect((await client.call('tools/call', { name, arguments: {} })).error).toEqual({
        code: -32602,
        message: `Unknown tool: ${name}`,
      })
    for (const name of ['legacy__p', 'modern/p'])
      expect((await client.call('prompts/get', { name })).error).toEqual({
        code: -32602,
        message: `Unknown prompt: ${name}`,
      })
    for (const uri of ['test://a', 'x-mcp-legacy+test://a'])
      expect((await client.call('resources/read', { uri })).error?.message).toBe(`Unknown resource: ${uri}`)
    for (const { of } of Object.values(servers))
      for (const method of ['tools/call', 'prompts/get', 'resources/read']) expect(of(method)).toEqual([])
  },
  denied,
)

const overlay = {
  hidden: false,
  name: 'open_issue',
  description: 'Opens',
  fixed: { repo: 'mine' },
  defaults: { label: 'bug' },
}
const overlaid = new Map(['modern', 'legacy', 'oldest'].map(server => [server, new Map([['create', overlay]])]))

everyKind(
  'overlays: shown under another name, called with fixed arguments and defaults',
  async ({ servers }, client) => {
    const inputSchema = {
      type: 'object',
      properties: {
        title: { type: 'string' },
        repo: { type: 'string', 'x-mcp-header': 'Repo' },
        label: { type: 'string' },
      },
      required: ['title', 'repo', 'label'],
    }
    for (const server of Object.values(servers)) {
      server.tools.set('create', () => text('ok'))
      server.methods.set('tools/list', () => ({ tools: [{ name: 'create', description: 'own', inputSchema }] }))
    }
    const { result } = await client.call('tools/list')
    expect(result?.tools).toMatchObject(
      ['modern', 'legacy', 'oldest'].map(server => ({ name: `${server}__open_issue`, description: 'Opens' })),
    )
    expect(((result?.tools ?? []) as { inputSchema: object }[])[0]?.inputSchema).toEqual({
      type: 'object',
      properties: { title: { type: 'string' }, label: { type: 'string', default: 'bug' } },
      required: ['title'],
    })
    for (const [name, server] of Object.entries(servers)) {
      const params = { name: `${name}__open_issue`, arguments: { title: 't', repo: 'theirs' } }
      expect((await client.call('tools/call', params)).result?.content).toEqual(text('ok').content)
      const arrival = server.of('tools/call')[0]
      expect(arrival?.message.params).toMatchObject({
        name: 'create',
        arguments: { title: 't', repo: 'mine', label: 'bug' },
      })
      if (isModern(server.revision))
        expect([arrival?.headers['mcp-name'], arrival?.headers['mcp-param-repo']]).toEqual(['create', 'mine'])
    }
  },
  { rules: { overlays: overlaid } },
)
