import { describe, expect, test } from 'vitest'
import { checkArguments } from './schema.ts'

const SCHEMA = {
  type: 'object',
  properties: {
    name: { type: 'string' },
    level: { type: 'integer' },
    ratio: { type: 'number' },
    dry: { type: 'boolean' },
    maybe: { type: ['string', 'null'] },
    mode: { type: 'string', enum: ['fast', 'slow'] },
    tags: { type: 'array', items: { type: 'string' } },
    where: {
      type: 'object',
      properties: { city: { type: 'string' } },
      required: ['city'],
      additionalProperties: false,
    },
    anything: {},
    odd: { type: 'constructor' },
  },
  required: ['name'],
}

describe('checking arguments against a schema', () => {
  test.each<[string, unknown]>([
    ['what is required alone', { name: 'a' }],
    [
      'every type',
      { name: '', level: -3, ratio: 1.5, dry: false, maybe: null, mode: 'slow', tags: ['a'], where: { city: 'Oslo' } },
    ],
    ['an integer written as 2.0', { name: 'a', level: 2.0 }],
    ['arguments the schema does not describe', { name: 'a', other: 1 }],
    ['a property without a type, and one of an unknown type', { name: 'a', anything: [1], odd: 5 }],
  ])('lets %s pass', (_name, args) => {
    expect(checkArguments(SCHEMA, args)).toBeUndefined()
  })

  test.each<[unknown, string]>([
    [{}, 'Argument "name" is required (string)'],
    [{ name: 5 }, 'Argument "name" must be of type string, not number'],
    [{ name: null }, 'Argument "name" must be of type string, not null'],
    [{ name: 'a', level: 1.5 }, 'Argument "level" must be of type integer, not number'],
    [{ name: 'a', level: '1' }, 'Argument "level" must be of type integer, not string'],
    [{ name: 'a', dry: 'true' }, 'Argument "dry" must be of type boolean, not string'],
    [{ name: 'a', maybe: 1 }, 'Argument "maybe" must be of type string or null, not number'],
    [{ name: 'a', mode: 'medium' }, 'Argument "mode" must be one of "fast", "slow"'],
    [{ name: 'a', tags: 'a' }, 'Argument "tags" must be of type array, not string'],
    [{ name: 'a', tags: ['a', 1] }, 'Argument "tags[1]" must be of type string, not number'],
    [{ name: 'a', where: [] }, 'Argument "where" must be of type object, not array'],
    [{ name: 'a', where: {} }, 'Argument "where.city" is required (string)'],
    [{ name: 'a', where: { city: 'Oslo', zip: 1 } }, 'Argument "where.zip" is unknown; expected one of city'],
    [[], 'The arguments must be of type object, not array'],
  ])('says of %j what is wrong', (args, reason) => {
    expect(checkArguments(SCHEMA, args)).toBe(reason)
  })

  test('members that every object inherits are neither present nor described', () => {
    const schema = { type: 'object', properties: {}, required: ['toString'], additionalProperties: false }
    expect(checkArguments(schema, {})).toBe('Argument "toString" is required')
    const hostile: unknown = JSON.parse('{"__proto__": 1}')
    expect(checkArguments({ ...schema, required: [] }, hostile)).toContain('"__proto__" is unknown')
  })
})
