import { ListToolsResultSchema } from '@modelcontextprotocol/sdk/types.js'
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/ajv'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { cpuMs } from '../../test/support/cpu-time.ts'
import type { Revision } from '../protocol/revisions.ts'
import { Json, type Plain, type PlainObject } from '../wire/json/json.ts'
import { convertQuestion, convertResult } from './convert.ts'

const NEW: Revision = '2026-07-28'
const INPUT = { type: 'object' }

const listed = (tools: readonly Plain[], to: Revision = '2025-11-25') =>
  convertResult('tools/list', Json.of({ tools }), NEW, to).toValue() as { tools: { outputSchema: object }[] }

const shown = (schema: Plain, to?: Revision): object | undefined =>
  listed([{ name: 't', inputSchema: INPUT, outputSchema: schema }], to).tools[0]?.outputSchema

const called = (structuredContent: Plain, to: Revision = '2025-11-25') =>
  convertResult('tools/call', Json.of({ content: [], structuredContent }), NEW, to).toValue()

const wrapped = (result: PlainObject, schema?: string) => ({
  ...(schema && { $schema: schema }),
  type: 'object',
  properties: { result },
  required: ['result'],
})

const either = (schema: PlainObject) => ({
  type: 'object',
  anyOf: [schema, { properties: { result: { $ref: '#/anyOf/0' } }, required: ['result'] }],
})

const LINKED = {
  $defs: { x: { type: 'object', properties: { next: { $ref: '#/$defs/x' } } } },
  type: 'array',
  items: { $ref: '#/$defs/x' },
}

test.each<[string, PlainObject, PlainObject]>([
  [
    'an object stays',
    { type: 'object', properties: { a: { $ref: '#' } } },
    { type: 'object', properties: { a: { $ref: '#' } } },
  ],
  [
    'a list is wrapped',
    { type: 'array', items: { type: 'number' } },
    wrapped({ type: 'array', items: { type: 'number' } }),
  ],
  ['a null is wrapped', { type: 'null' }, wrapped({ type: 'null' })],
  ['constants are wrapped', { enum: ['a', 1, null] }, wrapped({ enum: ['a', 1, null] })],
  [
    'pointers move along',
    LINKED,
    wrapped({
      $defs: { x: { type: 'object', properties: { next: { $ref: '#/properties/result/$defs/x' } } } },
      type: 'array',
      items: { $ref: '#/properties/result/$defs/x' },
    }),
  ],
  [
    'so do dynamic ones and the root itself; anchors and other documents need not',
    {
      type: 'array',
      items: {
        anyOf: [{ $ref: '#' }, { $dynamicRef: '#/items' }, { $dynamicRef: '#node' }, { $ref: 'https://e.example/s' }],
      },
    },
    wrapped({
      type: 'array',
      items: {
        anyOf: [
          { $ref: '#/properties/result' },
          { $dynamicRef: '#/properties/result/items' },
          { $dynamicRef: '#node' },
          { $ref: 'https://e.example/s' },
        ],
      },
    }),
  ],
  [
    'data and names that look like references are neither',
    {
      type: 'array',
      default: [{ $ref: '#/a' }],
      items: { properties: { $ref: { const: { $ref: '#' } }, default: { $ref: '#' } } },
    },
    wrapped({
      type: 'array',
      default: [{ $ref: '#/a' }],
      items: { properties: { $ref: { const: { $ref: '#' } }, default: { $ref: '#/properties/result' } } },
    }),
  ],
  [
    'a document of its own keeps its references, inside and as a whole',
    { type: 'array', items: { $id: 'urn:item', $ref: '#/$defs/y' }, not: { $id: '#old-anchor', $ref: '#/$defs/y' } },
    wrapped({
      type: 'array',
      items: { $id: 'urn:item', $ref: '#/$defs/y' },
      not: { $id: '#old-anchor', $ref: '#/properties/result/$defs/y' },
    }),
  ],
  [
    'with an id at its root too',
    { $id: 'urn:list', type: 'array', items: { $ref: '#/$defs/y' } },
    wrapped({ $id: 'urn:list', type: 'array', items: { $ref: '#/$defs/y' } }),
  ],
  [
    'the dialect is said at the root',
    { $schema: 'http://json-schema.org/draft-07/schema#', type: 'string' },
    wrapped({ type: 'string' }, 'http://json-schema.org/draft-07/schema#'),
  ],
  [
    'what can only be an object is said to be one',
    { oneOf: [{ $ref: '#/$defs/a' }, { type: 'object', required: ['b'] }], $defs: { a: { type: ['object'] } } },
    {
      oneOf: [{ $ref: '#/$defs/a' }, { type: 'object', required: ['b'] }],
      $defs: { a: { type: ['object'] } },
      type: 'object',
    },
  ],
  ['an object or nothing takes both forms', { type: ['object', 'null'] }, either({ type: ['object', 'null'] })],
  [
    'so does a union',
    { anyOf: [{ type: 'object' }, { type: 'array', items: { $ref: '#' } }] },
    either({ anyOf: [{ type: 'object' }, { type: 'array', items: { $ref: '#/anyOf/0' } }] }),
  ],
  ['and what says nothing', { description: 'anything' }, either({ description: 'anything' })],
  ['and a reference to nowhere', { $ref: '#/$defs/gone' }, either({ $ref: '#/anyOf/0/$defs/gone' })],
  [
    'a union with an id is referred to by it',
    { $id: 'urn:either', type: ['object', 'string'] },
    {
      type: 'object',
      anyOf: [
        { $id: 'urn:either', type: ['object', 'string'] },
        { properties: { result: { $ref: 'urn:either' } }, required: ['result'] },
      ],
    },
  ],
])('output schema for 2025-11-25: %s', (_name, schema, expected) => {
  expect(shown(schema)).toEqual(expected)
  expect(shown(schema, '2025-06-18')).toEqual(expected)
  expect(shown(schema, '2025-03-26')).toEqual(expected)
})

