import { describe, expect, test } from 'vitest'
import { type Talk, talk } from '../../../test/support/embedded.ts'
import { Json, type PlainObject } from '../../wire/json/json.ts'
import { defineServer } from './define.ts'
import { failure } from './failures.ts'
import { type ResourceContents, resource, template } from './resources.ts'

const serve = (read: () => ResourceContents) =>
  defineServer({
    name: 's',
    version: '1',
    resources: [
      resource({ uri: 'x://1', name: 'one', title: 'One', mimeType: 'text/plain', size: 3, read }),
      resource({
        uri: 'x://broken',
        name: 'broken',
        read: () => {
          throw new Error('Disk is gone')
        },
      }),
    ],
    templates: [
      template({
        uriTemplate: 'x://users/{id}/notes/{+path}',
        name: 'notes',
        mimeType: 'text/markdown',
        read: ({ id, path }, _call, uri) => (id === 'missing' ? undefined : `${id} ${path} ${uri}`),
      }),
      template({ uriTemplate: 'x://users/{id}/notes/last', name: 'last', read: ({ id }) => `last of ${id}` }),
    ],
  })

const read = (params: PlainObject, contents: () => ResourceContents = () => 'One'): Promise<Talk> =>
  talk(serve(contents), 'resources/read', params)

describe('resources', () => {
  test('are listed as declared, without what reads them', async () => {
    expect(
      await (
        await talk(
          serve(() => ''),
          'resources/list',
        )
      ).result(),
    ).toMatchObject({
      resources: [{ uri: 'x://1', name: 'one', title: 'One', mimeType: 'text/plain', size: 3 }, { uri: 'x://broken' }],
    })
    expect(
      await (
        await talk(
          serve(() => ''),
          'resources/templates/list',
        )
      ).result(),
    ).toMatchObject({
      resourceTemplates: [
        { uriTemplate: 'x://users/{id}/notes/{+path}', name: 'notes', mimeType: 'text/markdown' },
        { uriTemplate: 'x://users/{id}/notes/last', name: 'last' },
      ],
    })
  })

  test.each<[string, ResourceContents, PlainObject]>([
    ['text', 'One', { contents: [{ uri: 'x://1', mimeType: 'text/plain', text: 'One' }] }],
    ['an empty text', '', { contents: [{ uri: 'x://1', mimeType: 'text/plain', text: '' }] }],
    ['bytes', new Uint8Array([255, 0]), { contents: [{ uri: 'x://1', mimeType: 'text/plain', blob: '/wA=' }] }],
    ['parts', [{ uri: 'x://1/a', text: 'a' }], { contents: [{ uri: 'x://1/a', text: 'a' }] }],
    ['a result by hand', Json.of({ contents: [], ttlMs: 5000 }), { contents: [], ttlMs: 5000, cacheScope: 'private' }],
  ])('may be %s', async (_name, contents, expected) => {
    expect(await (await read({ uri: 'x://1' }, () => contents)).result()).toMatchObject(expected)
  })

  test('of a template get the variables of their URI, decoded', async () => {
    const uri = 'x://users/a%20b/notes/2024/05%2F06.md'
    expect(await (await read({ uri })).result()).toMatchObject({
      contents: [{ uri, mimeType: 'text/markdown', text: `a b 2024/05/06.md ${uri}` }],
    })
  })

  test('that one template does not have may be had by the next', async () => {
    expect(await (await read({ uri: 'x://users/missing/notes/last' })).result()).toMatchObject({
      contents: [{ text: 'last of missing' }],
    })
  })

  test.each(['x://2', 'x://users/missing/notes/x', 'x://users/a/b/notes/c', 'x://users/%zz/notes/c', ''])(
    'of the unknown URI %j are refused by name',
    async uri => {
      expect(await (await read({ uri })).failure()).toEqual({
        code: -32602,
        message: `Unknown resource: ${uri}`,
        data: { uri },
      })
    },
  )

  test.each<[string, PlainObject]>([
    ['no URI', {}],
    ['a URI that is no text', { uri: 7 }],
  ])('%s is refused', async (_name, params) => {
    expect(await (await read(params)).failure()).toMatchObject({ code: -32602, message: 'uri must be a string' })
  })

  test('that fail to be read are internal errors, unless their reader says otherwise', async () => {
    expect(await (await read({ uri: 'x://broken' })).failure()).toMatchObject({ code: -32603, message: 'Disk is gone' })
    const refused = await read({ uri: 'x://1' }, () => {
      throw failure('invalidParams', 'Not for you')
    })
    expect(await refused.failure()).toMatchObject({ code: -32602, message: 'Not for you' })
  })
})
