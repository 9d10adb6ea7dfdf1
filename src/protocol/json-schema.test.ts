import { describe, expect, test } from 'vitest'
import { Json, type Plain, type PlainObject } from '../wire/json/json.ts'
import {
  findAnchors,
  isSchemaResource,
  mapSubschemas,
  rebaseSchema,
  resolvePointer,
  subschemasOf,
} from './json-schema.ts'

const REF = { $ref: '#/a' }
const MOVED = { $ref: '#/at/a' }

const SINGLE = [
  ...['not', 'if', 'then', 'else', 'contains', 'items', 'additionalItems', 'additionalProperties', 'propertyNames'],
  ...['unevaluatedItems', 'unevaluatedProperties', 'contentSchema', 'extends', 'x-unknown'],
]
const LISTS = ['allOf', 'anyOf', 'oneOf', 'prefixItems', 'items', 'x-unknown']
const MAPS = ['properties', 'patternProperties', 'dependentSchemas', 'dependencies', '$defs', 'definitions']
const DATA = ['const', 'enum', 'default', 'examples', 'example', 'required', 'dependentRequired', '$vocabulary']

/** For each keyword: a schema with `inner` under it, and where `inner` is found. */
const PLACES: [text: string, hold: (inner: Plain) => PlainObject, found: object[]][] = [
  ...SINGLE.map((keyword): (typeof PLACES)[number] => [
    keyword,
    inner => ({ [keyword]: inner }),
    [{ keyword, name: undefined }],
  ]),
  ...LISTS.map((keyword): (typeof PLACES)[number] => [
    `${keyword}, a list`,
    inner => ({ [keyword]: [true, inner] }),
    [{ keyword, name: '1' }],
  ]),
  ...MAPS.map((keyword): (typeof PLACES)[number] => [
    `${keyword}, a map`,
    inner => ({ [keyword]: { $ref: inner, const: inner, b: false, c: ['name'] } }),
    [
      { keyword, name: '$ref' },
      { keyword, name: 'const' },
    ],
  ]),
]

describe('schemas inside a schema', () => {
  test.each(PLACES)('are found and converted under %s', (_text, hold, found) => {
    const schema = Json.of(hold(REF))
    expect(subschemasOf(schema)).toMatchObject(found)
    expect(rebaseSchema(schema, '#/at').toValue()).toEqual(hold(MOVED))
    expect(mapSubschemas(schema, () => Json.of({ new: 1 })).toValue()).toEqual(hold({ new: 1 }))
  })

  test.each(DATA)('are not looked for in the data of %s', keyword => {
    for (const data of [REF, [REF], { a: REF }]) {
      const schema = Json.of({ [keyword]: data })
      expect(subschemasOf(schema)).toEqual([])
      expect(rebaseSchema(schema, '#/at')).toBe(schema)
    }
  })

  test('a schema that contains nothing to convert stays the same value', () => {
    const schema = Json.parse(
      Buffer.from('{"maximum":12345678901234567890,"properties":{"a":{"minimum":1.0},"b":true}}'),
    )
    expect(mapSubschemas(schema, inner => inner)).toBe(schema)
  })

  test.each<Plain>([true, 'x', ['x'], null])('%j has none', value => {
    expect(subschemasOf(Json.of(value))).toEqual([])
    expect(mapSubschemas(Json.of(value), () => Json.empty).toValue()).toEqual(value)
  })
})

describe('references of a schema that moves', () => {
  test.each<[string, PlainObject, PlainObject]>([
    ['to the root', { $ref: '#' }, { $ref: '#/at' }],
    ['dynamic ones', { $dynamicRef: '#/a' }, { $dynamicRef: '#/at/a' }],
    ['to other documents', { $ref: 'https://e.example/s#/a' }, { $ref: 'https://e.example/s#/a' }],
    ['of a schema with its own id', { not: { $id: 'urn:x', ...REF } }, { not: { $id: 'urn:x', ...REF } }],
    ['beside an anchor of draft 7', { not: { $id: '#x', ...REF } }, { not: { $id: '#x', ...MOVED } }],
    ['to anchors', { $ref: '#x', not: { $anchor: 'x' } }, { $ref: '#x', not: { $anchor: 'x' } }],
    ['that are no text', { $ref: { $ref: '#/a' } }, { $ref: { $ref: '#/at/a' } }],
  ])('%s', (_name, schema, expected) => {
    expect(rebaseSchema(Json.of(schema), '#/at').toValue()).toEqual(expected)
  })

  test.each<[string, PlainObject, PlainObject]>([
    ['$anchor', { $ref: '#x', not: { $anchor: 'x', type: 'null' } }, { $ref: '#/at/not', not: { type: 'null' } }],
    ['$id of draft 7', { $ref: '#x', not: { $id: '#x' } }, { $ref: '#/at/not', not: {} }],
    ['$dynamicRef', { $dynamicRef: '#x', not: { $anchor: 'x' } }, { $dynamicRef: '#/at/not', not: {} }],
    ['the root', { $anchor: 'x', not: { $ref: '#x' } }, { not: { $ref: '#/at' } }],
    [
      'a name with odd characters',
      { $ref: '#x', $defs: { 'a/b~c#d e\ud800': { $anchor: 'x' } } },
      {
        $ref: '#/at/$defs/a~1b~0c%23d%20e%EF%BF%BD',
        $defs: { 'a/b~c#d e\ud800': {} },
      },
    ],
    ['a list', { $ref: '#x', oneOf: [{}, { $anchor: 'x' }] }, { $ref: '#/at/oneOf/1', oneOf: [{}, {}] }],
    [
      'dependencies',
      { $ref: '#x', dependencies: { a: ['b'], c: { $anchor: 'x' } } },
      {
        $ref: '#/at/dependencies/c',
        dependencies: { a: ['b'], c: {} },
      },
    ],
    ['an unknown anchor', { $ref: '#x' }, { $ref: '#x' }],
    [
      'an anchor of another schema',
      { $ref: '#x', not: { $id: 'urn:y', $anchor: 'x' } },
      {
        $ref: '#x',
        not: { $id: 'urn:y', $anchor: 'x' },
      },
    ],
  ])('anchors become pointers: %s', (_name, schema, expected) => {
    const json = Json.of(schema)
    expect(rebaseSchema(json, '#/at', findAnchors(json)).toValue()).toEqual(expected)
  })
})

test.each<[Plain | undefined, boolean]>([
  ['urn:x', true],
  ['#x', false],
  ['', false],
  [7, false],
  [undefined, false],
])('a schema with $id %j is a resource of its own: %s', ($id, expected) => {
  expect(isSchemaResource(Json.of({ $id }))).toBe(expected)
})

test.each<[string, Plain | undefined]>([
  ['#', { $defs: { 'a/b %': [{ x: 1 }] } }],
  ['#/$defs/a~1b%20%25/0/x', 1],
  ['#/$defs/a~1b %/0', { x: 1 }],
  ['#/$defs/none', undefined],
  ['#anchor', undefined],
  ['other.json#/x', undefined],
])('%s leads to %j', (reference, expected) => {
  const schema = Json.of({ $defs: { 'a/b %': [{ x: 1 }] } })
  expect(resolvePointer(schema, reference)?.toValue()).toEqual(expected)
})
