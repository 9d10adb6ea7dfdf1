import { describe, expect, test } from 'vitest'
import { ExactNumber } from '../exact-json.ts'
import { InvalidText, pathKey } from './form-value.ts'
import { THEN } from './resolve-schema.ts'
import { testPattern } from './safe-pattern.ts'
import { fits, validate } from './validate.ts'

const problemsOf = (schema: unknown, value: unknown, chosen?: ReadonlyMap<string, number>): string[] =>
  validate(schema, value, { schema }, chosen).map(({ path, message }) => `${pathKey(path)}: ${message}`)

test.each<[string, unknown, unknown, string[]]>([
  ['type', { type: 'string' }, 1, [': Expected text']],
  ['types', { type: ['string', 'null'] }, null, []],
  ['integer', { type: 'integer' }, 1.5, [': Expected a whole number']],
  ['large integer', { type: 'integer', maximum: 10 }, new ExactNumber('9007199254740993'), [': Must be at most 10']],
  [
    'large bound',
    { minimum: new ExactNumber('9007199254740993') },
    new ExactNumber('9007199254740992'),
    [': Must be at least 9007199254740993'],
  ],
  ['exact fraction', { type: 'integer' }, new ExactNumber('1.5'), [': Expected a whole number']],
  ['enum', { enum: ['a', 2, null] }, 'b', [': Must be one of "a", 2, null']],
  ['const', { const: { a: 1 } }, { a: 2 }, [': Must be {"a":1}']],
  ['minLength 1', { minLength: 1 }, '', [': Must not be empty']],
  ['length counts characters', { maxLength: 2 }, '😀😀', []],
  ['pattern', { pattern: '^a+$' }, 'b', [': Must match the pattern ^a+$']],
  ['minimum', { minimum: 3 }, 2, [': Must be at least 3']],
  ['exclusive', { exclusiveMaximum: 3 }, 3, [': Must be less than 3']],
  ['exclusive of draft 4', { minimum: 3, exclusiveMinimum: true }, 3, [': Must be more than 3']],
  ['multipleOf', { multipleOf: 0.1 }, 0.3, []],
  ['multipleOf', { multipleOf: 5 }, 7, [': Must be a multiple of 5']],
  ['required', { required: ['a', 'b'] }, { a: 1 }, ['/b: Required']],
  [
    'nested',
    { properties: { a: { properties: { b: { type: 'number' } } } } },
    { a: { b: 'x' } },
    ['/a/b: Expected a number'],
  ],
  [
    'closed object',
    { properties: { a: {} }, additionalProperties: false },
    { a: 1, 'x/y': 2 },
    ['/x~1y: Not allowed here'],
  ],
  ['other members', { additionalProperties: { type: 'number' } }, { a: 'x' }, ['/a: Expected a number']],
  [
    'patterns of names',
    { patternProperties: { '^n': { type: 'number' } }, additionalProperties: false },
    { n1: 'x', m: 1 },
    ['/n1: Expected a number', '/m: Not allowed here'],
  ],
  ['propertyNames', { propertyNames: { maxLength: 1 } }, { ab: 1 }, ['/ab: Name: At most 1 characters, this has 2']],
  ['dependentRequired', { dependentRequired: { a: ['b'] } }, { a: 1 }, ['/b: Required']],
  [
    'dependencies of draft 7',
    { dependencies: { a: ['b'], c: { required: ['d'] } } },
    { a: 1, c: 1 },
    ['/b: Required', '/d: Required'],
  ],
  ['items', { items: { type: 'number' } }, [1, 'x'], ['/1: Expected a number']],
  ['an item without a value', { items: { type: 'number' } }, [1, undefined], ['/1: Required']],
  ['prefixItems', { prefixItems: [{ type: 'string' }], items: false }, ['a', 1], ['/1: This value is not allowed']],
  [
    'tuple of draft 7',
    { items: [{ type: 'string' }], additionalItems: { type: 'number' } },
    ['a', 'b'],
    ['/1: Expected a number'],
  ],
  ['uniqueItems', { uniqueItems: true }, [{ a: 1 }, { a: 1 }], ['/1: The same item occurs twice']],
  ['minItems', { minItems: 2 }, [1], [': At least 2 items, this has 1']],
  ['contains', { contains: { const: 1 } }, [2], [': No item is of the kind that is needed']],
  ['not', { not: { type: 'string' } }, 'x', [': This value is not allowed']],
  ['anyOf', { anyOf: [{ type: 'string' }, { type: 'number' }] }, true, [': Expected text']],
  [
    'oneOf twice',
    { oneOf: [{ type: 'number' }, { minimum: 1 }] },
    2,
    [': Fits 2 of the alternatives; it must fit one'],
  ],
  ['oneOf of constants', { oneOf: [{ const: 'a', title: 'A' }, { const: 'b' }] }, 'c', [': Must be one of "a", "b"']],
  [
    'allOf',
    { allOf: [{ required: ['a'] }, { properties: { a: { type: 'number' } } }] },
    { a: 'x' },
    ['/a: Expected a number'],
  ],
  ['allOf with two patterns', { allOf: [{ pattern: 'a' }, { pattern: 'b' }] }, 'a', [': Must match the pattern b']],
  [
    'if',
    { if: { required: ['a'] }, else: { required: ['b'] }, [THEN]: { required: ['c'] } },
    { a: 1 },
    ['/c: Required'],
  ],
  ['reference', { $ref: '#/$defs/x', $defs: { x: { type: 'number' } } }, 'a', [': Expected a number']],
  ['anchor', { $ref: '#n', $defs: { x: { $anchor: 'n', type: 'number' } } }, 'a', [': Expected a number']],
  [
    'anchor of draft 7',
    { $ref: '#n', definitions: { x: { $id: '#n', type: 'number' } } },
    'a',
    [': Expected a number'],
  ],
  ['a reference elsewhere is not checked', { $ref: 'https://example.com/s' }, 1, []],
  ['a text that is no number', { type: 'number' }, new InvalidText('1x', 'Expected a number'), [': Expected a number']],
  ['true', true, { a: 1 }, []],
])('%s: %j with %j', (_name, schema, value, expected) => {
  expect(problemsOf(schema, value)).toEqual(expected)
})