test.each<[Plain, Plain]>([
  [{ a: 1 }, { a: 1 }],
  [{ result: 1 }, { result: 1 }],
  [[1], { result: [1] }],
  ['s', { result: 's' }],
  [0, { result: 0 }],
  [false, { result: false }],
  [null, { result: null }],
])('structured content %j', (value, expected) => {
  expect(called(value)).toEqual({ content: [], structuredContent: expected })
  expect(called(value, '2025-06-18')).toEqual({ content: [], structuredContent: expected })
  expect(called(value, '2025-03-26')).toEqual({
    content: [{ type: 'text', text: JSON.stringify(expected) }],
    structuredContent: expected,
  })
  const legacy = Json.of({ content: [], structuredContent: { result: value } })
  expect(convertResult('tools/call', legacy, '2025-11-25', NEW).get('structuredContent')?.toValue()).toEqual({
    result: value,
  })
})

test('numbers keep their spelling on the way', () => {
  const result = Json.parse(Buffer.from('{"content":[],"structuredContent":[12345678901234567890, 1.0]}'))
  expect(convertResult('tools/call', result, NEW, '2025-11-25').toString()).toBe(
    '{"content":[],"structuredContent":{"result":[12345678901234567890, 1.0]}}',
  )
})

test('one odd tool never costs an older client the list', () => {
  const odd: Plain[] = [
    { name: 'a', inputSchema: INPUT, outputSchema: { type: 'array' } },
    { name: 'b', inputSchema: INPUT, outputSchema: {} },
    { name: 'c', inputSchema: { type: 'object', properties: { any: true, none: false, x: { default: true } } } },
    { name: 'd', inputSchema: INPUT, outputSchema: { type: 'object', properties: { any: true } } },
    { name: 'e', inputSchema: INPUT, outputSchema: { properties: { any: true } } },
    { name: 'f', inputSchema: INPUT, outputSchema: true },
    { name: 'g', inputSchema: INPUT, outputSchema: { anyOf: [true, { $ref: '#/anyOf/1' }] } },
  ]
  for (const to of ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'] as const) {
    const parsed = ListToolsResultSchema.safeParse(listed(odd, to))
    expect(parsed.error).toBeUndefined()
    expect(parsed.data?.tools.map(({ name }) => name)).toEqual(['a', 'b', 'c', 'd', 'e', 'f', 'g'])
  }
  expect(listed(odd).tools[2]).toMatchObject({
    inputSchema: { properties: { any: {}, none: { not: {} }, x: { default: true } } },
  })
  expect(ListToolsResultSchema.safeParse({ tools: odd }).success).toBe(false)
})

test('many properties at once keep their order', () => {
  const names = Array.from({ length: 100 }, (_, i) => `p${i}`)
  const properties = Object.fromEntries(names.map(name => [name, true]))
  const [tool] = listed([{ name: 't', inputSchema: { type: 'object', properties } }]).tools
  const shownProperties = (tool as unknown as { inputSchema: { properties: object } }).inputSchema.properties
  expect(Object.entries(shownProperties)).toEqual(names.map(name => [name, {}]))
})

