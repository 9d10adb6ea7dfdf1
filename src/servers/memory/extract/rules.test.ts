import { expect, test } from 'vitest'
import type { NewDoc, NewFact } from '../model.ts'
import { readByRules, readJson } from './rules.ts'

const MAY = Date.UTC(2023, 4, 10, 12)

const turn = (actor: string, text: string): NewDoc => ({ kind: 'turn', actor, text, dt: '' })
const passage = (text: string): NewDoc => ({ kind: 'passage', text, dt: '' })

const ends = ({ source, target }: NewFact) => [source, target].map(ref => ('name' in ref ? ref.name : ref.uuid))

test('every sentence of a turn is a fact that quotes it, from its speaker to what it names', () => {
  const { facts, entities } = readByRules(
    [turn('Ann', 'We met in Oslo yesterday. It was cold!'), turn('Bob', 'Ok')],
    MAY,
  )
  expect(facts.map(fact => [fact.fact, fact.name, ends(fact), fact.doc])).toEqual([
    ['We met in Oslo yesterday.', 'SAYS', ['Ann', 'Oslo'], 0],
    ['It was cold!', 'SAYS', ['Ann', 'Note'], 0],
  ])
  expect(facts[0]).toMatchObject({ validAt: Date.UTC(2023, 4, 9), granularity: 'day', origin: 'rule' })
  expect(facts[1]).toMatchObject({ validAt: MAY, granularity: 'second' })
  expect(entities.map(entity => entity.name).toSorted()).toEqual(['Ann', 'Bob', 'Oslo'])
})

const day = (text: string) => Date.parse(text)
const END_OF_2026 = day('2027-01-01') - 1

test.each<[string, Pick<NewFact, 'validAt' | 'invalidAt' | 'granularity'>]>([
  ['Ann works at Acme until 31 December 2026.', { validAt: MAY, granularity: 'second', invalidAt: END_OF_2026 }],
  ['The pool is closed till the end of 2026.', { validAt: MAY, granularity: 'second', invalidAt: END_OF_2026 }],
  ['The report is due by the end of 2026.', { validAt: MAY, granularity: 'second', invalidAt: undefined }],
  ['The report is due on 3 June 2023.', { validAt: MAY, granularity: 'second', invalidAt: undefined }],
  ['Send it no later than 3 June 2023.', { validAt: MAY, granularity: 'second', invalidAt: undefined }],
  ['By 2020 Ann had left.', { validAt: day('2020-01-01'), granularity: 'year', invalidAt: undefined }],
  ['Ann lived in Rome until 2019.', { invalidAt: day('2020-01-01') - 1 }],
  [
    'Ann lived in Rome from 2015 until 2019.',
    { validAt: day('2015-01-01'), granularity: 'year', invalidAt: day('2020-01-01') - 1 },
  ],
  [
    'We are in Rome from 3 June until 5 June.',
    { validAt: day('2023-06-03'), granularity: 'day', invalidAt: day('2023-06-06') - 1 },
  ],
  ['Ann moved to Rome in June 2021.', { validAt: day('2021-06-01'), granularity: 'month', invalidAt: undefined }],
])('%j has its times', (text, times) => {
  const { validAt, invalidAt, granularity } = readByRules([passage(text)], MAY).facts[0] ?? {}
  expect({ validAt, invalidAt, granularity }).toEqual(times)
})

test('a text without a speaker joins the things it names', () => {
  const { facts } = readByRules([passage('The team of Acme Corp hired Grace Hopper in 2021.')], MAY)
  expect(facts.map(ends)).toEqual([['Acme Corp', 'Grace Hopper']])
  expect(facts[0]).toMatchObject({ name: 'MENTIONS', granularity: 'year' })
})

test('a speaker who names themselves is not both ends of a fact', () => {
  const { facts } = readByRules([turn('Ann', 'They no longer call me Ann.')], MAY)
  expect(facts.map(ends)).toEqual([['Ann', 'Note']])
})

test('a very long text gives a bounded number of facts', () => {
  const docs = Array.from({ length: 500 }, () => passage('This is one. '.repeat(20)))
  expect(readByRules(docs, MAY).facts.length).toBe(2_000)
})

test('JSON gives relations between named objects', () => {
  const body = JSON.stringify({
    company: { name: 'Acme', ceoName: 'Grace', tags: ['rockets', 'anvils'], office: { city: 'Oslo' } },
    staff: [{ name: 'Bob', manager: { name: 'Grace' } }],
  })
  expect(readJson(body).facts.map(fact => [...ends(fact), fact.name])).toEqual([
    ['Acme', 'Grace', 'CEO_NAME'],
    ['Acme', 'rockets', 'TAGS'],
    ['Acme', 'anvils', 'TAGS'],
    ['Acme', 'Oslo', 'CITY'],
    ['Bob', 'Grace', 'MANAGER'],
  ])
})

test.each(['', '{', '[]', '3', 'null', '{"a":1}', '['.repeat(5_000) + ']'.repeat(5_000)])(
  'JSON like %j tells nothing',
  body => {
    expect(readJson(body)).toEqual({ entities: [], facts: [] })
  },
)

test('very long JSON gives a bounded number of facts', () => {
  const body = JSON.stringify({ name: 'All', things: Array.from({ length: 5_000 }, (_, at) => `thing ${at}`) })
  expect(readJson(body).facts).toHaveLength(500)
})
