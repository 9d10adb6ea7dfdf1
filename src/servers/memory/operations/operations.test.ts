import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { ForgetRequest } from '../../../protocol/memory-views.ts'
import { openStores } from '../open-stores.ts'
import { createRemember } from '../remember.ts'
import { createMemoryOperations } from './operations.ts'

const ANN = 'principal:ann'

const open = async () => {
  const folder = await mkdtemp(join(tmpdir(), 'dragoman-operations-'))
  const stores = openStores({ folder })
  const remember = createRemember({ extracts: false, embeds: false })
  onTestFinished(async () => {
    await stores.close()
    await rm(folder, { recursive: true })
  })
  return createMemoryOperations({
    stores,
    group: 'main',
    remember,
    embed: () => Promise.resolve(undefined),
    embeds: false,
    wake: () => {},
  })
}

const bytes = (...texts: string[]) => ReadableStream.from(texts.map(text => new TextEncoder().encode(text)))

test('the timeline is one list of episodes and facts, page by page', async () => {
  const memory = await open()
  for (let day = 1; day <= 9; day++)
    await memory.add(ANN, { text: `Ann met Bob${day} in Paris.`, at: `2025-03-0${day}` })
  const whole = (await memory.timeline(ANN, { limit: 500 })).items
  expect(whole.map(({ at }) => at)).toEqual(whole.map(({ at }) => at).toSorted((a, b) => b - a))
  const pages = []
  for (let after: string | undefined, isMore = true; isMore; ) {
    const page = await memory.timeline(ANN, { limit: 4, after })
    pages.push(...page.items)
    after = page.next
    isMore = after !== undefined
  }
  expect(pages).toEqual(whole)
  const episodes = await memory.timeline(ANN, { limit: 50, kind: 'episode', asOf: '2025-03-03' })
  expect(episodes.items.map(({ at }) => new Date(at).getUTCDate())).toEqual([3, 2, 1])
})

test('the graph has the most connected entities and the links between them', async () => {
  const memory = await open()
  await memory.add(ANN, { text: 'Ann met Bob in Paris.\nAnn met Carl in Paris.\nDora met Emil in Oslo.' })
  const graph = await memory.graph(ANN, {}, 100)
  expect(graph.nodes[0]).toMatchObject({ community: expect.any(Number), facts: expect.any(Number) })
  expect(graph.total).toBe(graph.nodes.length)
  for (const { source, target } of graph.links)
    expect([graph.nodes[source], graph.nodes[target]]).not.toContain(undefined)
  expect((await memory.graph(ANN, {}, 2)).nodes).toHaveLength(2)
  expect((await memory.graph(ANN, { asOf: '1900-01-01' }, 100)).nodes).toEqual([])
})

test('statistics count the entities that the graph has, without the Note of sentences that name none', async () => {
  const memory = await open()
  await memory.add(ANN, { text: 'Ann met Bob in Paris.\nIt rained all day.' })
  const [group] = (await memory.stats(ANN)).groups
  expect(group?.entities).toBe((await memory.graph(ANN, {}, 100)).total)
})

test('an entity has its facts, neighbours and episodes', async () => {
  const memory = await open()
  const { entities } = await memory.add(ANN, { text: 'Ann met Bob in Paris.', name: 'Trip', at: '2025-05-05' })
  const ann = entities.find(({ name }) => name === 'Ann')
  expect(await memory.entity(ANN, ann?.id ?? '', {})).toMatchObject({
    entity: { name: 'Ann' },
    facts: [{ text: 'Ann met Bob in Paris.', validFrom: Date.UTC(2025, 4, 5), episodes: [{ name: 'Trip' }] }],
    neighbours: [{ facts: 1 }],
    episodes: [{ name: 'Trip', characters: 21 }],
    mentions: 1,
  })
})

test('a search of another time finds the entities of which something was true then, with that many facts', async () => {
  const memory = await open()
  await memory.add(ANN, { text: 'Ann parked on Elm Street.', at: '2025-05-01' })
  await memory.add(ANN, { text: 'Ann parked on Elm Street beside Bob.', at: '2026-05-01' })
  const found = async (asOf?: string) =>
    (await memory.search(ANN, 'Elm Street', { asOf }, 10)).entities.map(({ name, facts }) => [name, facts])
  expect(await found()).toContainEqual(['Elm Street', 2])
  expect(await found('2025-06-01')).toContainEqual(['Elm Street', 1])
  expect(await found('2020-01-01')).toEqual([])
})

test('a preview tells what was asked for from what only goes with it, whatever its name', async () => {
  const memory = await open()
  const { entities } = await memory.add(ANN, { text: 'Bob met Bob Miller in Oslo.', name: 'Meeting' })
  await memory.add(ANN, { text: 'Ann lives in Oslo.' })
  const id = entities.find(({ name }) => name === 'Bob')?.id ?? ''
  const named = async (request: ForgetRequest) => {
    const { entities, facts } = await memory.planForget(ANN, request)
    return [...entities, ...facts].map(({ text, isNamed }) => [text, isNamed])
  }
  for (const request of [{ kind: 'entity', id } as const, { kind: 'subject', name: 'Bob' } as const]) {
    const rows = await named(request)
    expect(rows).toContainEqual(['Bob', true])
    expect(rows).toContainEqual(['Bob Miller', false])
    expect(rows).toContainEqual(['Bob met Bob Miller in Oslo.', true])
  }
})

test('what is exported is imported again; a broken upload stores nothing half', async () => {
  const memory = await open()
  await memory.add(ANN, { text: 'Ann met Bob in Paris.' })
  const lines = await memory.exported(ANN, {})
  const text = await new Response(lines).text()
  const report = await memory.imported('principal:bob', { name: 'a.jsonl', content: bytes(text) })
  expect(report).toMatchObject({ format: 'dragoman', created: 1, faulty: 0 })
  expect(await new Response(await memory.exported('principal:bob', {})).text()).toBe(text)
  const broken = new ReadableStream({
    pull: controller => {
      controller.enqueue(new TextEncoder().encode('half a sentence'))
      controller.error(new Error('aborted'))
    },
  })
  await expect(memory.imported(ANN, { name: 'b.txt', content: broken })).rejects.toMatchObject({ refusal: 'invalid' })
  expect((await memory.stats(ANN)).groups).toMatchObject([{ episodes: 1 }])
})

test('an export that is left early closes its store', async () => {
  const memory = await open()
  await memory.add(ANN, { text: 'Ann met Bob in Paris.' })
  const lines = (await memory.exported(ANN, {})).getReader()
  await lines.read()
  await lines.cancel()
  expect(await memory.forget(ANN, { kind: 'subject', name: 'Bob' })).toMatchObject({ episodes: 1, isClean: true })
})

test('a memory that does not exist is not created by reading', async () => {
  const memory = await open()
  await expect(memory.stats('principal:zoe')).rejects.toMatchObject({
    refusal: 'missing',
    message: 'Nothing has been stored in the memory of principal zoe yet',
  })
  expect(await memory.tenants()).toEqual([])
})
