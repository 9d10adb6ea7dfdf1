import { expect } from 'vitest'
import { isModern } from '../../../src/protocol/revisions.ts'
import { ToolError } from '../../matrix/server.ts'
import { everyKind, text } from './every-kind.ts'
import { namesIn } from './many.ts'

const link = (uri: string) => ({ content: [{ type: 'resource_link', uri, name: 'n' }] })
const notFound = (uri: unknown) => new ToolError(-32602, 'not here', { uri })

everyKind(
  'H13, H15: a URI that two servers have is told apart in lists, reads, results and updates',
  async ({ servers }, client) => {
    const listed = namesIn((await client.call('resources/list')).result, 'resources')
    expect(listed).toEqual(['test://a', 'x-mcp-legacy+test://a', 'x-mcp-oldest+test://a'])
    const { result } = await client.call('resources/read', { uri: 'x-mcp-legacy+test://a' })
    expect(namesIn(result, 'contents')).toEqual(['x-mcp-legacy+test://a'])
    expect(servers.legacy?.of('resources/read').map(({ message }) => message.params?.uri)).toEqual(['test://a'])
    servers.legacy?.tools.set('embed', () => ({
      content: [{ type: 'resource', resource: { uri: 'test://a', text: 'test://a' } }],
    }))
    expect(
      (await client.call('tools/call', { name: 'legacy__embed', arguments: { of: 'x-mcp-legacy+test://a' } })).result
        ?.content,
    ).toEqual([{ type: 'resource', resource: { uri: 'x-mcp-legacy+test://a', text: 'test://a' } }])
    expect(servers.legacy?.of('tools/call')[0]?.message.params?.arguments).toEqual({ of: 'test://a' })
    const watched = 'x-mcp-legacy+test://a'
    if (isModern(client.revision)) await client.listen([watched])
    else {
      await client.listen()
      expect((await client.call('resources/subscribe', { uri: watched })).error).toBeUndefined()
    }
    await servers.legacy?.arrived('resources/subscribe')
    servers.legacy?.say('notifications/resources/updated', { uri: 'test://a' })
    expect((await client.heard('notifications/resources/updated')).params).toMatchObject({ uri: watched })
  },
)

everyKind(
  'H14: a link is read where it came from, a template tells whose a URI is, and a stranger is asked for',
  async ({ servers }, client) => {
    const read = async (uri: string) => {
      for (const { arrivals } of Object.values(servers)) arrivals.length = 0
      const { result, error } = await client.call('resources/read', { uri })
      const asked = Object.entries(servers).filter(([, server]) => server.of('resources/read').length > 0)
      return { uris: namesIn(result, 'contents'), code: error?.code, asked: asked.map(([name]) => name) }
    }
    for (const [name, server] of Object.entries(servers)) {
      server.tools.set('find', () => link(`found://${name}`))
      server.methods.set('resources/templates/list', () => ({
        resourceTemplates: [{ uriTemplate: `${name}://{id}`, name }],
      }))
      server.methods.set('resources/read', ({ uri }) => {
        if (uri === 'nobody://x' || (uri === 'hidden://x' && name !== 'oldest')) throw notFound(uri)
        return { contents: [{ uri, text: name }] }
      })
    }
    await client.call('tools/call', { name: 'legacy__find', arguments: {} })
    // The first revisions have no links, only words about them: there the members are asked in turn.
    if (client.revision !== '2024-11-05')
      expect(await read('found://legacy')).toEqual({ uris: ['found://legacy'], code: undefined, asked: ['legacy'] })
    expect(await read('oldest://1')).toEqual({ uris: ['oldest://1'], code: undefined, asked: ['oldest'] })
    expect(await read('hidden://x')).toEqual({
      uris: ['hidden://x'],
      code: undefined,
      asked: ['modern', 'legacy', 'oldest'],
    })
    expect(await read('hidden://x')).toMatchObject({ asked: ['oldest'] })
    expect(await read('nobody://x')).toMatchObject({ uris: [], code: isModern(client.revision) ? -32602 : -32002 })
    expect(await read('nobody://x')).toMatchObject({ asked: [] })
  },
)

everyKind('H16: completions go to the owner of the prompt or template', async ({ servers }, client) => {
  servers.oldest?.methods.delete('completion/complete')
  servers.oldest?.methods.set('prompts/list', () => ({ prompts: [{ name: 'q' }] }))
  const complete = async (ref: object) =>
    (await client.call('completion/complete', { ref, argument: { name: 'n', value: '' } })).result?.completion
  expect(await complete({ type: 'ref/prompt', name: 'legacy__p' })).toMatchObject({ values: ['x'] })
  expect(servers.legacy?.of('completion/complete')[0]?.message.params?.ref).toEqual({ type: 'ref/prompt', name: 'p' })
  expect(await complete({ type: 'ref/prompt', name: 'q' })).toEqual({ values: [], hasMore: false })
})

const UI = 'ui://board/main'

everyKind(
  'E7, H24: an app is read by its URI, and calls the tools of its own server by their own names',
  async ({ servers }, client) => {
    for (const [name, server] of Object.entries(servers)) {
      server.tools.set('refresh', () => text(name))
      server.methods.set('tools/list', () => ({
        tools: [
          { name: 'refresh', inputSchema: { type: 'object' }, _meta: { ui: { resourceUri: UI, visibility: ['app'] } } },
        ],
      }))
      server.methods.set('resources/list', () => ({ resources: [{ uri: UI, name: 'main' }] }))
    }
    const { result } = await client.call('tools/list')
    const links = ((result?.tools ?? []) as { _meta?: { ui?: { resourceUri?: string; visibility?: string[] } } }[]).map(
      ({ _meta }) => _meta?.ui,
    )
    expect(links.map(ui => ui?.resourceUri)).toEqual([UI, 'ui://legacy.gw/board/main', 'ui://oldest.gw/board/main'])
    expect(links.map(ui => ui?.visibility)).toEqual([['app'], ['app'], ['app']])
    for (const [at, name] of ['modern', 'legacy', 'oldest'].entries()) {
      const uri = links[at]?.resourceUri ?? ''
      expect(namesIn((await client.call('resources/read', { uri })).result, 'contents')).toEqual([uri])
      expect(servers[name]?.of('resources/read').at(-1)?.message.params?.uri).toBe(UI)
      expect((await client.call('tools/call', { name: 'refresh', arguments: {} })).result?.content).toEqual(
        text(name).content,
      )
    }
  },
)
