import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Json, type Plain } from '../../wire/json/json.ts'
import { aliasFor, originalOf, rewriteTexts, rewriteTool, rewriteUris } from './uris.ts'

describe('H13: aliases', () => {
  test.each([
    ['file:///a b', 'x-mcp-b+file:///a b'],
    ['demo://x/{id}{?q}', 'x-mcp-b+demo://x/{id}{?q}'],
    ['ui://app/main.html', 'ui://b.gw/app/main.html'],
  ])('%s of b is %s', (uri, alias) => {
    expect(aliasFor('b', uri)).toBe(alias)
    expect(originalOf(alias)).toEqual({ namespace: 'b', uri })
  })

  test('every alias is read back without any state', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[a-z0-9-]{1,20}$/), fc.string(), (namespace, any) => {
        for (const uri of [any, `file:///${any}`, `ui://${any}`])
          expect(originalOf(aliasFor(namespace, uri))).toEqual({ namespace, uri })
      }),
    )
  })

  test.each(['file:///x', 'ui://app/x', 'x-mcp-', 'x-mcp-a:b', 'ui://UP.gw/x', 'https://b.gw/x'])('%s is none', uri => {
    expect(originalOf(uri)).toBeUndefined()
  })
})

const toB = (uri: string) => (uri.startsWith('same:') ? `x-mcp-b+${uri}` : undefined)

describe('H15: URIs inside results', () => {
  test.each<[string, Plain, Plain]>([
    [
      'tools/call',
      {
        content: [
          { type: 'resource_link', uri: 'same:1', name: 'n' },
          { type: 'resource', resource: { uri: 'same:2', text: 'same:2' } },
          { type: 'text', text: 'same:3', uri: 'same:3' },
        ],
        structuredContent: { uri: 'same:4' },
        _meta: { ui: { resourceUri: 'same:5' }, 'ui/resourceUri': 'same:6' },
      },
      {
        content: [
          { type: 'resource_link', uri: 'x-mcp-b+same:1', name: 'n' },
          { type: 'resource', resource: { uri: 'x-mcp-b+same:2', text: 'same:2' } },
          { type: 'text', text: 'same:3', uri: 'same:3' },
        ],
        structuredContent: { uri: 'same:4' },
        _meta: { ui: { resourceUri: 'x-mcp-b+same:5' }, 'ui/resourceUri': 'x-mcp-b+same:6' },
      },
    ],
    [
      'prompts/get',
      { messages: [{ role: 'user', content: { type: 'resource', resource: { uri: 'same:1' } } }] },
      { messages: [{ role: 'user', content: { type: 'resource', resource: { uri: 'x-mcp-b+same:1' } } }] },
    ],
    [
      'resources/read',
      { contents: [{ uri: 'same:1' }, { uri: 'o:1' }] },
      { contents: [{ uri: 'x-mcp-b+same:1' }, { uri: 'o:1' }] },
    ],
    ['notifications/resources/updated', { uri: 'same:1' }, { uri: 'x-mcp-b+same:1' }],
    ['acme/do', { uri: 'same:1' }, { uri: 'same:1' }],
    ['tools/call', { content: 'same:1', _meta: null }, { content: 'same:1', _meta: null }],
  ])('%s', (method, before, after) => {
    expect(rewriteUris(method, Json.of(before), toB).toValue()).toEqual(after)
  })

  test('where nothing changes it is the same value', () => {
    const result = Json.of({ content: [{ type: 'resource_link', uri: 'o:1' }], _meta: { ui: { resourceUri: 'o:2' } } })
    expect(rewriteUris('tools/call', result, toB)).toBe(result)
  })

  test('a tool that opens an app', () => {
    expect(
      rewriteTool(Json.of({ _meta: { ui: { resourceUri: 'same:1', visibility: ['app'] } } }), toB).toValue(),
    ).toEqual({
      _meta: { ui: { resourceUri: 'x-mcp-b+same:1', visibility: ['app'] } },
    })
  })

  test('arguments: strings that are a URI as a whole, at any depth', () => {
    const args = Json.of({ a: 'same:1', b: ['same:2', 'see same:3', 1.5], 'same:4': { c: 'same:5' } })
    expect(rewriteTexts(args, toB).toValue()).toEqual({
      a: 'x-mcp-b+same:1',
      b: ['x-mcp-b+same:2', 'see same:3', 1.5],
      'same:4': { c: 'x-mcp-b+same:5' },
    })
  })
})
