import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { NameStyle } from '../../config/snapshot.ts'
import { MODERN } from '../../protocol/revisions.ts'
import { Json } from '../../wire/json/json.ts'
import type { Member } from '../member.ts'
import type { ListItem } from './merged-list.ts'
import {
  createFinder,
  exposedNames,
  namespacesOf,
  type ServerNames,
  serversByName,
  splitName,
  withoutServer,
} from './names.ts'

test.each([
  ['github__list_issues', 'list_issues'],
  ['github/list_issues', 'list_issues'],
  ['github__a__b', 'a__b'],
  ['github/a/b', 'a/b'],
  ['github___x', '_x'],
  ['list_issues', undefined],
  ['github', undefined],
  ['github__', undefined],
  ['github/', undefined],
  ['github_x', undefined],
  ['githubber/x', undefined],
  ['GitHub/x', undefined],
])('%s without its server is %s', (name, bare) => {
  expect(withoutServer('github', name)).toBe(bare)
})

describe('namespaces', () => {
  test.each([
    [['github'], ['github']],
    [['GitHub'], ['github']],
    [
      ['google_maps', 'a.b c'],
      ['google-maps', 'a-b-c'],
    ],
    [['a-server-with-a-very-long-name'], ['a-server-with-a-very']],
    [['_x_'], ['x']],
  ])('%j is %j', (servers, namespaces) => {
    expect([...namespacesOf(servers).values()]).toEqual(namespaces)
  })

  test('a server whose name is its namespace keeps it; others with an equal namespace get a hash', () => {
    const found = namespacesOf(['git_hub', 'Git-Hub', 'git-hub'])
    expect(found.get('git-hub')).toBe('git-hub')
    expect(found.get('git_hub')).toMatch(/^git-hub-[0-9a-f]{4}$/)
    expect(found.get('Git-Hub')).toMatch(/^git-hub-[0-9a-f]{4}$/)
    expect(new Set(found.values()).size).toBe(3)
  })

  test('a name without any usable character gets a hash', () => {
    expect(namespacesOf(['日本']).get('日本')).toMatch(/^[0-9a-f]{4}$/)
  })
})

/** What each shown name leads back to. */
const nameTable = (style: NameStyle, offers: readonly ServerNames[]) =>
  new Map(
    exposedNames(style, offers).flatMap((exposed, at) =>
      exposed.map((shown, i) => [shown, { server: offers[at]?.server, name: offers[at]?.names[i] }] as const),
    ),
  )

const twoServers: readonly ServerNames[] = [
  { server: 'github', names: ['search', 'list_issues'] },
  { server: 'files', names: ['search', 'read'] },
]

describe('H17: exposed names', () => {
  test.each([
    ['prefix', ['github__search', 'github__list_issues'], ['files__search', 'files__read']],
    ['slash', ['github/search', 'github/list_issues'], ['files/search', 'files/read']],
    ['plain', ['search', 'list_issues'], ['files__search', 'read']],
  ] as const)('%s', (style, first, second) => {
    expect(exposedNames(style, twoServers)).toEqual([first, second])
  })

  test.each([
    ['données', /^fs__[0-9a-f]{8}_donn_es$/],
    ['検索', /^fs__[0-9a-f]{8}___$/],
    ['files.read', /^fs__[0-9a-f]{8}_files_read$/],
    ['a/b', /^fs__[0-9a-f]{8}_a_b$/],
    ['', /^fs__[0-9a-f]{8}_$/],
    ['x'.repeat(61), /^fs__[0-9a-f]{8}_x{51}$/],
    [`${'x'.repeat(200)}tail`, /^fs__[0-9a-f]{8}_x{47}tail$/],
    ['x'.repeat(60), /^fs__x{60}$/],
  ])('%s is exposed as its hash and its end', (name, shown) => {
    expect(exposedNames('prefix', [{ server: 'fs', names: [name] }])[0]?.[0]).toMatch(shown)
  })

  test('two names of 200 characters with equal ends differ', () => {
    const names = ['a', 'b'].map(head => head + 'x'.repeat(199))
    expect(new Set(exposedNames('prefix', [{ server: 'fs', names }])[0]).size).toBe(2)
  })

  test('plain keeps a name even where it looks like the prefixed form of another', () => {
    const offers = [
      { server: 'a', names: ['b__x', 'x'] },
      { server: 'b', names: ['x'] },
    ]
    const [, [shown = ''] = []] = exposedNames('plain', offers)
    expect(shown).toMatch(/^b__[0-9a-f]{8}_x$/)
    expect(nameTable('plain', offers).get(shown)).toEqual({ server: 'b', name: 'x' })
    expect(nameTable('plain', offers).get('b__x')).toEqual({ server: 'a', name: 'b__x' })
  })
})

const name = fc.oneof(fc.string({ maxLength: 80 }), fc.constantFrom('x', 'a__x', 'search', 'données', 'x'.repeat(70)))
const offersOf = (servers: readonly string[]) =>
  fc.tuple(...servers.map(server => fc.record({ server: fc.constant(server), names: fc.uniqueArray(name) })))
