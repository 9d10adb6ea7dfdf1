import { expect, test } from 'vitest'
import { Json, type PlainObject } from '../../wire/json/json.ts'
import { referencesIn } from './hidden-references.ts'

const textsIn = (params: PlainObject) =>
  referencesIn('acme/run', Json.of(params))
    ?.map(({ kinds, text }) => `${kinds.join('|')} ${text}`)
    .sort()

test.each<[string, PlainObject, string[]]>([
  ['a member', { tool: 'secret' }, ['tools secret']],
  ['a list', { tools: ['a', 'b'] }, ['tools a', 'tools b']],
  [
    'a list within a list',
    { tools: [['secret']], uris: [[['file:///x']], 'file:///y'] },
    ['resources file:///x', 'resources file:///y', 'tools secret'],
  ],
  ['an object within nested lists', { tools: [[{ name: 'secret' }]] }, ['tools|prompts secret']],
  ['other members of an object in a list', { tools: [{ note: 'hello' }] }, []],
  ['content of the caller', { arguments: { tools: ['mine'] }, _meta: { tool: 'mine' } }, []],
])('%s: every tool, prompt and resource in it is found', (_name, params, expected) => {
  expect(textsIn(params)).toEqual(expected)
})

test('a request with too many references is not checked', () => {
  expect(textsIn({ tools: [Array.from({ length: 10_001 }, () => 'x')] })).toBeUndefined()
})

test('params that are too large are not searched', () => {
  expect(
    referencesIn(
      'acme/run',
      Json.of({ uris: Array.from({ length: 300 }, (_, i) => `file:///${'x'.repeat(1000)}${i}`) }),
    ),
  ).toBeUndefined()
})

test('links are references to resources', () => {
  expect(textsIn({ url: 'file:///x', link: { href: 'file:///y' } })).toEqual([
    'resources file:///x',
    'resources file:///y',
  ])
})
