import { expect, test } from 'vitest'
import { scriptedMember } from '../../../test/support/scripted-member.ts'
import { EVERYTHING } from '../../protocol/policy.ts'
import { MODERN, NEWEST_LEGACY, OLDEST } from '../../protocol/revisions.ts'
import { Json, type Plain } from '../../wire/json/json.ts'
import { createPolicy } from '../policy/policy.ts'
import type { ListKind } from './list-kinds.ts'
import { createMemberList } from './member-list.ts'
import { buildMergedList, type ListPart, type MergeRules } from './merged-list.ts'
import { readList } from './read-list.ts'

const overlay = { hidden: false, fixed: {}, defaults: {} }

/** A member's list from its text. */
const part = async (
  kind: ListKind,
  server: string,
  items: Plain,
  overlays = new Map(),
  revision = MODERN,
): Promise<ListPart> => {
  const member = scriptedMember(server, { overlays })
  const key = { tools: 'tools', prompts: 'prompts', resources: 'resources', templates: 'resourceTemplates' }[kind]
  const reading = await readList(kind, async () => Json.of({ [key]: items }))
  return { member, list: createMemberList(kind, revision, reading) }
}

const showing = (kind: ListKind, more: Partial<MergeRules> = {}): MergeRules => ({
  kind,
  revision: MODERN,
  style: 'prefix',
  servers: ['a', 'b'],
  rules: createPolicy(EVERYTHING),
  ...more,
})

const shown = (shelf: { items: readonly { exposed: string }[] }) => shelf.items.map(({ exposed }) => exposed)

test('a renamed tool says where it comes from; one that keeps its name is the very bytes it came in', async () => {
  const text = Json.parse(Buffer.from('[{ "name":"x", "n":1.0, "_meta":{"own":1} },{"name":"y"}]'))
  const parts = [await part('tools', 'a', text)]
  const plain = buildMergedList(parts, showing('tools', { style: 'plain' }))
  expect(plain.items.map(({ definition: item }) => item.toString())).toEqual([
    '{ "name":"x", "n":1.0, "_meta":{"own":1} }',
    '{"name":"y"}',
  ])
  const prefixed = buildMergedList(parts, showing('tools'))
  expect(prefixed.items.map(({ definition: item }) => item.toString())).toEqual([
    '{ "name":"a__x", "n":1.0, "_meta":{"own":1,"dragoman/origin":{"server":"a","name":"x"}} }',
    '{"name":"a__y","_meta":{"dragoman/origin":{"server":"a","name":"y"}}}',
  ])
})

test('in plain style the first server keeps a name that several have', async () => {
  const parts = [await part('tools', 'a', [{ name: 'x' }]), await part('tools', 'b', [{ name: 'x' }, { name: 'y' }])]
  const shelf = buildMergedList(parts, showing('tools', { style: 'plain' }))
  expect(shown(shelf)).toEqual(['x', 'b__x', 'y'])
  expect(shelf.find('x')).toMatchObject({ member: { server: 'a' } })
  expect(shelf.find('b/x')).toMatchObject({ member: { server: 'b' }, original: 'x' })
})

test('what is hidden leaves no trace, not even in the names of others', async () => {
  const parts = [await part('tools', 'a', [{ name: 'x' }]), await part('tools', 'b', [{ name: 'x' }])]
  const rules = createPolicy(EVERYTHING, { allow: {}, deny: { tools: ['a/x'] }, readOnly: false })
  const shelf = buildMergedList(parts, showing('tools', { style: 'plain', rules }))
  expect(shown(shelf)).toEqual(['x'])
  expect(shelf.find('a__x')).toBeUndefined()
  expect(shelf.find('x')).toMatchObject({ member: { server: 'b' } })
})

test('an overlay may rename and hide; two tools of one name are one', async () => {
  const overlays = new Map([
    ['x', { ...overlay, name: 'first' }],
    ['y', { ...overlay, name: 'first' }],
    ['z', { ...overlay, hidden: true }],
  ])
  const shelf = buildMergedList(
    [await part('tools', 'a', [{ name: 'x' }, { name: 'y' }, { name: 'z' }], overlays)],
    showing('tools'),
  )
  expect(shown(shelf)).toEqual(['a__first'])
  expect(shelf.find('a__first')).toMatchObject({ original: 'x' })
  expect(shelf.find('z')).toBeUndefined()
})

