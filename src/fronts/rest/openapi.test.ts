import { Validator } from '@seriousme/openapi-schema-validator'
import { describe, expect, test } from 'vitest'
import { Json, type PlainObject } from '../../wire/json/json.ts'
import { embedSchema, writeOpenApi } from './openapi.ts'

interface Document {
  readonly paths: Record<string, { readonly [method in 'post' | 'get' | 'patch']?: Record<string, unknown> }>
  readonly components: { readonly schemas: Record<string, Record<string, unknown>> }
  readonly tags: readonly Record<string, unknown>[]
}

const write = (tools: readonly PlainObject[], reason?: string): Document =>
  writeOpenApi(
    [{ name: 'default', tools: tools.map(tool => Json.of(tool)), ...(reason !== undefined && { reason }) }],
    '1.2.3',
  ).toValue() as Document

const problems = async (document: object): Promise<unknown> => {
  const validator = new Validator()
  const { valid, errors } = await validator.validate({ ...structuredClone(document) })
  if (valid) validator.resolveRefs()
  return valid ? undefined : errors
}

const TOOL = {
  name: 'echo',
  title: 'Echo',
  description: 'Says it again',
  inputSchema: { type: 'object', properties: { message: { type: 'string' } }, required: ['message'] },
}

describe('the OpenAPI document', () => {
  test('is a valid document, and has one operation for each tool', async () => {
    const document = write([TOOL, { ...TOOL, name: 'ping', inputSchema: { type: 'object' } }])
    expect(await problems(document)).toBeUndefined()
    expect(Object.keys(document.paths)).toEqual([
      '/actions/default/echo',
      '/actions/default/ping',
      '/actions/tasks/{id}',
    ])
    expect(document.paths['/actions/default/echo']?.post).toMatchObject({
      operationId: 'default_echo',
      summary: 'Echo',
      description: 'Says it again',
      tags: ['default'],
      requestBody: { required: true },
    })
    expect(document.paths['/actions/default/ping']?.post).toMatchObject({ requestBody: { required: false } })
    expect(document.components.schemas['default_echo.arguments']).toEqual(TOOL.inputSchema)
  })

  test('is checked by a validator that finds errors', async () => {
    const { paths } = write([TOOL])
    expect(await problems({ openapi: '3.1.0', paths })).toBeDefined()
    expect(await problems({ ...write([TOOL]), paths: { echo: {} } })).toBeDefined()
  })

  test('stays valid whatever the names of tools are, and whatever they lack', async () => {
    const document = write([
      { name: 'a/b {c} ü' },
      { name: 'a_b__c___' },
      { name: 'a b' },
      { name: 'a_b' },
      { name: '__proto__', inputSchema: null },
      { name: '' },
      { title: 'no name' },
      { name: 'twice' },
      { name: 'twice' },
      { name: 'odd', inputSchema: true, outputSchema: [], annotations: { title: 'Odd', x: 1 } },
    ])
    expect(await problems(document)).toBeUndefined()
    expect(Object.keys(document.paths).slice(0, -1)).toEqual(
      ['a%2Fb%20%7Bc%7D%20%C3%BC', 'a_b__c___', 'a%20b', 'a_b', '__proto__', 'twice', 'odd'].map(
        name => `/actions/default/${name}`,
      ),
    )
    const ids = Object.values(document.paths)
      .flatMap(({ post, get, patch }) => [post, get, patch])
      .flatMap(operation => operation?.operationId ?? [])
    expect(new Set(ids).size).toBe(ids.length)
    expect(ids.every(id => /^[A-Za-z0-9_-]+$/.test(String(id)))).toBe(true)
  })

  test('describes the results of a tool', async () => {
    const document = write([{ ...TOOL, outputSchema: { type: 'object', properties: { n: { type: 'integer' } } } }])
    expect(await problems(document)).toBeUndefined()
    expect(document.paths['/actions/default/echo']?.post).toHaveProperty(
      [
        'responses',
        '200',
        'content',
        'application/json',
        'schema',
        'allOf',
        1,
        'properties',
        'structuredContent',
        '$ref',
      ],
      '#/components/schemas/default_echo.result',
    )
  })

  test('says which workspace gave no answer', async () => {
    const document = write([], 'Server "x" is down')
    expect(await problems(document)).toBeUndefined()
    expect(document.tags).toEqual([{ name: 'default', description: 'Incomplete: Server "x" is down' }])
  })
})

describe('a schema in a larger document', () => {
  const embed = (schema: PlainObject) => embedSchema(Json.of(schema), '#/components/schemas/x').toValue()

  test('keeps its references', () => {
    expect(
      embed({
        $schema: 'http://json-schema.org/draft-07/schema#',
        definitions: { a: { type: 'string' }, 'b/c': { $ref: '#' } },
        properties: { p: { $ref: '#/definitions/a' }, list: { items: [{ $ref: '#/definitions/a' }] } },
        anyOf: [{ $ref: '#/definitions/b~1c' }, { $ref: 'https://example.test/other.json#/a' }],
      }),
    ).toEqual({
      definitions: { a: { type: 'string' }, 'b/c': { $ref: '#/components/schemas/x' } },
      properties: {
        p: { $ref: '#/components/schemas/x/definitions/a' },
        list: { items: [{ $ref: '#/components/schemas/x/definitions/a' }] },
      },
      anyOf: [{ $ref: '#/components/schemas/x/definitions/b~1c' }, { $ref: 'https://example.test/other.json#/a' }],
    })
  })

  test('resolves its anchors', () => {
    expect(embed({ $defs: { 'a b': { $anchor: 'here', type: 'string' } }, not: { $ref: '#here' } })).toEqual({
      $defs: { 'a b': { type: 'string' } },
      not: { $ref: '#/components/schemas/x/$defs/a%20b' },
    })
  })

  test('is unchanged if it has its own base URI or only looks like a schema', () => {
    const data = { enum: [{ $ref: '#/a' }], default: { $ref: '#/a' }, properties: { $ref: { type: 'string' } } }
    expect(embed(data)).toEqual(data)
    const named = { properties: { enum: { $ref: '#/$defs/a' } } }
    expect(embed(named)).toEqual({ properties: { enum: { $ref: '#/components/schemas/x/$defs/a' } } })
    const own = { $id: 'https://example.test/x', properties: { a: { $ref: '#/$defs/a' } } }
    expect(embed(own)).toEqual(own)
  })

  test('keeps numbers as they are written', () => {
    const schema = Json.parse(Buffer.from('{"maximum":12345678901234567890,"minimum":1.0}'))
    expect(embedSchema(schema, '#/x').toString()).toBe('{"maximum":12345678901234567890,"minimum":1.0}')
  })
})
