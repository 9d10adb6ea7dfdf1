import fc from 'fast-check'
import { expect, test } from 'vitest'
import { cpuMs } from '../../test/support/cpu-time.ts'
import type { Revision } from '../protocol/revisions.ts'
import { Json, type Plain, type PlainObject } from '../wire/json/json.ts'
import { objectOf } from '../wire/json/map-members.ts'
import { convertAnswer, convertQuestion } from './convert.ts'

const NEW: Revision = '2026-07-28'
const OLD: Revision = '2025-06-18'

const form = (properties: PlainObject, required?: readonly string[]): Json =>
  Json.of({ mode: 'form', message: 'm', requestedSchema: { type: 'object', properties, required } })

const asked = (question: Json, to: Revision = OLD): Json => {
  const params = convertQuestion('elicitation/create', question, NEW, to)
  if ('rejection' in params) throw new Error(params.rejection.message)
  return params
}

const fields = (question: Json): readonly (readonly [string, unknown])[] =>
  (asked(question).at('requestedSchema', 'properties')?.entries() ?? []).map(([name, field]) => [name, field.toValue()])

const answered = (question: Json, content: PlainObject): unknown => {
  const answer = Json.of({ action: 'accept', content })
  const folded = convertAnswer('elicitation/create', answer, question, OLD, NEW)
  return 'problem' in folded ? folded : (folded.toValue() as { content: unknown }).content
}

const SIZE = {
  type: 'string',
  title: 'Size',
  oneOf: [
    { const: 's', title: 'Small' },
    { const: 'l', title: 'Large' },
  ],
  default: 's',
}

const COLOURS = {
  type: 'array',
  title: 'Colours',
  description: 'For the door',
  items: { anyOf: [{ const: 'r', title: 'Red' }, { const: 'g', title: 'Green' }, { const: 'b' }] },
}

test.each<[string, PlainObject, PlainObject]>([
  [
    'a titled choice is spelled the old way',
    SIZE,
    { type: 'string', title: 'Size', enum: ['s', 'l'], enumNames: ['Small', 'Large'], default: 's' },
  ],
  [
    'an option without a title is called by its value',
    { type: 'string', anyOf: [{ const: 's', title: 'Small' }, { const: 'l' }] },
    { type: 'string', enum: ['s', 'l'], enumNames: ['Small', 'l'] },
  ],
  ['an untitled choice stays', { type: 'string', enum: ['s', 'l'] }, { type: 'string', enum: ['s', 'l'] }],
  ['alternatives that are no constants stay', { oneOf: [{ type: 'string' }] }, { oneOf: [{ type: 'string' }] }],
  ['defaults stay', { type: 'integer', default: 3, minimum: 1 }, { type: 'integer', default: 3, minimum: 1 }],
  [
    'lists that are no choice stay',
    { type: 'array', items: { type: 'string' } },
    { type: 'array', items: { type: 'string' } },
  ],
])('fields for 2025-06-18: %s', (_name, field, expected) => {
  expect(fields(form({ field }))).toEqual([['field', expected]])
})

test('a choice of several becomes one checkbox for each option, in its place', () => {
  const properties = objectOf([
    ['2', Json.of({ type: 'string' })],
    ['colours', Json.of(COLOURS)],
    ['size', Json.of(SIZE)],
    ['1', Json.of({ type: 'number' })],
  ])
  const question = Json.of({ mode: 'form', requestedSchema: { properties, required: ['2', 'colours'] } })
  expect(fields(question)).toEqual([
    ['2', { type: 'string' }],
    ['colours — Red', { type: 'boolean', title: 'Colours — Red', description: 'For the door' }],
    ['colours — Green', { type: 'boolean', title: 'Colours — Green' }],
    ['colours — b', { type: 'boolean', title: 'Colours — b' }],
    ['size', { type: 'string', title: 'Size', enum: ['s', 'l'], enumNames: ['Small', 'Large'], default: 's' }],
    ['1', { type: 'number' }],
  ])
  const params = asked(question)
  expect(params.at('requestedSchema', 'required')?.toValue()).toEqual(['2'])
  expect(params.get('mode')?.asString()).toBe('form')
  expect(asked(question, '2025-11-25')).toBe(question)
})

test('bounds are told, defaults are ticked', () => {
  const described = (bounds: PlainObject) => {
    const question = form({ x: { type: 'array', items: { enum: ['a', 'b', 'c'] }, ...bounds } })
    return asked(question).at('requestedSchema', 'properties', 'x — a', 'description')?.asString()
  }
  expect(described({ minItems: 1 })).toBe('choose at least 1')
  expect(described({ minItems: 1, maxItems: 2, description: 'D' })).toBe('D — choose at least 1 and at most 2')
  expect(described({ minItems: 2, maxItems: 2 })).toBe('choose exactly 2')
  expect(described({ maxItems: 3 })).toBeUndefined()
  expect(fields(form({ x: { type: 'array', items: { enum: ['a', 'b'] }, default: ['b'] } }))).toEqual([
    ['x — a', { type: 'boolean', title: 'x — a', default: false }],
    ['x — b', { type: 'boolean', title: 'x — b', default: true }],
  ])
})

