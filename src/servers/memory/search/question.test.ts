import { expect, test } from 'vitest'
import { readQuestion } from './question.ts'

const NOW = Date.UTC(2024, 0, 10)
const read = (query: string) => readQuestion(query, NOW)

test('names of several words are looked up, without stop words at their ends', () => {
  const { names } = read('What did Ann Lee say about the New York office?')
  expect(names).toEqual(expect.arrayContaining(['ann lee', 'ann', 'lee', 'new york', 'new york office']))
  expect(names.some(name => /^(?:what|the|did|about)\b|\b(?:the|about)$/.test(name))).toBe(false)
})

test.each([
  ['When did she move?', true],
  ['How long have they been married?', true],
  ['What year was it?', true],
  ['What happened when she moved?', false],
])('%j asks for a time: %j', (query, asksWhen) => {
  expect(read(query).asksWhen).toBe(asksWhen)
})

test.each([
  ['Where did she use to live before?', true],
  ['What happened in March 2023?', true],
  ['Where does she live?', false],
  ['What is planned for March 2025?', false],
])('%j is about the past: %j', (query, isAboutPast) => {
  expect(read(query).isAboutPast).toBe(isAboutPast)
})

test('the period that a query mentions is its range', () => {
  expect(read('events in March 2023').range).toEqual({
    start: Date.UTC(2023, 2, 1),
    end: Date.UTC(2023, 3, 1) - 1,
  })
  expect(read('events').range).toBeUndefined()
})

test('a query of a thousand words, or of none, is parsed', () => {
  const long = read(Array.from({ length: 1_000 }, (_, index) => `word${index}`).join(' '))
  expect(long.names.length).toBeLessThanOrEqual(160)
  expect(long.terms.length).toBeLessThanOrEqual(32)
  expect(read('')).toMatchObject({ terms: [], names: [], range: undefined })
})