test('a URI that an earlier server has is shown by an alias, and so are templates', async () => {
  const resources = [
    { uri: 'file:///x', name: 'x' },
    { uri: 'ui://app', name: 'app' },
  ]
  const parts = [await part('resources', 'a', resources), await part('resources', 'b', [...resources, { uri: 'b:1' }])]
  const shelf = buildMergedList(parts, showing('resources'))
  expect(shown(shelf)).toEqual(['file:///x', 'ui://app', 'x-mcp-b+file:///x', 'ui://b.gw/app', 'b:1'])
  expect(shelf.items[2]?.definition.toValue()).toMatchObject({ uri: 'x-mcp-b+file:///x', name: 'x' })
  expect(shelf.find('file:///x')).toMatchObject({ member: { server: 'a' } })
  const template = [{ uriTemplate: 'file:///{p}', name: 't' }]
  const two = [await part('templates', 'a', template), await part('templates', 'b', template)]
  expect(shown(buildMergedList(two, showing('templates')))).toEqual(['file:///{p}', 'x-mcp-b+file:///{p}'])
})

test('tools of two apps of one URI lead each to its own', async () => {
  const tool = (name: string) => ({ name, _meta: { ui: { resourceUri: 'ui://app' } } })
  const parts = [await part('tools', 'a', [tool('x'), tool('y')]), await part('tools', 'b', [tool('x')])]
  const links = buildMergedList(parts, showing('tools')).items.map(({ definition: item }) =>
    item.at('_meta', 'ui', 'resourceUri')?.asString(),
  )
  expect(links).toEqual(['ui://app', 'ui://app', 'ui://b.gw/app'])
})

test('a link is found however it is written', async () => {
  const tool = Json.parse(Buffer.from('[{"name":"x","_meta":{"ui":{"resource\\u0055ri":"ui://app"}}}]'))
  const parts = [await part('tools', 'a', tool), await part('tools', 'b', tool)]
  const links = buildMergedList(parts, showing('tools')).items.map(({ definition: item }) =>
    item.at('_meta', 'ui', 'resourceUri')?.asString(),
  )
  expect(links).toEqual(['ui://app', 'ui://b.gw/app'])
})

test('each revision is shown in its own words, and an epoch says nothing about them', async () => {
  const tool = {
    name: 'x',
    inputSchema: { type: 'object' },
    outputSchema: { type: 'array' },
    annotations: { title: 'X' },
  }
  const parts = [await part('tools', 'a', [tool])]
  const [newest, legacy, oldest] = [MODERN, NEWEST_LEGACY, OLDEST].map(revision =>
    buildMergedList(parts, showing('tools', { revision })),
  )
  expect(newest?.items[0]?.definition.at('outputSchema', 'type')?.asString()).toBe('array')
  expect(legacy?.items[0]?.definition.at('outputSchema', 'type')?.asString()).toBe('object')
  expect(oldest?.items[0]?.definition.at('outputSchema', 'type')?.asString()).toBe('object')
  expect(new Set([newest?.hash, legacy?.hash, oldest?.hash]).size).toBe(1)
})

test('an epoch changes with what is shown and with nothing else', async () => {
  const epoch = async (items: Plain, rules = createPolicy(EVERYTHING)) =>
    buildMergedList([await part('tools', 'a', items)], showing('tools', { rules })).hash
  const first = await epoch([{ name: 'x' }])
  expect(await epoch([{ name: 'x' }])).toBe(first)
  expect(await epoch([{ name: 'x', description: 'new' }])).not.toBe(first)
  expect(await epoch([{ name: 'x' }, { name: 'y' }])).not.toBe(first)
  const rules = createPolicy({ allow: {}, deny: { tools: ['a/y'] }, readOnly: false })
  expect(await epoch([{ name: 'x' }, { name: 'y' }], rules)).toBe(first)
})

test('a server without a list is missing', async () => {
  const shelf = buildMergedList(
    [await part('tools', 'a', []), { member: scriptedMember('b'), list: undefined }],
    showing('tools'),
  )
  expect(shelf.missingServers).toEqual(['b'])
})
