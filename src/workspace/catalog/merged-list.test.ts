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

const shown = (list: { items: readonly { exposed: string }[] }) => list.items.map(({ exposed }) => exposed)

test('a renamed tool has its origin in _meta; one that keeps its name keeps its bytes', async () => {
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
  const list = buildMergedList(parts, showing('tools', { style: 'plain' }))
  expect(shown(list)).toEqual(['x', 'b__x', 'y'])
  expect(list.find('x')).toMatchObject({ member: { server: 'a' } })
  expect(list.find('b/x')).toMatchObject({ member: { server: 'b' }, original: 'x' })
})

test('a hidden item leaves no trace, not even in the names of others', async () => {
  const parts = [await part('tools', 'a', [{ name: 'x' }]), await part('tools', 'b', [{ name: 'x' }])]
  const rules = createPolicy(EVERYTHING, { allow: {}, deny: { tools: ['a/x'] }, readOnly: false })
  const list = buildMergedList(parts, showing('tools', { style: 'plain', rules }))
  expect(shown(list)).toEqual(['x'])
  expect(list.find('a__x')).toBeUndefined()
  expect(list.find('x')).toMatchObject({ member: { server: 'b' } })
})

test('an overlay can rename and hide; of two tools with one name the first is shown', async () => {
  const overlays = new Map([
    ['x', { ...overlay, name: 'first' }],
    ['y', { ...overlay, name: 'first' }],
    ['z', { ...overlay, hidden: true }],
  ])
  const list = buildMergedList(
    [await part('tools', 'a', [{ name: 'x' }, { name: 'y' }, { name: 'z' }], overlays)],
    showing('tools'),
  )
  expect(shown(list)).toEqual(['a__first'])
  expect(list.find('a__first')).toMatchObject({ original: 'x' })
  expect(list.find('z')).toBeUndefined()
})

test('a URI or template that an earlier server has is shown as an alias', async () => {
  const resources = [
    { uri: 'file:///x', name: 'x' },
    { uri: 'ui://app', name: 'app' },
  ]
  const parts = [await part('resources', 'a', resources), await part('resources', 'b', [...resources, { uri: 'b:1' }])]
  const list = buildMergedList(parts, showing('resources'))
  expect(shown(list)).toEqual(['file:///x', 'ui://app', 'x-mcp-b+file:///x', 'ui://b.gw/app', 'b:1'])
  expect(list.items[2]?.definition.toValue()).toMatchObject({ uri: 'x-mcp-b+file:///x', name: 'x' })
  expect(list.find('file:///x')).toMatchObject({ member: { server: 'a' } })
  const template = [{ uriTemplate: 'file:///{p}', name: 't' }]
  const two = [await part('templates', 'a', template), await part('templates', 'b', template)]
  expect(shown(buildMergedList(two, showing('templates')))).toEqual(['file:///{p}', 'x-mcp-b+file:///{p}'])
})

test("tools with equal app URIs link to their own server's app", async () => {
  const tool = (name: string) => ({ name, _meta: { ui: { resourceUri: 'ui://app' } } })
  const parts = [await part('tools', 'a', [tool('x'), tool('y')]), await part('tools', 'b', [tool('x')])]
  const links = buildMergedList(parts, showing('tools')).items.map(({ definition: item }) =>
    item.at('_meta', 'ui', 'resourceUri')?.asString(),
  )
  expect(links).toEqual(['ui://app', 'ui://app', 'ui://b.gw/app'])
})

test('an app link is found in any notation', async () => {
  const tool = Json.parse(Buffer.from('[{"name":"x","_meta":{"ui":{"resource\\u0055ri":"ui://app"}}}]'))
  const parts = [await part('tools', 'a', tool), await part('tools', 'b', tool)]
  const links = buildMergedList(parts, showing('tools')).items.map(({ definition: item }) =>
    item.at('_meta', 'ui', 'resourceUri')?.asString(),
  )
  expect(links).toEqual(['ui://app', 'ui://b.gw/app'])
})

test('items are converted to each revision, and the hash is the same for all', async () => {
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

test('the hash changes with the shown content and with nothing else', async () => {
  const hash = async (items: Plain, rules = createPolicy(EVERYTHING)) =>
    buildMergedList([await part('tools', 'a', items)], showing('tools', { rules })).hash
  const first = await hash([{ name: 'x' }])
  expect(await hash([{ name: 'x' }])).toBe(first)
  expect(await hash([{ name: 'x', description: 'new' }])).not.toBe(first)
  expect(await hash([{ name: 'x' }, { name: 'y' }])).not.toBe(first)
  const rules = createPolicy({ allow: {}, deny: { tools: ['a/y'] }, readOnly: false })
  expect(await hash([{ name: 'x' }, { name: 'y' }], rules)).toBe(first)
})

test('a server without a list is missing', async () => {
  const list = buildMergedList(
    [await part('tools', 'a', []), { member: scriptedMember('b'), list: undefined }],
    showing('tools'),
  )
  expect(list.missingServers).toEqual(['b'])
})
