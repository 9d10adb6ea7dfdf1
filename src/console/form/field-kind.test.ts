import { describe, expect, test } from 'vitest'
import { ExactNumber } from '../exact-json.ts'
import { branchAt, fieldShape } from './field-kind.ts'
import {
  InvalidText,
  moveItem,
  pathKey,
  renameMember,
  sendableValue,
  setValue,
  valueAt,
  valueText,
} from './form-value.ts'
import { initialValue } from './initial-value.ts'
import { THEN } from './resolve-schema.ts'

const shape = (schema: object, value?: unknown) => fieldShape(schema, { schema }, value)

describe('how a schema is shown', () => {
  test.each<[object, string]>([
    [{ type: 'string' }, 'text'],
    [{ format: 'email' }, 'text'],
    [{ type: 'integer' }, 'number'],
    [{ type: 'boolean' }, 'boolean'],
    [{ enum: ['a', 'b'] }, 'options'],
    [{ enum: ['a'] }, 'fixed'],
    [{ const: 1 }, 'fixed'],
    [{ oneOf: [{ const: 'a', title: 'A' }, { const: 'b' }] }, 'options'],
    [{ type: 'array', items: { enum: ['a', 'b'] } }, 'several'],
    [{ type: 'array', items: { anyOf: [{ const: 'a', title: 'A' }, { const: 'b' }] } }, 'several'],
    [{ type: 'array', items: { type: 'string' } }, 'list'],
    [{ prefixItems: [{}], type: 'array' }, 'list'],
    [{ properties: { a: {} } }, 'object'],
    [{ type: ['string', 'number'] }, 'choice'],
    [{ anyOf: [{ type: 'string' }, { type: 'object', properties: { a: {} } }] }, 'choice'],
    [{ properties: { a: {} }, anyOf: [{ required: ['a'] }, { required: ['b'] }] }, 'object'],
    [{}, 'json'],
    [{ $ref: 'https://example.com/x' }, 'json'],
    [{ $ref: '#' }, 'json'],
    [{ anyOf: [{ $ref: '#' }] }, 'json'],
    [{ allOf: [{ $ref: '#' }, { $ref: '#' }] }, 'json'],
    [{ type: 'array', items: { $ref: '#' } }, 'list'],
  ])('%j is %s', (schema, kind) => {
    expect(shape(schema).kind).toBe(kind)
  })

  test('null is taken out of types and alternatives', () => {
    expect(shape({ type: ['string', 'null'] })).toMatchObject({ kind: 'text', isNullable: true })
    expect(shape({ anyOf: [{ type: 'integer' }, { type: 'null' }] })).toMatchObject({
      kind: 'number',
      isNullable: true,
    })
    expect(shape({ type: 'string', nullable: true })).toMatchObject({ kind: 'text', isNullable: true })
  })

  test('options have their titles', () => {
    expect(shape({ oneOf: [{ const: 'a', title: 'A' }, { const: 2 }] }).options).toEqual([
      { value: 'a', label: 'A' },
      { value: 2, label: '2' },
    ])
    expect(shape({ enum: ['x', 'y'], enumNames: ['Ex'] }).options?.map(({ label }) => label)).toEqual(['Ex', 'y'])
  })

  test('alternatives are named by title, constant, members or type', () => {
    const schema = {
      properties: { shared: { type: 'string' } },
      oneOf: [
        { title: 'First', properties: { a: {} } },
        { properties: { kind: { const: 'mail' }, to: {} } },
        { properties: { x: {}, y: {} } },
        { type: 'array', items: {} },
      ],
    }
    const { branches = [] } = shape(schema)
    expect(branches.map(({ label }) => label)).toEqual(['First', 'kind: mail', 'x, y', 'list'])
    expect(Object.keys((branches[0]?.schema.properties ?? {}) as object)).toEqual(['shared', 'a'])
  })

  test('allOf is merged', () => {
    const schema = {
      allOf: [
        { $ref: '#/$defs/base' },
        { properties: { b: { type: 'number', maximum: 5 } }, required: ['b'] },
        { properties: { b: { minimum: 1 } } },
      ],
      $defs: { base: { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] } },
    }
    const { schema: merged } = shape(schema)
    expect(merged.required).toEqual(['a', 'b'])
    expect(Object.keys(merged.properties as object)).toEqual(['a', 'b'])
    expect(fieldShape((merged.properties as { b: object }).b, { schema }, undefined)).toMatchObject({
      kind: 'number',
      schema: { minimum: 1, maximum: 5 },
    })
  })

  test('a condition decides by the value', () => {
    const schema = { type: 'object', properties: { a: {} }, if: { required: ['a'] }, [THEN]: { required: ['b'] } }
    expect(shape(schema, { a: 1 }).schema.required).toEqual(['b'])
    expect(shape(schema, {}).schema.required).toBeUndefined()
  })

  test('the alternative follows the value until one is chosen', () => {
    const { branches = [] } = shape({ oneOf: [{ type: 'string' }, { type: 'object', properties: { a: {} } }] })
    expect(branchAt(branches, { a: 1 }, [], new Map(), { schema: {} })).toBe(1)
    expect(branchAt(branches, 'x', [], new Map(), { schema: {} })).toBe(0)
    expect(branchAt(branches, 'x', ['p'], new Map([['/p', 1]]), { schema: {} })).toBe(1)
  })
})

