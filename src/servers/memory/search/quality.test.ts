import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { NOTE_QUESTIONS, NOTES, QUESTIONS, SESSIONS } from '../../../../test/support/memory/quality.ts'
import { openSqliteStore } from '../open-stores.ts'
import { createRemember } from '../remember.ts'
import type { MemoryStore } from '../store.ts'
import { searchEntities } from './entities.ts'
import { searchFacts } from './facts.ts'
import { searchPassages } from './passages.ts'
import { readQuestion } from './question.ts'
import { WEIGHTS, type Weights } from './weights.ts'

const NOW = Date.UTC(2024, 6, 1)
const remember = createRemember({ extracts: false, embeds: false, now: () => NOW })

let store: MemoryStore
const lines = new Map<number, string>() // passage → session.line

const told = (group: string, name: string, body: string, source: 'text' | 'json' | 'message', validAt: number) =>
  remember(store, { group, name, body, source, sourceDescription: 'test', validAt })

beforeAll(async () => {
  store = await openSqliteStore({ path: ':memory:', now: () => NOW })
  for (const [index, { at, lines: said }] of SESSIONS.entries()) {
    const { episode } = await told('talk', `talk ${index + 1}`, said.join('\n'), 'message', at)
    for (const { id, ord } of await store.docsOfEpisodes([episode.uuid])) lines.set(id, `${index + 1}.${ord + 1}`)
  }
  for (const { name, body, source } of NOTES) await told('notes', name, body, source, NOW)
})

afterAll(() => store.close())

const searchFor = (group: string, query: string) => ({
  store,
  groups: [group],
  question: readQuestion(query, NOW),
  weights: WEIGHTS,
})

type Find = (query: string, weights?: Weights) => Promise<readonly (string | undefined)[]>

const passages: Find = async (query, weights = WEIGHTS) =>
  (await searchPassages({ ...searchFor('talk', query), weights })).map(({ id }) => lines.get(id))

const facts: Find = async (query, weights = WEIGHTS) =>
  (await searchFacts({ ...searchFor('talk', query), weights, limit: 20 })).map(({ docId }) => lines.get(docId ?? -1))

/** The share of the questions whose line is among the first so many. */
const answered = async (find: Find, most: number, weights?: Weights): Promise<number> => {
  const found = await Promise.all(QUESTIONS.map(([question]) => find(question, weights)))
  const right = QUESTIONS.filter(([, line], index) => found[index]?.slice(0, most).includes(line))
  return right.length / QUESTIONS.length
}

describe.each([
  ['passages', passages, 0.56],
  ['facts', facts, 0.56],
] as const)('%s of a long talk', (_, find, first) => {
  test.each([
    [1, first],
    [3, 0.8],
    [5, 0.9],
  ])('among the first %i', async (most, share) => {
    expect(await answered(find, most)).toBeGreaterThanOrEqual(share)
  })
})

test('neighbouring lines help to find a line', async () => {
  const alone = { ...WEIGHTS, docs: { ...WEIGHTS.docs, prev: 0, next: 0 } }
  expect(await answered(passages, 5)).toBeGreaterThan(await answered(passages, 5, alone))
})

test.each(NOTE_QUESTIONS)('the note for %j comes first', async (question, name) => {
  const [first] = await searchPassages(searchFor('notes', question))
  expect(first?.episodeName).toBe(name)
})

test('facts are spread over their passages', async () => {
  const found = await searchFacts({ ...searchFor('talk', 'Ingrid beehives honey library cottage'), limit: 10 })
  expect(found).toHaveLength(10)
  expect(new Set(found.map(({ docId }) => docId)).size).toBe(10)
})

test('another group or an empty query finds nothing', async () => {
  expect(await searchFacts({ ...searchFor('talk', 'QuoteService cache'), limit: 10 })).toEqual([])
  expect(await searchFacts({ ...searchFor('talk', '???'), limit: 10 })).toEqual([])
  expect(await searchEntities({ ...searchFor('notes', 'Ingrid'), limit: 10 })).toEqual([])
})

test('an entity is found by its name, also as part of a question', async () => {
  const [first] = await searchEntities({ ...searchFor('talk', 'Who is Perpetua Lang?'), limit: 5 })
  expect(first?.name).toBe('Perpetua Lang')
})