test('what is ticked comes back as a list, in the order of the options', () => {
  const question = form({ colours: COLOURS, size: SIZE }, ['colours'])
  expect(
    answered(question, { 'colours — b': true, 'colours — Red': true, 'colours — Green': false, size: 's', own: 1 }),
  ).toEqual({
    size: 's',
    own: 1,
    colours: ['r', 'b'],
  })
  expect(answered(question, { size: 's' })).toEqual({ size: 's', colours: [] })
  expect(answered(form({ colours: COLOURS }), { size: 's' })).toEqual({ size: 's' })
  expect(answered(form({ colours: COLOURS }), { 'colours — Red': false })).toEqual({ colours: [] })
  expect(answered(form({ colours: COLOURS }), { 'colours — Red': 'true' })).toEqual({ colours: [] })
})

const bounded = (required?: readonly string[]) => form({ colours: { ...COLOURS, minItems: 1, maxItems: 2 } }, required)

test.each<[string, Json, PlainObject, unknown]>([
  ['too few', bounded(['colours']), {}, { problem: 'Colours: choose at least 1 and at most 2' }],
  [
    'too many',
    bounded(),
    { 'colours — Red': true, 'colours — Green': true, 'colours — b': true },
    { problem: 'Colours: choose at least 1 and at most 2' },
  ],
  ['none of what need not be answered', bounded(), { 'colours — Red': false }, {}],
  ['just enough', bounded(['colours']), { 'colours — Green': true }, { colours: ['g'] }],
])('bounds: %s', (_name, question, content, expected) => {
  expect(answered(question, content)).toEqual(expected)
})

test('a missing content counts as nothing ticked', () => {
  const answer = Json.of({ action: 'accept' })
  expect(convertAnswer('elicitation/create', answer, bounded(['colours']), OLD, NEW)).toHaveProperty('problem')
})

test.each<[string, Plain]>([
  ['a refusal', { action: 'decline' }],
  ['a cancellation', { action: 'cancel', content: { 'colours — Red': true } }],
  ['a list given right away', { action: 'accept', content: { colours: ['r'] } }],
  ['a content that is no object', { action: 'accept', content: 'r' }],
  ['no answer at all', {}],
])('%s passes as it is', (_name, plain) => {
  const answer = Json.of(plain)
  expect(convertAnswer('elicitation/create', answer, bounded(['colours']), OLD, NEW)).toBe(answer)
})

test('an answer to a plain form passes as it is', () => {
  const answer = Json.of({ action: 'accept', content: { size: 's' } })
  expect(convertAnswer('elicitation/create', answer, form({ size: SIZE }, ['size']), OLD, NEW)).toBe(answer)
  expect(convertAnswer('elicitation/create', answer, form({ size: SIZE }), NEW, OLD)).toBe(answer)
})

test('checkboxes never share a name, nor take one that is in use', () => {
  const titled = [
    { const: 'a', title: 'T' },
    { const: 'b', title: 'T' },
    { const: 'c', title: 'T' },
  ]
  const question = form({
    x: { type: 'array', items: { anyOf: titled } },
    'x — T': { type: 'string' },
    'x — T (2)': { type: 'string' },
  })
  const names = fields(question).map(([name]) => name)
  expect(names).toEqual(['x — T (1)', 'x — T (2)′', 'x — T (3)', 'x — T', 'x — T (2)'])
  expect(answered(question, { 'x — T': 'said', 'x — T (3)': true })).toEqual({ 'x — T': 'said', x: ['c'] })
})

const choice = fc.record({
  name: fc.string(),
  options: fc.uniqueArray(fc.string(), { minLength: 1, maxLength: 6 }),
  ticks: fc.array(fc.boolean(), { minLength: 6, maxLength: 6 }),
  title: fc.constantFrom('one', 'two'),
})
const choices = fc.uniqueArray(choice, { selector: ({ name }) => name, maxLength: 4 })

test('every selection survives the way down and back', () => {
  fc.assert(
    fc.property(choices, several => {
      const properties = objectOf(
        several.map(({ name, options, title }) => {
          const items = { oneOf: options.map(value => ({ const: value, title })) }
          return [name, Json.of({ type: 'array', items })]
        }),
      )
      const question = Json.of({ requestedSchema: { properties } })
      const ticks = several.flatMap(({ options, ticks }) => ticks.slice(0, options.length))
      const content = Object.fromEntries(fields(question).map(([name], i) => [name, ticks[i]]))
      const picked = several.map(({ name, options, ticks }) => [name, options.filter((_, i) => ticks[i])])
      expect(answered(question, content)).toEqual(Object.fromEntries(picked))
    }),
  )
})

test('a form of ten thousand options is neither slow to ask nor slow to answer', () => {
  const many = Array.from({ length: 10_000 }, (_, i) => `o${i}`)
  const question = form({ x: { type: 'array', items: { enum: many } } })
  const start = cpuMs()
  const content = Object.fromEntries(fields(question).map(([name]) => [name, true]))
  expect(answered(question, content)).toEqual({ x: many })
  expect(cpuMs() - start).toBeLessThan(2000)
})