const someOffers = fc.uniqueArray(fc.string({ minLength: 1, maxLength: 30 }), { maxLength: 4 }).chain(offersOf)

describe('for any servers and names', () => {
  test('every exposed name is portable and leads back to its item', () => {
    fc.assert(
      fc.property(someOffers, fc.constantFrom('prefix' as const, 'slash' as const), (offers, style) => {
        const table = nameTable(style, offers)
        exposedNames(style, offers).forEach((shown, at) => {
          shown.forEach((exposed, i) => {
            expect(exposed).toMatch(style === 'slash' ? /^[a-z0-9-]{1,20}\/[\w-]*$/ : /^[\w-]+$/)
            expect(exposed.length).toBeLessThanOrEqual(64)
            expect(table.get(exposed)).toEqual({ server: offers[at]?.server, name: offers[at]?.names[i] })
          })
        })
      }),
    )
  })

  test('no prefixed name changes when another server is missing', () => {
    fc.assert(
      fc.property(someOffers, fc.nat(), (offers, away) => {
        const servers = offers.map(({ server }) => server)
        const all = exposedNames('prefix', offers, servers)
        const left = offers.filter((_, at) => at !== away % Math.max(1, offers.length))
        const kept = exposedNames('prefix', left, servers)
        left.forEach((offer, at) => {
          expect(kept[at]).toEqual(all[offers.indexOf(offer)])
        })
      }),
    )
  })

  test('no prefixed name changes when a server joins the configuration, wherever it is written', () => {
    const slugOf = (server: string): string => namespacesOf([server]).get(server) ?? ''
    const distinct = fc.uniqueArray(fc.string({ minLength: 1, maxLength: 30 }), { maxLength: 5, selector: slugOf })
    fc.assert(
      fc.property(distinct.chain(offersOf), fc.nat(), fc.constantFrom(40, 48, 64, 128), (offers, at, most) => {
        const joined = at % Math.max(1, offers.length)
        const before = offers.filter((_, i) => i !== joined)
        const [few, all] = [before, offers].map(some => exposedNames('prefix', some, undefined, most))
        before.forEach((offer, i) => {
          expect(few?.[i]).toEqual(all?.[offers.indexOf(offer)])
        })
      }),
    )
  })

  test('no name is longer than the setting, and each leads back to its item', () => {
    fc.assert(
      fc.property(
        someOffers,
        fc.constantFrom('prefix' as const, 'slash' as const, 'plain' as const),
        fc.constantFrom(40, 48, 64),
        (offers, style, most) => {
          const shown = exposedNames(style, offers, undefined, most)
          for (const exposed of shown.flat()) expect(exposed.length).toBeLessThanOrEqual(most)
          expect(new Set(shown.flat()).size).toBe(shown.flat().length)
        },
      ),
    )
  })

  test('plain names lead back too, and the first server that has one keeps it', () => {
    fc.assert(
      fc.property(someOffers, offers => {
        const table = nameTable('plain', offers)
        const shown = exposedNames('plain', offers)
        expect(table.size).toBe(shown.flat().length)
        for (const { names } of offers)
          for (const word of names) {
            const first = offers.find(offer => offer.names.includes(word))
            expect(table.get(word)).toEqual({ server: first?.server, name: word })
          }
      }),
    )
  })
})

const upstream = { open: () => Promise.reject(new Error('not here')), close: async () => {} }

const memberOf = (server: string, renamed: Readonly<Record<string, string>> = {}): Member => ({
  server,
  bridged: upstream,
  native: upstream,
  isRemote: true,
  isProcess: false,
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
      (original, i): ListItem => ({
        member,
        original,
        exposed: exposed[at]?.[i] ?? '',
        definition: Json.empty,
        whole: Json.empty,
        identity: Json.empty,
        size: { bytes: 2, tokens: 1 },
        revision: MODERN,
      }),
    )
  })
  const find = createFinder(new Map(entries.map(entry => [entry.exposed, entry])), servers)
  const label = ({ member, original }: ListItem) => `${member.server}:${original}`
  return (name: string) => {
    const found = find(name)
    return found && ('candidates' in found ? found.candidates.map(label) : label(found))
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

test('an exposed name wins over every other reading', () => {
  const find = finding({ a: ['x'], b: ['a__x'] })
  expect([find('a__x'), find('b__a__x'), find('b/a__x')]).toEqual(['a:x', 'b:a__x', 'b:a__x'])
})

test('of two readings of a name the existing item is found', () => {
  const find = finding({ a: ['b__x'], a__b: ['x', 'y'] })
  expect(find('a__b__y')).toBe('a__b:y')
  expect(find('a/b__x')).toBe('a:b__x')
})

test('an item exposed as a hash is found by its original name', () => {
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

test('a name is split at every separator after a server name', () => {
  const owners = serversByName(['a', 'a__b'])
  expect(splitName('a__b__c', owners)).toEqual([
    { server: 'a', name: 'b__c' },
    { server: 'a__b', name: 'c' },
  ])
  expect(splitName('a___x', owners)).toEqual([{ server: 'a', name: '_x' }])
})
