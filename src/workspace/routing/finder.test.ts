import { expect, test } from 'vitest'
import { MODERN } from '../../protocol/revisions.ts'
import { Json } from '../../wire/json/json.ts'
import { exposedNames } from '../catalog/names.ts'
import type { ShownItem } from '../catalog/view.ts'
import type { Member } from '../member.ts'
import { createFinder, serversByName, splitName } from './finder.ts'

const upstream = { open: () => Promise.reject(new Error('not here')), close: async () => {} }

const memberOf = (server: string, renamed: Readonly<Record<string, string>> = {}): Member => ({
  server,
  bridged: upstream,
  native: upstream,
  isRemote: true,
  isUp: () => true,
  overlays: new Map(
    Object.entries(renamed).map(([original, name]) => [original, { name, hidden: false, fixed: {}, defaults: {} }]),
  ),
})

/** A finder over members with these tools, and what it says: `server:original`, or all that it could be. */
const finding = (
  tools: Readonly<Record<string, readonly string[]>>,
  renamed: Readonly<Record<string, string>> = {},
) => {
  const servers = Object.keys(tools)
  const offers = servers.map(server => ({ server, names: (tools[server] ?? []).map(name => renamed[name] ?? name) }))
  const exposed = exposedNames('prefix', offers)
  const entries = servers.flatMap((server, at) => {
    const member = memberOf(server, renamed)
    return (tools[server] ?? []).map(
      (original, i): ShownItem => ({
        member,
        original,
        exposed: exposed[at]?.[i] ?? '',
        definition: Json.empty,
        revision: MODERN,
      }),
    )
  })
  const find = createFinder(new Map(entries.map(entry => [entry.exposed, entry])), servers)
  const word = ({ member, original }: ShownItem) => `${member.server}:${original}`
  return (name: string) => {
    const found = find(name)
    return found && ('candidates' in found ? found.candidates.map(word) : word(found))
  }
}

test.each([
  ['github__search', 'github:search'],
  ['github/search', 'github:search'],
  ['google_maps__search', 'google_maps:search'],
  ['google-maps__search', 'google_maps:search'],
  ['google_maps/search', 'google_maps:search'],
  ['route', 'google_maps:route'],
  ['search', ['github:search', 'google_maps:search']],
  ['github__route', undefined],
  ['github__', undefined],
  ['nothing', undefined],
  ['__search', undefined],
])('%s is %j', (name, found) => {
  expect(finding({ github: ['search'], google_maps: ['search', 'route'] })(name)).toEqual(found)
})

test('a name shown is what it is, whatever else it could be', () => {
  const find = finding({ a: ['x'], b: ['a__x'] })
  expect([find('a__x'), find('b__a__x'), find('b/a__x')]).toEqual(['a:x', 'b:a__x', 'b:a__x'])
})

test('a name that can be cut in two ways is whichever is there', () => {
  const find = finding({ a: ['b__x'], a__b: ['x', 'y'] })
  expect(find('a__b__y')).toBe('a__b:y')
  expect(find('a/b__x')).toBe('a:b__x')
})

test('what cannot be shown as it is has a hash for a name, and is found by its own', () => {
  const find = finding({ a: ['données', 'x'.repeat(200)] })
  expect([find('données'), find('a__données'), find('x'.repeat(200))]).toEqual([
    'a:données',
    'a:données',
    `a:${'x'.repeat(200)}`,
  ])
})

test('a renamed tool is found by either name', () => {
  const find = finding({ a: ['create'] }, { create: 'open_issue' })
  for (const name of ['a__open_issue', 'a/open_issue', 'open_issue', 'a__create', 'create'])
    expect(find(name)).toBe('a:create')
})

test('a name is cut at each place where a server can end', () => {
  const owners = serversByName(['a', 'a__b'])
  expect(splitName('a__b__c', owners)).toEqual([
    { server: 'a', name: 'b__c' },
    { server: 'a__b', name: 'c' },
  ])
  expect(splitName('a___x', owners)).toEqual([{ server: 'a', name: '_x' }])
})
