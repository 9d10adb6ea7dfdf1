import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Episode } from '../model.ts'
import { type FindingChecks, namesIn, readFindings, readFoundDate, UnusableAnswer } from './findings.ts'

const episode = { name: 'Kitchen talk', sourceDescription: '' } as Episode
const wishes = { excluded: [], instructions: '', previous: undefined }
const shown = (...passages: string[]) => namesIn({ episode, passages, earlier: [], wishes })

const PASSAGES = ['Ann: I moved to Berlin in May 2024.', "Bob: Hannah's cat likes the Harbour Street pool."]
const BOUNDS: FindingChecks = {
  isNamed: shown(...PASSAGES),
  kinds: new Map([['person', 'Person']]),
  excluded: ['topic'],
  passages: PASSAGES.length,
}

const ENTITIES = [
  { name: 'Ann', kind: 'person', aliases: [], summary: 'Lives in Berlin.' },
  { name: 'Berlin', kind: 'Castle', aliases: ['The Grey City', 'Ann'], summary: '' },
]
const FACT = {
  source: 'Ann',
  relation: 'moved to',
  target: 'berlin',
  fact: 'Ann moved to Berlin.',
  valid_at: '2024-05',
  invalid_at: null,
  passage: 0,
}

const read = (facts: readonly unknown[], entities: readonly unknown[] = ENTITIES) =>
  readFindings({ entities, facts }, BOUNDS)

test('names and dates of the episode are kept', () => {
  const { entities, facts, dropped } = read([FACT])
  expect(entities).toEqual([
    { name: 'Ann', kind: 'Person', aliases: [], summary: 'Lives in Berlin.' },
    { name: 'Berlin', kind: undefined, aliases: [], summary: '' },
  ])
  expect(facts).toEqual([
    {
      source: 0,
      target: 1,
      name: 'MOVED_TO',
      fact: 'Ann moved to Berlin.',
      validAt: Date.UTC(2024, 4, 1),
      granularity: 'month',
      invalidAt: undefined,
      passage: 0,
    },
  ])
  expect(dropped).toBe(0)
})

test.each([
  ['about an entity that is not there', { ...FACT, source: 'Zoe' }],
  ['about an entity that was not listed', { ...FACT, source: 'Bob' }],
  ['of a thing with itself', { ...FACT, target: 'Ann' }],
  ['that says nothing', { ...FACT, fact: ' ' }],
  ['that is no text', { ...FACT, fact: 7 }],
  ['with a date that does not exist', { ...FACT, valid_at: '2024-02-31' }],
  ['with a date in words', { ...FACT, valid_at: 'last summer' }],
  ['with a number for a date', { ...FACT, invalid_at: 20_240_501 }],
  ['that ends before it begins', { ...FACT, invalid_at: '2023-01-01' }],
  ['that is nothing at all', null],
])('a fact %s is dropped, and the others stay', (_, lie) => {
  const { facts, dropped } = read([lie, FACT])
  expect(facts).toHaveLength(1)
  expect(dropped).toBe(1)
})

test.each([
  ['that is not shown', 99],
  ['that is no number', '0'],
  ['below the first', -1],
])('a passage %s is ignored', (_, passage) => {
  expect(read([{ ...FACT, passage }]).facts[0]?.passage).toBeUndefined()
})

test('entities that are not in the episode, or excluded, are dropped with their facts', () => {
  const invented = { name: 'Zoe', kind: 'person', aliases: [], summary: '' }
  const unwanted = { name: 'pool', kind: 'Topic', aliases: [], summary: '' }
  const { entities, facts } = read(
    [{ ...FACT, source: 'Zoe' }, { ...FACT, target: 'pool' }, FACT],
    [invented, unwanted, ...ENTITIES],
  )
  expect(entities.map(({ name }) => name)).toEqual(['Ann', 'Berlin'])
  expect(facts).toHaveLength(1)
})

test.each<[string, unknown]>([
  ['has no lists', { thoughts: 'none' }],
  ['is a list', [FACT]],
  ['is nothing', null],
  ['invents everything', { entities: [{ name: 'Zoe' }, { name: 'Yan' }], facts: [] }],
  ['states facts without entities', { entities: [], facts: [FACT] }],
])('an answer that %s cannot be used', (_, answer) => {
  expect(() => readFindings(answer, BOUNDS)).toThrow(UnusableAnswer)
})

test('an answer with nothing in it is fine', () => {
  expect(readFindings({ entities: [], facts: [] }, BOUNDS)).toEqual({ entities: [], facts: [], dropped: 0 })
})

test.each([
  ['Ann', true],
  ['Harbour Street', true],
  ['the cats', true],
  ['HANNAH', true],
  ['Hann', false],
  ['Anna', false],
  ['Berlin Wall', false],
  ['User', true],
  ['...', false],
])('%s occurs in the episode: %s', (name, expected) => {
  expect(BOUNDS.isNamed(name)).toBe(expected)
})

test('a name in a script without spaces is found as a part', () => {
  const isNamed = shown('昨日、田中さんは東京へ行った。')
  expect(isNamed('田中')).toBe(true)
  expect(isNamed('大阪')).toBe(false)
  expect(isNamed('User')).toBe(false)
})

test.each([
  ['2024', { at: Date.UTC(2024, 0, 1), granularity: 'year' }],
  ['2024-05-07', { at: Date.UTC(2024, 4, 7), granularity: 'day' }],
  ['2024-05-07T10:00:00Z', { at: Date.UTC(2024, 4, 7, 10), granularity: 'second' }],
  [null, undefined],
  ['', undefined],
  ['2024-13', false],
  ['99999-01-01', false],
])('%j is read as a date', (given, expected) => {
  expect(readFoundDate(given)).toEqual(expected)
})

test('for any answer, kept facts refer to kept entities', () => {
  const names = fc.constantFrom('Ann', 'Berlin', 'Zoe', '', 'Hannah')
  const item = fc.oneof(
    fc.jsonValue(),
    fc.record({ name: names, kind: fc.string(), aliases: fc.array(names), summary: fc.string() }),
  )
  const fact = fc.oneof(
    fc.jsonValue(),
    fc.record({
      source: names,
      target: names,
      fact: fc.string(),
      valid_at: fc.oneof(fc.string(), fc.constantFrom('2024', null)),
      passage: fc.integer({ min: -2, max: 4 }),
    }),
  )
  fc.assert(
    fc.property(fc.array(item), fc.array(fact), (entities, facts) => {
      try {
        const found = read(facts, entities)
        for (const { source, target, fact: text } of found.facts) {
          expect(found.entities[source]).toBeDefined()
          expect(found.entities[target]).toBeDefined()
          expect(source).not.toBe(target)
          expect(text.trim()).not.toBe('')
        }
        for (const { name } of found.entities) expect(BOUNDS.isNamed(name)).toBe(true)
      } catch (error) {
        expect(error).toBeInstanceOf(UnusableAnswer)
      }
    }),
  )
})
