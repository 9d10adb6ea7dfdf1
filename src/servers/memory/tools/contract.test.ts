import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { memoryTools } from './memory-tools.ts'

interface Declared {
  readonly name: string
  readonly inputSchema: Schema
  readonly outputSchema: Schema
}
interface Schema {
  readonly properties: Readonly<Record<string, unknown>>
  readonly required?: readonly string[]
}

const contract: readonly Declared[] = JSON.parse(
  readFileSync(new URL('../../../../test/support/servers/graphiti-contract.json', import.meta.url), 'utf8'),
).tools

const unused = () => Promise.reject(new Error('a list calls no tool'))
const tools = memoryTools({
  withStore: unused,
  defaultGroup: 'main',
  remember: unused,
  embed: unused,
  embedLater: unused,
})
const declared = tools.map(tool => tool.description.toValue()) as unknown as readonly (Declared & {
  readonly title: string
  readonly description: string
  readonly annotations: Readonly<Record<string, unknown>>
})[]

/** Our descriptions are our own; everything else must be equal. */
const withoutProse = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(withoutProse)
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).filter(([key, item]) => key !== 'description' || typeof item !== 'string')
  return Object.fromEntries(members.map(([key, item]) => [key, withoutProse(item)]))
}

test('the thirteen tools of the contract come first, in its order', () => {
  expect(declared.slice(0, contract.length).map(({ name }) => name)).toEqual(contract.map(({ name }) => name))
})

for (const theirs of contract) {
  const ours = declared.find(({ name }) => name === theirs.name)

  test(`${theirs.name} takes what the contract says, with equal types and defaults`, () => {
    expect(withoutProse(ours?.inputSchema.properties)).toMatchObject(theirs.inputSchema.properties)
    for (const [name, schema] of Object.entries(theirs.inputSchema.properties))
      expect(withoutProse(ours?.inputSchema.properties[name])).toEqual(schema)
    expect(ours?.inputSchema.required ?? []).toEqual(theirs.inputSchema.required ?? [])
  })

  test(`${theirs.name} promises the results of the contract`, () => {
    expect(ours?.outputSchema).toEqual(theirs.outputSchema)
  })
}

test('every tool has a title, a description and hints about its effect', () => {
  for (const { name, title, description, annotations } of declared) {
    expect(title, name).toMatch(/^[A-Z]/)
    expect(description.length, name).toBeGreaterThan(40)
    expect(annotations, name).toMatchObject({ readOnlyHint: expect.any(Boolean), openWorldHint: false })
  }
})

test('arguments that the contract does not have are optional', () => {
  for (const theirs of contract) {
    const { properties = {}, required = [] } = declared.find(({ name }) => name === theirs.name)?.inputSchema ?? {}
    const added = Object.keys(properties).filter(name => !Object.hasOwn(theirs.inputSchema.properties, name))
    expect(added.filter(name => required.includes(name))).toEqual([])
  }
})