test.each([
  ['date', '2026-02-28', '2026-02-30'],
  ['date-time', '2026-01-31T12:00:00.5+01:00', '2026-01-31 12:00'],
  ['email', 'ann@example.com', 'ann@'],
  ['uri', 'urn:x:y', 'example.com'],
  ['uuid', '123e4567-e89b-42d3-a456-426614174000', '123'],
  ['ipv4', '192.0.2.1', '192.0.2.256'],
])('format %s', (format, good, bad) => {
  expect(fits({ format }, good, { schema: {} })).toBe(true)
  expect(problemsOf({ format }, bad)[0]).toContain(`Expected ${format}`)
  expect(problemsOf({ format: 'unknown' }, bad)).toEqual([])
})

test('the problems of the chosen alternative are shown', () => {
  const schema = { oneOf: [{ required: ['a', 'b'] }, { required: ['c'] }] }
  expect(problemsOf(schema, {})).toEqual(['/c: Required'])
  expect(problemsOf(schema, {}, new Map([['', 0]]))).toEqual(['/a: Required', '/b: Required'])
})

describe('hostile schemas end soon', () => {
  // The bound is generous, because the machine may be busy: this finds work that grows without one.
  const within = (ms: number, run: () => unknown): void => {
    const started = performance.now()
    run()
    expect(performance.now() - started).toBeLessThan(ms)
  }

  test('recursion without and with values', () => {
    const tree = { $ref: '#/$defs/node', $defs: { node: { properties: { next: { $ref: '#/$defs/node' } } } } }
    let value: object = {}
    for (let depth = 0; depth < 1000; depth++) value = { next: value }
    within(8000, () => problemsOf(tree, value))
    within(8000, () => problemsOf({ $ref: '#' }, 1))
    within(8000, () => problemsOf({ allOf: [{ $ref: '#' }] }, 1))
    within(8000, () => problemsOf({ anyOf: [{ $ref: '#' }, { $ref: '#' }] }, 1))
    within(8000, () => problemsOf({ allOf: [{ $ref: '#' }, { $ref: '#' }] }, 1))
  })

  test.each([
    ...['^(a+)+$', '^(a|aa)+$', '^(a|a)*$', '^((a*)b?)*$', '(.*)*x', '\\d*\\d*\\d*\\d*\\d*x', '(a)\\1*'],
    ...['^(?:a?){40}a{40}$', '.*.*.*=', '\\w*a\\w*a\\w*a\\w*=', '^(?:a{0,9}){30}$', '^a?a?a?a?a?a?a?a?a?a?(a?){25}b$'],
    ...[
      '(?:a|a)(?:a|a){40}b',
      '(?=(?:a+)+b)',
      '^(?:(?:a|b?)*,?)*$',
      '^(([a-z])+.)+[A-Z]([a-z])+$',
      '(?<=(a+)+)b',
      '(a*)*',
    ],
    ...['^(?:[^b]+b?)+c$', '(?:(?:(?:a?)?)?){30}a{30}', 'a*?a*?a*?a*?b', '(ab){999999999}'],
    ...['^(?:\\p{0,40}){40}b$', '^(?:\\u{1,40}){40}b$', '^(?:\\P{0,40}){40}b$', '^(?:\\u{40}?){40}b\\-$'],
  ])('the pattern %s', pattern => {
    for (const text of [
      `${'a'.repeat(40)}!`,
      `${'p'.repeat(30)}!`,
      `${'u'.repeat(30)}!`,
      `${'P'.repeat(30)}!`,
      '1'.repeat(900),
      'a'.repeat(1000),
      `${'ab'.repeat(400)}!`,
    ])
      within(500, () => testPattern(pattern, text))
  })

  test('many texts in one value', () => {
    const texts = [...Array.from({ length: 999 }, () => 'a'.repeat(100)), '!'.repeat(100)]
    const pattern = '^\\w*\\w*$'
    const wrong = `: Must match the pattern ${pattern}`
    expect(problemsOf({ items: { pattern } }, texts.slice(-100))).toEqual([`/99${wrong}`])
    expect(problemsOf({ items: { pattern } }, texts)).toEqual([]) // the rest is left to the server
    const members = Object.fromEntries(texts.map((text, at) => [`${text}${at}`, at]))
    expect(problemsOf({ patternProperties: { [pattern]: { maximum: 10 } } }, members)).not.toContain(
      `/${'a'.repeat(100)}998: Must be at most 10`,
    )
    expect(problemsOf({ pattern }, '!')).toEqual([wrong]) // the next value has a budget of its own
  })

  test.each([
    ['optional characters', Array.from({ length: 500 }, (_, at) => `${String.fromCharCode(0x4e00 + at)}?`).join('')],
    ['in groups', `${'(?:'.repeat(29)}${'a?-?b?_?'.repeat(105)}${')?'.repeat(29)}`],
  ])('the estimate of a long pattern: %s', (_what, pattern) => {
    within(3000, () => {
      for (let length = 0; length < 60; length++) testPattern(pattern, '!'.repeat(length))
    })
  })

  test('ordinary patterns are checked', () => {
    expect(testPattern('^[a-z]+(-[a-z0-9]{1,8})?$', 'en-us')).toBe(true)
    expect(testPattern('^[A-Z]{2}\\d{4}$', 'AB123')).toBe(false)
    expect(testPattern('^\\w+@\\w+\\.\\w+$', 'x')).toBe(false)
    expect(testPattern('[', 'x')).toBeUndefined()
  })

  test.each([
    ['^[a-z0-9]+(?:-[a-z0-9]+)*$', 'a-b-c'.repeat(150), true],
    ['^[^\\s@]+@[^\\s@]+\\.[^\\s@]+$', `${'a'.repeat(400)}@example.com`, true],
    ['^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$', '0f0f0f0f-0f0f-0f0f-0f0f-0f0f0f0f0f0f', true],
    ['^((25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)(\\.|$)){4}$', '192.168.1.300', false],
    ['^(?=.*[A-Z])(?=.*\\d).{8,64}$', 'Correct7horse', true],
    ['^https?://[^\\s/]+(/.*)?$', `https://example.com/${'x'.repeat(900)}`, true],
    ['^(?:[a-z]+\\.)*[a-z]+$', 'a.'.repeat(200), false],
    ['^\\p{L}+$', 'Zoë', true],
    ['^\\p{Script=Greek}\\u{1F642}$', 'α🙂', true],
    ['^\\p{2}\\-$', 'pp-', true], // not a pattern of Unicode: two p
    ['^\\_[🙂]{2}$', '_🙂', true], // two halves
    ['^.{1,500}$', 'x'.repeat(501), false],
    ['^\\[x\\]$|^🙂+$', '🙂🙂', true],
  ])('%s is checked', (pattern, text, expected) => {
    expect(testPattern(pattern, text)).toBe(expected)
  })
})
