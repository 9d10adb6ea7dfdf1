import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Json, type PlainObject } from '../wire/json/json.ts'
import {
  checkParamHeaders,
  decodeHeaderValue,
  encodeHeaderValue,
  mirrorsParams,
  readParamHeaders,
  withoutParamHeaders,
} from './param-headers.ts'

const schemaOf = (properties: PlainObject, more: PlainObject = {}): Json =>
  Json.of({ type: 'object', properties, ...more })

describe('reading x-mcp-header annotations', () => {
  test('finds primitive properties at any depth of "properties"', () => {
    const schema = schemaOf({
      region: { type: 'string', 'x-mcp-header': 'Region' },
      plain: { type: 'string' },
      where: { type: 'object', properties: { level: { type: 'integer', 'x-mcp-header': 'Level' } } },
      dry: { type: ['boolean', 'null'], 'x-mcp-header': 'Dry-Run' },
    })
    expect(readParamHeaders(schema)).toEqual({
      kind: 'valid',
      params: [
        { path: ['region'], header: 'mcp-param-region' },
        { path: ['where', 'level'], header: 'mcp-param-level' },
        { path: ['dry'], header: 'mcp-param-dry-run' },
      ],
    })
  })

  test.each<[string, Json]>([
    ['an empty name', schemaOf({ a: { type: 'string', 'x-mcp-header': '' } })],
    ['a name with a space', schemaOf({ a: { type: 'string', 'x-mcp-header': 'A B' } })],
    ['a name with a line break', schemaOf({ a: { type: 'string', 'x-mcp-header': 'A\r\nB' } })],
    ['a name beyond ASCII', schemaOf({ a: { type: 'string', 'x-mcp-header': 'Région' } })],
    ['a name that is no string', schemaOf({ a: { type: 'string', 'x-mcp-header': 7 } })],
    ['a number property', schemaOf({ a: { type: 'number', 'x-mcp-header': 'A' } })],
    ['an object property', schemaOf({ a: { type: 'object', 'x-mcp-header': 'A' } })],
    ['an array property', schemaOf({ a: { type: 'array', 'x-mcp-header': 'A' } })],
    ['a property of no type', schemaOf({ a: { 'x-mcp-header': 'A' } })],
    ['a property of two types', schemaOf({ a: { type: ['string', 'integer'], 'x-mcp-header': 'A' } })],
    ['the root', schemaOf({}, { 'x-mcp-header': 'A' })],
    ['items', schemaOf({ a: { type: 'array', items: { type: 'string', 'x-mcp-header': 'A' } } })],
    ['anyOf', schemaOf({}, { anyOf: [{ properties: { a: { type: 'string', 'x-mcp-header': 'A' } } }] })],
    [
      'then',
      schemaOf({}, Object.fromEntries([['then', { properties: { a: { type: 'string', 'x-mcp-header': 'A' } } }]])),
    ],
    ['$defs', schemaOf({}, { $defs: { a: { type: 'string', 'x-mcp-header': 'A' } } })],
    [
      'two names that differ by case only',
      schemaOf({ a: { type: 'string', 'x-mcp-header': 'Same' }, b: { type: 'string', 'x-mcp-header': 'SAME' } }),
    ],
  ])('refuses %s and says why', (_name, schema) => {
    const found = readParamHeaders(schema)
    expect(found).toEqual({ kind: 'invalid', reason: expect.stringContaining('x-mcp-header') })
  })

  test('takes data and property names that only look like annotations for what they are', () => {
    const schema = schemaOf({
      'x-mcp-header': { type: 'string' },
      a: { type: 'object', default: { 'x-mcp-header': 'A' } },
    })
    expect(readParamHeaders(schema)).toEqual({ kind: 'valid', params: [] })
  })

  test.each<[string, PlainObject]>([
    ['dependencies', { dependencies: { 'x-mcp-header': ['a'], a: ['x-mcp-header'] } }],
    ['dependentRequired', { dependentRequired: { 'x-mcp-header': ['a'] } }],
    ['dependentSchemas', { dependentSchemas: { 'x-mcp-header': { required: ['a'] } } }],
    ['patternProperties', { patternProperties: { 'x-mcp-header': { type: 'string' } } }],
  ])('takes a property name in %s for a name', (_keyword, more) => {
    expect(readParamHeaders(schemaOf({}, more))).toEqual({ kind: 'valid', params: [] })
    expect(withoutParamHeaders(schemaOf({}, more)).toValue()).toEqual({ type: 'object', properties: {}, ...more })
  })

  test('removes annotations from every subschema, and nothing from data', () => {
    const schema = (annotation: PlainObject) =>
      schemaOf(
        { a: { type: 'string', ...annotation, default: { 'x-mcp-header': 'kept' } }, b: true },
        { dependencies: { a: { ...annotation, required: ['b'] } }, prefixItems: [annotation], ...annotation },
      )
    expect(withoutParamHeaders(schema({ 'x-mcp-header': 'A' })).toValue()).toEqual(schema({}).toValue())
    expect(withoutParamHeaders(Json.of(true)).toValue()).toBe(true)
  })
})

