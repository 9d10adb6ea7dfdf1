import { describe, expect, test } from 'vitest'
import { ENGINES } from '../../../../test/support/memory/engines.ts'
import { DAY, START, stated, tell } from '../../../../test/support/memory/sqlite-store.ts'

describe.each(ENGINES)('$name', ({ temporaryStore }) => {
  test('the links, neighbours and mentions of entities are counted', async () => {
    const store = await temporaryStore()
    const knows = stated('Ann', 'KNOWS', 'Bob', { validAt: START })
    await tell(store, 'x', { facts: [knows, stated('Bob', 'HELPS', 'Ann'), stated('Ann', 'LIKES', 'Cats')] })
    await tell(store, 'y'.repeat(5000), { facts: [{ ...knows, invalidAt: START + DAY }], validAt: START + DAY })
    const ann = (await store.entitiesNamed(['ann'], 'all'))[0]
    const id = ann?.id ?? -1
    expect((await store.connected(id, 9)).map(({ name, facts }) => [name, facts])).toEqual([
      ['Bob', 2],
      ['Cats', 1],
    ])
    expect((await store.weightedLinks('all', {}, 9)).map(({ facts }) => facts)).toEqual([1, 1])
    expect((await store.weightedLinks(['main'], { asOf: START }, 9)).map(({ facts }) => facts)).toEqual([2, 1])
    expect(await store.entityCount('all')).toBe(3)
    expect(await store.aliases(id)).toEqual([])
    const { episodes, total } = await store.mentions(id, 1)
    expect([episodes.length, total, episodes[0]?.characters, episodes[0]?.content.length]).toEqual([1, 2, 5000, 600])
  })

  test('pages by time continue after a row, also among rows of the same time', async () => {
    const store = await temporaryStore()
    for (const name of ['a', 'b', 'c'])
      await tell(store, name, { name, facts: [stated(name, 'IS', 'it', { validAt: START })] })
    const query = { groups: 'all' as const, limit: 2 }
    const [first, second] = await store.episodePage(query)
    expect([first?.name, second?.name]).toEqual(['c', 'b'])
    const after = { at: START, id: second?.id ?? -1 }
    expect((await store.episodePage({ ...query, after })).map(({ name }) => name)).toEqual(['a'])
    expect(await store.episodePage({ ...query, asOf: START - 1 })).toEqual([])
    const facts = await store.factPage({ ...query, limit: 9 })
    const place = { at: START, id: facts[0]?.id ?? -1 }
    expect(await store.factPage({ ...query, limit: 9, after: place })).toEqual(facts.slice(1))
    expect(await store.factPage({ ...query, asOf: START - 1 })).toEqual([])
  })
})
