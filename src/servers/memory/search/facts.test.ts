import { afterEach, beforeEach, expect, test } from 'vitest'
import type { NewFact } from '../model.ts'
import { openSqliteStore } from '../open-stores.ts'
import { createRemember } from '../remember.ts'
import type { MemoryStore } from '../store.ts'
import { searchEntities } from './entities.ts'
import { type FactSearch, searchFacts } from './facts.ts'
import { readQuestion } from './question.ts'
import { WEIGHTS } from './weights.ts'

const NOW = Date.UTC(2024, 6, 1)
const remember = createRemember({ extracts: false, embeds: false, now: () => NOW })

let store: MemoryStore
beforeEach(async () => {
  store = await openSqliteStore({ path: ':memory:', now: () => NOW })
})
afterEach(() => store.close())

const given = (source: string, name: string, target: string, fact: string, more: Partial<NewFact> = {}): NewFact => ({
  source: { name: source },
  target: { name: target },
  name,
  fact,
  origin: 'agent',
  confidence: 1,
  ...more,
})

const add = (...facts: readonly NewFact[]) => store.addFacts('main', { entities: [], facts })

const find = async (query: string, more: Partial<FactSearch> = {}) => {
  const question = readQuestion(query, NOW)
  const found = await searchFacts({ store, groups: ['main'], question, weights: WEIGHTS, limit: 10, ...more })
  return found.map(({ fact }) => fact)
}

const idOf = async (name: string): Promise<number> =>
  (await store.entitiesNamed([name.toLowerCase()], ['main']))[0]?.id ?? -1

const tell = (body: string, source: 'text' | 'message' = 'text') =>
  remember(store, { group: 'main', name: 'note', body, source, sourceDescription: '', validAt: NOW })

test('given facts and sentences of an episode are found together, the given first', async () => {
  await tell('The garden gate squeaks. It needs oil.')
  await add(given('Ann', 'OWNS', 'Garden', 'Ann owns the garden behind the mill'))
  expect(await find('garden of Ann')).toEqual([
    'Ann owns the garden behind the mill',
    'The garden gate squeaks.',
    'It needs oil.',
  ])
})

test('an expired fact ranks below a valid one, unless the question is about the past', async () => {
  await add(
    given('Ann', 'LIVES_IN', 'Oslo', 'Ann lives in Oslo city', { validAt: 1_000, invalidAt: 2_000 }),
    given('Ann', 'LIVES_IN', 'Bergen', 'Ann lives in Bergen city', { validAt: 2_000 }),
  )
  expect((await find('In which city does Ann live?'))[0]).toBe('Ann lives in Bergen city')
  expect(await find('In which city did Ann live before?')).toContain('Ann lives in Oslo city')
})

test('a date filter limits the facts', async () => {
  await add(
    given('Ann', 'BOUGHT', 'Boat', 'Ann bought a boat', { validAt: Date.UTC(2020, 1, 1) }),
    given('Ann', 'BOUGHT', 'Barn', 'Ann bought a barn', { validAt: Date.UTC(2022, 1, 1) }),
  )
  const filter = { validAfter: Date.UTC(2021, 0, 1) }
  expect(await find('what Ann bought', { filter })).toEqual(['Ann bought a barn'])
  expect(await find('???', { filter })).toEqual(['Ann bought a barn'])
  expect(await find('what Ann bought', { filter: { names: ['SOLD'] } })).toEqual([])
})

test('a fact two hops from a named entity is found without a common word', async () => {
  await add(
    given('Ann', 'MARRIED_TO', 'Bert', 'They married in spring'),
    given('Bert', 'WORKS_AT', 'Observatory', 'He polishes lenses'),
    given('Zeno', 'WORKS_AT', 'Bakery', 'He bakes rye bread'),
  )
  const found = await find('Tell me about Ann')
  expect(found).toEqual(['They married in spring', 'He polishes lenses'])
})

test('with a center the nearest facts come first, by the shortest path', async () => {
  await add(
    given('Hub', 'NEAR', 'One', 'red house one'),
    given('One', 'NEAR', 'Two', 'red house two'),
    given('Two', 'NEAR', 'Three', 'red house three'),
    given('Away', 'NEAR', 'Far', 'red house far red house'),
  )
  expect(await find('red house', { center: await idOf('Hub') })).toEqual([
    'red house one',
    'red house two',
    'red house three',
    'red house far red house',
  ])
  expect((await find('red house', { center: await idOf('Far') }))[0]).toBe('red house far red house')
})

test('entities are found by name, by summary, by label, and near a center', async () => {
  await store.addFacts('main', {
    entities: [
      { name: 'Lighthouse', labels: ['Location'], summary: 'a tower with a lamp at the harbour' },
      { name: 'Harbour Master', labels: ['Person'] },
      { name: 'Anchor', labels: ['Object'] },
    ],
    facts: [given('Harbour Master', 'USES', 'Anchor', 'The harbour master drops it')],
  })
  const search = async (query: string, more: object = {}) => {
    const question = readQuestion(query, NOW)
    const found = await searchEntities({ store, groups: ['main'], question, weights: WEIGHTS, limit: 10, ...more })
    return found.map(({ name }) => name)
  }
  expect((await search('the harbour master'))[0]).toBe('Harbour Master')
  expect(await search('lamp')).toEqual(['Lighthouse'])
  expect(await search('harbour', { labels: ['Location'] })).toEqual(['Lighthouse'])
  expect((await search('harbour', { center: await idOf('Anchor') }))[0]).toBe('Harbour Master')
})

test('the limit is respected', async () => {
  await tell(Array.from({ length: 40 }, (_, index) => `ann: apple number ${index}`).join('\n'), 'message')
  expect(await find('apple', { limit: 7 })).toHaveLength(7)
})