describe('header values', () => {
  test.each([
    ['us-west1', 'us-west1'],
    ['Hello, 世界', '=?base64?SGVsbG8sIOS4lueVjA==?='],
    [' padded ', '=?base64?IHBhZGRlZCA=?='],
    ['line1\nline2', '=?base64?bGluZTEKbGluZTI=?='],
    ['=?base64?literal?=', '=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?='],
    ['=?base64?', '=?base64?'],
    ['', ''],
  ])('%j is written %s and read back', (value, header) => {
    expect(encodeHeaderValue(value)).toBe(header)
    expect(decodeHeaderValue(header)).toBe(value)
  })

  test('every text survives, in visible ASCII, space and tab alone', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), text => {
        const header = encodeHeaderValue(text)
        expect(header).toMatch(/^[\x20-\x7e\t]*$/)
        expect(header).toBe(header.trim())
        expect(decodeHeaderValue(header)).toBe(text)
      }),
    )
  })

  test.each([
    ['padding that is missing', '=?base64?SGVsbG8?='],
    ['characters that are not base64', '=?base64?SGVs!!!bG8=?='],
    ['bytes that are not UTF-8', '=?base64?/w==?='],
    ['raw characters beyond ASCII', 'Région'],
    ['control characters', 'a\u0007b'],
  ])('%s are no value', (_name, header) => {
    expect(decodeHeaderValue(header)).toBeUndefined()
  })

  test('a sentinel with one side missing is taken literally', () => {
    expect(decodeHeaderValue('=?base64?SGVsbG8=')).toBe('=?base64?SGVsbG8=')
    expect(decodeHeaderValue('SGVsbG8=?=')).toBe('SGVsbG8=?=')
  })
})

describe('comparing headers with arguments', () => {
  const schema = schemaOf({
    region: { type: 'string', 'x-mcp-header': 'Region' },
    level: { type: 'integer', 'x-mcp-header': 'Level' },
    dry: { type: 'boolean', 'x-mcp-header': 'Dry' },
  })
  const compare = (args: string, headers: Record<string, string>): string | undefined =>
    checkParamHeaders(schema, Json.parse(Buffer.from(args)), new Map(Object.entries(headers)))

  test.each<[string, string, Record<string, string>]>([
    ['the same text', '{"region":"eu"}', { 'mcp-param-region': 'eu' }],
    ['the same text in base64', '{"region":"Zürich"}', { 'mcp-param-region': encodeHeaderValue('Zürich') }],
    ['an integer written otherwise', '{"level":42}', { 'mcp-param-level': '42.0' }],
    [
      'a number that no double holds, written alike',
      '{"level":12345678901234567890}',
      { 'mcp-param-level': '12345678901234567890' },
    ],
    ['a boolean', '{"dry":true}', { 'mcp-param-dry': 'true' }],
    ['null and no header', '{"region":null}', {}],
    ['no argument and no header', '{}', {}],
    ['a header that no annotation names', '{}', { 'mcp-param-other': 'x' }],
    ['an object where a text belongs, left to the check of arguments', '{"region":{}}', {}],
  ])('accepts %s', (_name, args, headers) => {
    expect(compare(args, headers)).toBeUndefined()
  })

  test.each<[string, string, Record<string, string>]>([
    ['another text', '{"region":"eu"}', { 'mcp-param-region': 'us' }],
    ['another case', '{"region":"eu"}', { 'mcp-param-region': 'EU' }],
    ['a missing header', '{"region":"eu"}', {}],
    ['a header without an argument', '{}', { 'mcp-param-region': 'eu' }],
    ['a header beside null', '{"region":null}', { 'mcp-param-region': 'null' }],
    ['a broken encoding', '{"region":"Hello"}', { 'mcp-param-region': '=?base64?SGVsbG8?=' }],
    ['another number', '{"level":42}', { 'mcp-param-level': '43' }],
    ['a number in words', '{"level":42}', { 'mcp-param-level': '0x2a' }],
    [
      'a number a double would confuse',
      '{"level":12345678901234567890}',
      { 'mcp-param-level': '12345678901234567891' },
    ],
    ['an empty header for zero', '{"level":0}', { 'mcp-param-level': '' }],
    ['another boolean', '{"dry":true}', { 'mcp-param-dry': 'True' }],
  ])('refuses %s and names the header', (_name, args, headers) => {
    expect(compare(args, headers)).toMatch(/^Header mismatch: mcp-param-(region|level|dry) /)
  })

  test.each(['{"region":"eu","Region":"us"}', '{"region":"us","region":"eu"}', '{"region":"eu","region\\u0000":"us"}'])(
    'refuses an argument that some servers read from another member: %s',
    args => {
      expect(compare(args, { 'mcp-param-region': 'eu' })).toMatch(/^Header mismatch: .*"region"/)
    },
  )

  test('a long argument is not repeated in full', () => {
    expect(compare(JSON.stringify({ region: 'x'.repeat(5000) }), {})?.length).toBeLessThan(200)
  })

  test('an invalid schema asks for nothing', () => {
    const broken = schemaOf({ a: { type: 'string', 'x-mcp-header': 'A B' } })
    expect(checkParamHeaders(broken, Json.of({ a: 'x' }), new Map())).toBeUndefined()
  })
})

describe('who has to mirror', () => {
  const caller = { workspace: 'w', principal: undefined, capabilities: Json.empty, headers: new Map() }

  test('modern callers without a session do; legacy sessions and pipes do not', () => {
    expect(mirrorsParams({ ...caller, revision: '2026-07-28' })).toBe(true)
    expect(mirrorsParams({ ...caller, revision: '2026-07-28', session: 'pipe-1' })).toBe(false)
    expect(mirrorsParams({ ...caller, revision: '2025-11-25', session: 's' })).toBe(false)
    expect(mirrorsParams({ ...caller, revision: '2025-03-26' })).toBe(false)
  })
})
