import { expect, test, vi } from 'vitest'
import {
  type Asked,
  embedded,
  meaning,
  noise,
  type Scripted,
  scriptedEndpoint,
} from '../../../../test/support/memory/endpoint.ts'
import { startModels } from '../../../../test/support/memory/models.ts'
import { type EmbeddingOptions, SIMILAR_PAIRS } from './embedder.ts'

const CONCEPTS = {
  cat: 'pet',
  dog: 'pet',
  animal: 'pet',
  pet: 'pet',
  car: 'vehicle',
  lorry: 'vehicle',
  drive: 'vehicle',
}

const vectors =
  (length = 64) =>
  ({ body }: Asked): Scripted =>
    embedded(body.input, text => meaning(text, length, CONCEPTS))

const start = async (script: (asked: Asked, nth: number) => Scripted, options: Partial<EmbeddingOptions> = {}) => {
  const endpoint = await scriptedEndpoint(script)
  const embedding = { url: endpoint.url, model: 'm', queryTimeoutMs: 5_000, ...options }
  const memory = await startModels({ embedding })
  /** All texts that were embedded, but for those of the check. */
  const texts = () =>
    endpoint.asked.flatMap(({ body }) => body.input).filter(text => !SIMILAR_PAIRS.flat().includes(text))
  return { ...endpoint, ...memory, embedding, texts }
}

type Memory = Pick<Awaited<ReturnType<typeof startModels>>, 'use' | 'embed'>

/** The texts of the passages nearest to a query. */
const near = async ({ use, embed }: Memory, query: string): Promise<string[]> => {
  const embedding = await embed(query)
  if (!embedding) return []
  return use(async store => {
    const rows = await store.nearest({ kind: 'doc', ...embedding, groups: 'all', limit: 3 })
    const docs = new Map((await store.docs(rows.map(({ rowId }) => rowId))).map(doc => [doc.id, doc.text]))
    return rows.map(({ rowId }) => docs.get(rowId) ?? '')
  })
}

test('added episodes are embedded, and found by their vectors', async () => {
  const memory = await start(vectors())
  await memory.addText('My cat is called Miu.')
  await memory.addText('The lorry broke down.')
  await memory.idle()
  expect(memory.asked[0]).toMatchObject({ path: '/v1/embeddings', body: { model: 'm', input: SIMILAR_PAIRS.flat() } })
  expect((await near(memory, 'the name of the animal'))[0]).toBe('My cat is called Miu.')
  expect((await near(memory, 'what did I drive'))[0]).toBe('The lorry broke down.')
})

test('many texts go in batches', async () => {
  const { addText, idle, asked, texts, use } = await start(vectors(), { batch: 8 })
  for (let at = 0; at < 30; at++) await addText(`the dog number ${at} barked`)
  await idle()
  expect(Math.max(...asked.slice(1).map(({ body }) => body.input.length))).toBe(8)
  expect(texts().filter(text => text.startsWith('the dog'))).toHaveLength(30)
  expect(await use(store => store.unembedded('doc', 'm@64', 99))).toEqual([])
})

test('texts of waiting episodes share a batch, each once', async () => {
  const { addText, idle, become, settled, pass, asked } = await start(vectors())
  await addText('the first dog barked')
  await idle()
  become(() => ({ status: 503 }))
  await addText('dog number 0')
  await settled([{ error: expect.stringContaining('503') }])
  for (let at = 1; at < 20; at++) await addText(`dog number ${at}`)
  const before = asked.length
  become(vectors())
  pass(3_600_000)
  await idle()
  expect(asked).toHaveLength(before + 1)
  expect(asked.at(-1)?.body.input).toHaveLength(20)
})

test('later episodes cost only their own texts', async () => {
  const { addText, idle, texts } = await start(vectors())
  await addText('the first dog barked')
  await idle()
  const before = texts().length
  await addText('the second dog barked')
  await idle()
  const added = texts().slice(before)
  expect(added).toContain('the second dog barked')
  expect(added).not.toContain('the first dog barked')
})

test('another model replaces vectors in the background; the old ones are dropped when all new ones exist', async () => {
  const first = await start(vectors(32))
  for (const animal of ['cat', 'dog']) await first.addText(`the ${animal} sleeps`)
  await first.idle()
  await first.stop()
  const embedding = { ...first.embedding, model: 'other', batch: 1 }
  let counted = 0
  first.become((asked, nth) => {
    counted ||= nth
    return vectors(48)(asked)
  })
  const second = await startModels({ embedding }, first.folder, first.clock)
  await second.worker.resume()
  await vi.waitFor(() => second.use(async store => expect(await store.unembedded('doc', 'other@48', 9)).toEqual([])), {
    timeout: 5_000,
  })
  await second.idle()
  expect(counted).toBeGreaterThan(0)
  expect((await near(second, 'an animal')).toSorted()).toEqual(['the cat sleeps', 'the dog sleeps'])
  expect(await second.use(store => store.dropVectorsExcept('other@48'))).toBe(0)
  await second.stop()
  const asked = first.asked.length
  const third = await startModels({ embedding }, first.folder, first.clock)
  await third.worker.resume()
  await third.idle()
  expect(first.asked).toHaveLength(asked)
})

