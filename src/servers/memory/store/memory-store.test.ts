import { describe, expect, test } from 'vitest'
import { ENGINES } from '../../../../test/support/memory/engines.ts'
import { DAY, START, stated, tell } from '../../../../test/support/memory/sqlite-store.ts'
import type { MemoryStore } from '../store.ts'

const MINUTE = 60_000
const summarise = { kind: 'summarise', payload: { saga: 's' } } as const

const listed = async (store: MemoryStore) =>
  (await store.jobs({ groups: 'all', limit: 99 })).map(({ kind, state, group }) => [kind, state, group])

describe.each(ENGINES)('$name', ({ driver, temporaryStore }) => {
  test('reports its driver', async () => {
    expect((await (await temporaryStore()).stats()).driver).toMatch(driver)
  })

  test('keeps work about a group once, however many ask, and once more when it runs already', async () => {
    const store = await temporaryStore()
    for (const text of ['Ann: 1', 'Ann: 2'])
      await tell(store, text, { saga: 's', jobs: [summarise, { kind: 'communities' }] })
    await tell(store, 'Ann: 3', { group: 'other', jobs: [{ kind: 'communities' }] })
    await store.enqueue('main', summarise)
    expect(await listed(store)).toEqual([
      ['summarise', 'waiting', 'main'],
      ['communities', 'waiting', 'main'],
      ['communities', 'waiting', 'other'],
    ])
    await store.lease('w', ['summarise'], MINUTE)
    await tell(store, 'Ann: 4', { saga: 's', jobs: [summarise] })
    expect((await listed(store)).filter(([kind]) => kind === 'summarise')).toEqual([
      ['summarise', 'leased', 'main'],
      ['summarise', 'waiting', 'main'],
    ])
  })

  test('calls an episode ready whose only work is about its group, and keeps that work when the episode goes', async () => {
    const store = await temporaryStore()
    const { episode } = await tell(store, 'Ann: 1', { jobs: [{ kind: 'communities' }] })
    expect(episode.state).toBe('ready')
    expect((await tell(store, 'Ann: 2', { jobs: [{ kind: 'communities' }, { kind: 'extract' }] })).episode.state).toBe(
      'pending',
    )
    await store.deleteEpisode(episode.uuid)
    expect((await listed(store)).map(([kind]) => kind)).toEqual(['communities', 'extract'])
  })

  test('lets work that names a saga go with the saga', async () => {
    const store = await temporaryStore()
    const { episode } = await tell(store, 'Ann: 1', { saga: 's', jobs: [summarise] })
    await tell(store, 'Ann: 2', { saga: 't', jobs: [{ kind: 'summarise', payload: { saga: 't' } }] })
    await store.deleteEpisode(episode.uuid)
    expect((await store.jobs({ groups: 'all', limit: 9 })).map(({ payload }) => payload)).toEqual([{ saga: 't' }])
  })

  test('lists no more bodies than were asked for, and one beyond', async () => {
    const store = await temporaryStore()
    for (let at = 0; at < 6; at++)
      await tell(store, `${at}`.repeat(1_000), { source: 'text', validAt: START + at * DAY, group: at < 5 ? 'a' : 'b' })
    const first = async (query: object) =>
      (await store.episodes({ groups: 'all', limit: 99, ...query })).map(({ content }) => content[0])
    expect(await first({ mostBytes: 2_500 })).toEqual(['5', '4', '3'])
    expect(await first({ mostBytes: 2_000, order: 'oldest', groups: ['a'] })).toEqual(['0', '1', '2'])
    expect(await first({ mostBytes: 0, order: 'arrival' })).toEqual(['0'])
    expect(await first({ mostBytes: 9_000, limit: 2 })).toEqual(['5', '4'])
  })

  test('wants a new vector for an entity about which something else is said', async () => {
    const store = await temporaryStore()
    const [ann] = (await tell(store, 'Ann: Hello.')).entities
    if (!ann) throw new Error('no entity was found')
    const embed = () => store.putVectors([{ kind: 'entity', rowId: ann.id, model: 'm', vector: Float32Array.of(1, 0) }])
    const missing = async () => (await store.unembedded('entity', 'm', 9, [ann.id])).length
    await embed()
    await store.setEntity(ann.uuid, { labels: ['Person'] })
    expect(await missing()).toBe(0)
    await store.setEntity(ann.uuid, { summary: 'Ann sings.' })
    expect(await missing()).toBe(1)
    await embed()
    await tell(store, 'Ann: Again.', { entities: [{ name: 'Ann', summary: 'Ann dances.' }] })
    expect(await missing()).toBe(1)
  })

  test('quotes nothing that was deleted in what is said about sagas and communities', async () => {
    const store = await temporaryStore()
    const told = await tell(store, 'Ann: The cello is gone.', { saga: 's', facts: [stated('Ann', 'LOST', 'Cello')] })
    await tell(store, 'Ann: Hello, Cello.', { saga: 's', entities: [{ name: 'Cello' }], validAt: START + DAY })
    await store.setSagaSummary('main', 's', 'The cello is gone.', told.episode.id)
    const members = told.facts.flatMap(({ source, target, name }) => (name === 'LOST' ? [source, target] : []))
    await store.replaceCommunities('all', [{ group: 'main', name: 'Music', summary: 'Ann lost Cello', members }])
    await store.deleteEpisode(told.episode.uuid)
    expect(await store.sagas('all')).toMatchObject([{ name: 's', summary: '', summarisedTo: 0 }])
    expect(await store.communities('all')).toMatchObject([{ name: 'Music', summary: '' }])
  })

  test('reads passages in the order of their ids, whichever was changed last', async () => {
    const store = await temporaryStore()
    for (let day = 0; day < 4; day++)
      await tell(store, `Ann: Day ${day}.`, { chain: 'chat', validAt: START + day * DAY })
    const ids = (await store.docs([4, 3, 2, 1])).map(({ id }) => id)
    expect(ids).toEqual([1, 2, 3, 4])
  })
})