describe('what a form begins with', () => {
  const start = (schema: object): unknown => initialValue(schema, { schema })

  test('defaults, constants and required members', () => {
    const schema = {
      type: 'object',
      properties: {
        name: { type: 'string' },
        limit: { type: 'integer', default: 10 },
        filter: { type: 'object', properties: { on: { type: 'boolean' } }, required: ['on'] },
        more: { type: 'object', properties: { x: { default: 1 } } },
        kind: { const: 'k' },
        tags: { type: 'array', items: { type: 'string' }, minItems: 2 },
        nothing: { anyOf: [{ type: 'string' }, { type: 'null' }], default: null },
      },
      required: ['name', 'filter', 'kind', 'tags'],
    }
    expect(start(schema)).toEqual({
      limit: 10,
      filter: { on: false },
      kind: 'k',
      tags: [undefined, undefined],
      nothing: null,
    })
  })

  test('a schema that requires itself ends', () => {
    const node = { type: 'object', properties: { next: { $ref: '#/$defs/node' } }, required: ['next'] }
    expect(JSON.stringify(start({ $ref: '#/$defs/node', $defs: { node } })).length).toBeLessThan(200)
    expect(start({ $ref: '#' })).toBeUndefined()
  })
})

describe('values', () => {
  test('are changed at a path, without changing the original', () => {
    const before = { a: [{ b: 1 }], c: 2 }
    expect(setValue(before, ['a', 0, 'b'], 5)).toEqual({ a: [{ b: 5 }], c: 2 })
    expect(setValue(before, ['c'], undefined)).toEqual({ a: [{ b: 1 }] })
    expect(setValue(undefined, ['x', 'y'], 1)).toEqual({ x: { y: 1 } })
    expect(before).toEqual({ a: [{ b: 1 }], c: 2 })
    expect(valueAt(before, ['a', 0, 'b'])).toBe(1)
    expect(valueAt({}, ['constructor'])).toBeUndefined()
  })

  test('a member called __proto__ is a member', () => {
    const set = setValue({}, ['__proto__'], 1)
    expect(Object.keys(set as object)).toEqual(['__proto__'])
    expect(JSON.parse(valueText(set))).toEqual(JSON.parse('{"__proto__":1}'))
  })

  test('items move, members are renamed in place', () => {
    expect(moveItem([1, 2, 3], 0, 2)).toEqual([2, 3, 1])
    expect(moveItem([1, 2], 0, -1)).toEqual([1, 2])
    expect(JSON.stringify(renameMember({ a: 1, b: 2 }, 'a', 'z'))).toBe('{"z":1,"b":2}')
  })

  test('are sent exactly', () => {
    const value = { id: new ExactNumber('9007199254740993'), bad: new InvalidText('1x', ''), list: [1, undefined] }
    expect(sendableValue(value)).toEqual({ id: value.id, bad: '1x', list: [1, null] })
    expect(valueText(value, '')).toBe('{"id":9007199254740993,"bad":"1x","list":[1,null]}')
  })

  test('a path is a JSON pointer', () => {
    expect(pathKey(['a/b', 0, '~'])).toBe('/a~1b/0/~0')
  })
})