test('rows without an episode are embedded after the next start', async () => {
  const first = await start(vectors())
  await first.addText('the cat sleeps')
  await first.idle()
  const end = (name: string) => ({ name })
  const told = { source: end('Rex'), target: end('Ann'), name: 'BELONGS_TO', fact: 'the dog Rex belongs to Ann' }
  await first.use(store =>
    store.addFacts('main', { entities: [], facts: [{ ...told, origin: 'triplet', confidence: 1 }] }),
  )
  await first.stop()
  const second = await startModels({ embedding: first.embedding }, first.folder, first.clock)
  await second.worker.resume()
  await vi.waitFor(() => expect(first.texts()).toContain('the dog Rex belongs to Ann'), { timeout: 5_000 })
  await second.idle()
})

test('when a model changes the length of its vectors, all are computed again', async () => {
  const memory = await start(vectors(32))
  await memory.addText('the cat sleeps')
  await memory.idle()
  memory.become(vectors(40))
  await memory.addText('the dog sleeps')
  await memory.settled([{ state: 'waiting', error: expect.stringContaining('from m@32 to m@40') }])
  memory.pass(60_000)
  await memory.idle()
  expect((await near(memory, 'an animal')).toSorted()).toEqual(['the cat sleeps', 'the dog sleeps'])
  expect(await memory.use(store => store.dropVectorsExcept('m@40'))).toBe(0)
})

test('vectors of another length than configured are rejected', async () => {
  const { addText, settled, use, asked } = await start(vectors(32), { dimensions: 64 })
  await addText('the cat sleeps')
  await settled([
    { state: 'waiting', attempts: 0, error: expect.stringContaining('32 numbers, but 64 are configured') },
  ])
  expect(asked[0]?.body.dimensions).toBe(64)
  expect((await use(store => store.stats())).vectors).toBe(0)
})

test('vectors that fail the calibration are not used', async () => {
  const { addText, settled, use, embed } = await start(({ body }) => embedded(body.input, text => noise(text)))
  await addText('the cat sleeps')
  await settled([{ state: 'waiting', attempts: 0, error: expect.stringContaining('do not place similar texts') }])
  expect((await use(store => store.stats())).vectors).toBe(0)
  expect(await embed('an animal')).toBeUndefined()
})

test('a trusted model skips the calibration', async () => {
  const { addText, idle, use } = await start(({ body }) => embedded(body.input, text => noise(text)), { trusted: true })
  await addText('the cat sleeps')
  await idle()
  expect((await use(store => store.stats())).vectors).toBeGreaterThan(0)
})

test.each<[string, (texts: readonly string[]) => unknown]>([
  ['fewer vectors than texts', texts => ({ data: texts.slice(1).map(() => ({ embedding: [1, 2] })) })],
  ['vectors of words', texts => ({ data: texts.map(() => ({ embedding: ['a', 'b'] })) })],
  ['vectors with holes', texts => ({ data: texts.map(() => ({ embedding: [1, null] })) })],
  ['vectors of two lengths', texts => ({ data: texts.map((_, at) => ({ embedding: Array(2 + (at % 2)).fill(1) })) })],
  ['one vector many times', texts => ({ data: texts.map(() => ({ index: 0, embedding: [1, 2] })) })],
  ['something else', () => ({ vectors: [] })],
])('%s are rejected, and the job says so', async (_, answer) => {
  const { addText, settled, use } = await start(({ body }) => ({ json: answer(body.input) }))
  await addText('the cat sleeps')
  await settled([{ state: 'waiting', attempts: 1, error: expect.stringContaining('The embedding endpoint') }])
  expect((await use(store => store.stats())).vectors).toBe(0)
})

test('vectors in another order are matched to their texts', async () => {
  const memory = await start(asked => {
    const { json } = vectors()(asked) as { json: { data: unknown[] } }
    return { json: { ...json, data: json.data.toReversed() } }
  })
  await memory.addText('the cat sleeps')
  await memory.addText('the lorry stops')
  await memory.idle()
  expect((await near(memory, 'what did I drive'))[0]).toBe('the lorry stops')
})

test('a text that the endpoint rejects does not block the others', async () => {
  const memory = await start(asked =>
    asked.body.input.some(text => text.includes('cursed')) ? { status: 400 } : vectors()(asked),
  )
  await memory.addText('the cursed scroll')
  await memory.addText('the cat sleeps')
  await memory.idle()
  expect((await near(memory, 'an animal'))[0]).toBe('the cat sleeps')
  expect(memory.lines.map(({ message }) => message)).toContain('text not embedded: the endpoint rejected it')
})

test('the budget limits embedding, and finished vectors stay', async () => {
  const { addText, idle, settled, pass, use, clock } = await start(vectors(), { batch: 1, callsPerMinute: 2 })
  clock.at = Math.ceil(clock.at / 60_000) * 60_000
  await addText('the cat and the dog\n\nsleep')
  await addText('the lorry stops')
  await settled([{ state: 'waiting', attempts: 0, error: expect.stringContaining('2 calls') }, {}])
  expect((await use(store => store.stats())).vectors).toBe(2)
  for (let minute = 0; minute < 4; minute++) {
    pass(60_000)
    await vi.waitFor(
      async () => expect((await use(store => store.nextDue(['embed']))) ?? Infinity).toBeGreaterThan(clock.at),
      8_000,
    )
  }
  await idle()
})