test('a deep and heavy schema is wrapped in no time to speak of', () => {
  let inner: PlainObject = { $ref: '#', description: 'x'.repeat(1_000_000) }
  for (let depth = 0; depth < 200; depth++) inner = { items: inner, anyOf: [{ $ref: '#/items' }, { $ref: '#' }] }
  const list = Json.of({ tools: [{ name: 't', outputSchema: { type: 'array', ...inner } }] })
  const start = cpuMs()
  const text = convertResult('tools/list', list, NEW, '2025-11-25').toString()
  expect(cpuMs() - start).toBeLessThan(2000)
  expect(text).toContain('"$ref":"#/properties/result"')
})

test('tools and their results look the same in sampling', () => {
  const question = Json.of({
    tools: [{ name: 't', inputSchema: INPUT, outputSchema: { type: 'string' } }],
    messages: [
      { role: 'user', content: [{ type: 'tool_result', structuredContent: 's', content: [] }] },
      { role: 'user', content: { type: 'text', text: 'x' } },
    ],
  })
  const asked = convertQuestion('sampling/createMessage', question, NEW, '2025-11-25')
  expect('rejection' in asked ? asked : asked.toValue()).toEqual({
    tools: [{ name: 't', inputSchema: INPUT, outputSchema: wrapped({ type: 'string' }) }],
    messages: [
      { role: 'user', content: [{ type: 'tool_result', structuredContent: { result: 's' }, content: [] }] },
      { role: 'user', content: { type: 'text', text: 'x' } },
    ],
  })
})

// What is referred to goes a level down each time: a schema that only means itself has no meaning.
const { schema, deeper } = fc.letrec<{ schema: PlainObject; deeper: PlainObject }>(tie => ({
  deeper: fc.oneof(
    fc.constantFrom<PlainObject>({ type: 'string' }, { type: ['object', 'null'] }, { enum: [1, { a: 1 }] }),
    fc.record({ type: fc.constant('array'), items: tie('schema') }),
    fc.record({ type: fc.constant('object'), properties: fc.record({ a: tie('schema') }) }),
  ),
  schema: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom<PlainObject>({}, { type: 'null' }, { $ref: '#/$defs/a' }, { $ref: '#/$defs/b' }),
    tie('deeper'),
    fc.record({ anyOf: fc.array(tie('schema'), { minLength: 1, maxLength: 3 }) }),
    fc.record({ allOf: fc.array(tie('schema'), { minLength: 1, maxLength: 2 }) }),
  ),
}))
const whole = fc.tuple(schema, deeper, deeper).map(([root, a, b]): PlainObject => ({ ...root, $defs: { a, b } }))
const { value } = fc.letrec<{ value: Plain }>(tie => ({
  value: fc.oneof(
    fc.constantFrom<Plain>('s', 1, true, null),
    fc.array(tie('value'), { maxLength: 2 }),
    fc.dictionary(fc.constantFrom('a', 'b', 'result'), tie('value'), { maxKeys: 2 }),
  ),
}))
// As JSON makes them: an object without a prototype is equal to no member of an enum.
const values = fc.array(value, { maxLength: 10 }).map(list => JSON.parse(JSON.stringify(list)) as Plain[])
const TELLING: readonly Plain[] = [
  's',
  null,
  1,
  [],
  {},
  { a: 1 },
  { a: 's' },
  { a: { a: [] } },
  ['s'],
  [[]],
  [{ a: null }],
]

const isObject = (value: Plain): boolean => Json.of(value).isObject

const validator = (schema: object): ((value: unknown) => boolean) => {
  const check = new AjvJsonSchemaValidator().getValidator(schema)
  return value => check(value).valid
}

test('what is shown accepts whatever the tool may return, as it is sent', () => {
  fc.assert(
    fc.property(whole, values, (schema, random) => {
      const accepts = validator(schema)
      const seen = shown(schema) ?? {}
      const acceptsSent = validator(seen)
      const isWrapped = !Object.hasOwn(seen, 'anyOf') && Object.hasOwn(seen, 'required')
      for (const value of [...TELLING, ...random]) {
        const { structuredContent } = called(value) as { structuredContent: unknown }
        const isValid = accepts(value)
        if (isValid || (isWrapped && !isObject(value)))
          expect([value, acceptsSent(structuredContent)]).toEqual([value, isValid])
      }
    }),
    { numRuns: 200 },
  )
})
