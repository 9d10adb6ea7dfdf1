import { expect, test } from 'vitest'
import { DAY, START, stated, tell, temporaryStore } from '../../../../test/support/memory/sqlite-store.ts'
import type { MemoryStore } from '../store.ts'
import { searchEntities } from './entities.ts'
import { searchFacts } from './facts.ts'
import { searchPassages } from './passages.ts'
import { readQuestion } from './question.ts'
import { WEIGHTS } from './weights.ts'

const TOPICS = ['cello', 'oven', 'ferry', 'glacier', 'violin', 'harbour', 'lantern', 'quarry', 'orchard', 'compass']
const SIZE = 16

/** A vector that points one way only. */
const towards = (axis: number): Float32Array => Float32Array.from({ length: SIZE }, (_, at) => (at === axis ? 1 : 0))

/** A store with a passage for each topic, whose embeddings are those given. */
const filled = async (vectorOf: (row: number) => Float32Array): Promise<MemoryStore> => {
  const store = await temporaryStore()
  for (const [at, topic] of TOPICS.entries())
    await tell(store, `Ann: The ${topic} belongs to number ${at}.`, { validAt: START + at * DAY })
  for (const kind of ['doc', 'fact', 'entity'] as const) {
    const rows = await store.unembedded(kind, 'm', 99)
    await store.putVectors(rows.map(({ rowId }) => ({ kind, rowId, model: 'm', vector: vectorOf(rowId) })))
  }
  return store
}

const asking = (store: MemoryStore, query: string, vector?: Float32Array, model = 'm', groups = ['main']) => ({
  store,
  groups,
  question: readQuestion(query, START),
  weights: WEIGHTS,
  limit: 10,
  ...(vector && { embedding: { model, vector } }),
})

test('passages and facts without a word of the query are found by their vectors', async () => {
  const store = await filled(row => towards(row))
  const search = asking(store, 'stringed instrument', towards(1))
  expect((await searchPassages(search))[0]?.text).toContain('cello')
  expect((await searchFacts(search))[0]?.fact).toContain('cello')
  expect(await searchFacts(asking(store, 'stringed instrument'))).toEqual([])
})

test('an entity without a word of the query is found by its vector', async () => {
  const store = await temporaryStore()
  const { entities } = await store.addFacts('main', { entities: [], facts: [stated('Automobile', 'NEEDS', 'Petrol')] })
  const vectors = entities.map(
    ({ id }, at) => ({ kind: 'entity', rowId: id, model: 'm', vector: towards(at) }) as const,
  )
  await store.putVectors(vectors)
  const [first] = await searchEntities(asking(store, 'car', towards(0)))
  expect(first?.name).toBe('Automobile')
})

test.each([
  ['another length', Float32Array.of(1, 0), 'm'],
  ['another model', towards(1), 'other'],
])('a query with %s finds what words find', async (_, vector, model) => {
  const store = await filled(row => towards(row))
  const plain = asking(store, 'Who has the oven?')
  const search = asking(store, 'Who has the oven?', vector, model)
  expect(await searchPassages(search)).toEqual(await searchPassages(plain))
  expect(await searchFacts(search)).toEqual(await searchFacts(plain))
  expect(await searchEntities(search)).toEqual(await searchEntities(plain))
})

test('meaningless vectors do not displace the best word matches', async () => {
  const noise = (seed: number) => Float32Array.from({ length: SIZE }, (_, at) => Math.sin(seed * 7919 + at * 104_729))
  const store = await filled(noise)
  for (const [at, topic] of TOPICS.entries()) {
    const [best] = await searchPassages(asking(store, `Who has the ${topic}?`))
    const found = await searchPassages(asking(store, `Who has the ${topic}?`, noise(at + 1_000)))
    expect(found.slice(0, 3).map(({ id }) => id)).toContain(best?.id)
  }
})

test('near vectors of another group are not found', async () => {
  const store = await filled(row => towards(row))
  const search = asking(store, 'stringed instrument', towards(1), 'm', ['elsewhere'])
  expect([await searchPassages(search), await searchFacts(search), await searchEntities(search)]).toEqual([[], [], []])
})

test('a changed entity is embedded again', async () => {
  const store = await filled(row => towards(row))
  const [ann] = await store.entitiesNamed(['ann'], 'all')
  await store.setEntity(ann?.uuid ?? '', { summary: 'Plays the cello' })
  expect((await store.unembedded('entity', 'm', 9)).map(({ text }) => text)).toEqual(['Ann\nPlays the cello'])
})
