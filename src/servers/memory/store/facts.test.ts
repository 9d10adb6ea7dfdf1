import { describe, expect, test } from 'vitest'
import { ENGINES } from '../../../../test/support/memory/engines.ts'
import { DAY, FACT_WEIGHTS, START, stated, tell } from '../../../../test/support/memory/sqlite-store.ts'
import { queryTerms } from '../../../text/query.ts'

describe.each(ENGINES)('$name', ({ temporaryStore }) => {
  const lives = (place: string, day: number, more = {}) =>
    stated('Ann', 'LIVES_IN', place, { singleValued: true, validAt: START + day * DAY, ...more })

  test('a single-valued relation ends when its next value begins, also when stated late', async () => {
    const store = await temporaryStore()
    await tell(store, 'Ann: one', { facts: [lives('Rome', 0)] })
    const moved = await tell(store, 'Ann: two', { facts: [lives('Oslo', 20)] })
    const late = await tell(store, 'Ann: three', { facts: [lives('Bonn', 10)] })
    const facts = (await store.facts('all', 99)).filter(fact => fact.name === 'LIVES_IN')
    expect(facts.map(fact => [fact.fact, fact.invalidAt, fact.expiredAt === undefined])).toEqual([
      ['Ann lives in Rome', START + 10 * DAY, false],
      ['Ann lives in Oslo', undefined, true],
      ['Ann lives in Bonn', START + 20 * DAY, false],
    ])
    expect([moved.closed.length, late.closed.length]).toEqual([1, 1])
  })

  test('facts as of a time are those that had begun and not ended', async () => {
    const store = await temporaryStore()
    const later = stated('Ann', 'OWNS', 'Boat', { validAt: START + 9 * DAY })
    const ended = stated('Ann', 'OWNS', 'Bike', { validAt: START, invalidAt: START + 5 * DAY })
    await tell(store, 'Ann: one', { facts: [later, ended] })
    const asOf = async (day: number) => {
      const found = await store.factsByTime('all', 9, { names: ['OWNS'], asOf: START + day * DAY })
      return found.map(({ fact }) => fact)
    }
    const terms = queryTerms('Ann owns')
    const searched = (day: number) =>
      store.searchFacts({ terms, groups: 'all', limit: 9, weights: FACT_WEIGHTS }, { asOf: START + day * DAY })
    expect((await searched(1)).map(({ fact }) => fact)).toEqual(['Ann owns Bike'])
    expect([await asOf(-1), await asOf(0), await asOf(5), await asOf(9)]).toEqual([
      [],
      ['Ann owns Bike'],
      [],
      ['Ann owns Boat'],
    ])
  })

  test('a preview of what forgetting would erase erases nothing', async () => {
    const store = await temporaryStore()
    const { episode } = await tell(store, 'Ann: Bob lives in Rome.', { facts: [stated('Ann', 'KNOWS', 'Bob')] })
    const before = [await store.stats(), await store.factsByTime('all', 9, {})]
    const preview = await store.previewForget({ kind: 'subject', name: 'Bob', groups: 'all' })
    expect(preview.episodes).toEqual([{ uuid: episode.uuid, text: episode.name, isNamed: true }])
    expect(preview.entities.map(({ text }) => text).toSorted()).toEqual(expect.arrayContaining(['Ann', 'Bob']))
    expect(preview.facts.map(({ text }) => text)).toContain('Ann knows Bob')
    const after = [await store.stats(), await store.factsByTime('all', 9, {})]
    expect(after).toEqual(before)
    expect(await store.audit(9)).toEqual([])
    const { erased } = await store.forget({ kind: 'subject', name: 'Bob', groups: 'all' })
    expect(erased.facts.toSorted()).toEqual(preview.facts.map(({ uuid }) => uuid).toSorted())
  })

  test('a fact stated again is one fact with both episodes and more confidence', async () => {
    const store = await temporaryStore()
    const one = await tell(store, 'Ann: one', { facts: [lives('Rome', 0, { confidence: 0.4 })] })
    const two = await tell(store, 'Ann: two', { facts: [lives('ROME', 3, { fact: 'ann  LIVES in rome' })] })
    const [fact, ...others] = (await store.facts('all', 99)).filter(each => each.name === 'LIVES_IN')
    expect(others).toEqual([])
    expect(fact).toMatchObject({ episodes: [one.episode.uuid, two.episode.uuid], confidence: 1 })
  })

  test('a fact that ended and is stated again is a new one', async () => {
    const store = await temporaryStore()
    await tell(store, 'Ann: one', { facts: [lives('Rome', 0)] })
    await tell(store, 'Ann: two', { facts: [lives('Oslo', 10)] })
    await tell(store, 'Ann: three', { facts: [lives('Rome', 20)] })
    const spans = (await store.facts('all', 99)).filter(fact => fact.name === 'LIVES_IN')
    expect(spans.map(fact => [fact.fact, fact.validAt, fact.invalidAt])).toEqual([
      ['Ann lives in Rome', START, START + 10 * DAY],
      ['Ann lives in Oslo', START + 10 * DAY, START + 20 * DAY],
      ['Ann lives in Rome', START + 20 * DAY, undefined],
    ])
  })

  test('a superseded fact ends and names its successor', async () => {
    const store = await temporaryStore()
    const old = await store.addFacts('main', {
      entities: [],
      facts: [stated('Ann', 'LIKES', 'Tea', { origin: 'triplet' })],
    })
    const uuid = old.facts[0]?.uuid ?? ''
    const { facts, closed } = await tell(store, 'Ann: no more', {
      facts: [stated('Ann', 'LIKES', 'Coffee', { supersedes: [uuid] })],
    })
    expect(closed).toEqual([uuid])
    expect(await store.fact(uuid)).toMatchObject({ invalidAt: START, supersededBy: facts[0]?.uuid })
  })

  test.each([
    ['ends before it begins', [lives('Rome', 5, { invalidAt: START })], /ends .* before it begins/],
    ['two values at one time', [lives('Rome', 0), lives('Oslo', 0)], /one value at a time/],
    ['supersedes itself', [lives('Rome', 0, { uuid: 'u', supersedes: ['u'] })], /supersedes itself/],
    ['supersedes what is not there', [lives('Rome', 0, { supersedes: ['nothing'] })], /no fact nothing/],
    ['says nothing', [lives('Rome', 0, { fact: '  ' })], /says nothing/],
    ['is of no date', [lives('Rome', 0, { validAt: Number.NaN })], /date that does not exist/],
    ['has no subject', [stated('…', 'IS', 'Rome')], /needs a name/],
    ['points to an unknown uuid', [stated('Ann', 'IS', 'Rome', { target: { uuid: 'missing' } })], /no entity missing/],
  ])('a fact that %s is refused clearly, and nothing is stored', async (_, facts, message) => {
    const store = await temporaryStore()
    await expect(tell(store, 'Ann: something', { facts })).rejects.toThrow(message)
    expect((await store.stats()).groups).toEqual([])
  })

  test('facts that go round in a circle are stored and walked like any other', async () => {
    const store = await temporaryStore()
    const facts = [
      stated('A1', 'NEXT', 'B1'),
      stated('B1', 'NEXT', 'C1'),
      stated('C1', 'NEXT', 'A1'),
      stated('A1', 'IS', 'A1'),
    ]
    const { entities } = await store.addFacts('main', { entities: [], facts })
    const [first] = entities
    const steps = await store.neighbours([first?.id ?? 0], 99)
    expect(new Set(steps.map(step => step.to))).toEqual(new Set(entities.map(entity => entity.id)))
  })

  test('the facts of a deleted episode pass to the next one that states them; those of it alone are deleted', async () => {
    const store = await temporaryStore()
    const one = await tell(store, 'Ann: The tower in Pisa leans.', { facts: [lives('Rome', 0)] })
    const two = await tell(store, 'Ann: The tower in Pisa leans.', { validAt: START + DAY, facts: [lives('Rome', 0)] })
    await tell(store, 'Ann: Only Quito said this.', {})
    await store.deleteEpisode(one.episode.uuid)
    const facts = await store.facts('all', 99)
    expect(facts.map(fact => [fact.fact, fact.episodes.length])).toEqual([
      ['Ann lives in Rome', 1],
      ['The tower in Pisa leans.', 1],
      ['Only Quito said this.', 1],
    ])
    expect(facts[1]).toMatchObject({ episodes: [two.episode.uuid] })
    expect((await store.docs([facts[1]?.docId ?? 0]))[0]?.episode).toBe(two.episode.uuid)
    await store.deleteEpisode(two.episode.uuid)
    expect((await store.entities('all', 99)).map(entity => entity.name).toSorted()).toEqual(['Ann', 'Quito'])
    await expect(store.deleteEpisode(two.episode.uuid)).rejects.toMatchObject({ kind: 'missing' })
  })

  test('a deleted fact takes the entities that only it made known', async () => {
    const store = await temporaryStore()
    const { facts } = await store.addFacts('main', { entities: [], facts: [stated('Ann', 'LIKES', 'Tea')] })
    await tell(store, 'Ann: Hello.')
    await store.deleteFact(facts[0]?.uuid ?? '')
    const names = (await store.entities('all', 9)).map(entity => entity.name)
    expect(names).toContain('Ann')
    expect(names).not.toContain('Tea')
    await expect(store.deleteFact('nothing')).rejects.toMatchObject({ kind: 'missing' })
  })

  test('clearing a group leaves the others whole', async () => {
    const store = await temporaryStore()
    for (const group of ['a', 'b'])
      await tell(store, 'Ann: The tower in Pisa leans.', { group, saga: 's', facts: [lives('Rome', 0)] })
    await store.clear(['a'])
    expect((await store.stats()).groups).toEqual([expect.objectContaining({ group: 'b', episodes: 1 })])
    expect(await store.facts(['a'], 9)).toEqual([])
    await store.clear('all')
    expect(await store.stats()).toMatchObject({ groups: [], docs: 0, sagas: 0 })
  })

  test('a fact that ended and is stated again without a date holds again', async () => {
    const store = await temporaryStore()
    const tea = stated('Ann', 'LIKES', 'Tea', { origin: 'triplet' })
    const [old] = (await store.addFacts('main', { entities: [], facts: [tea] })).facts
    const coffee = stated('Ann', 'LIKES', 'Coffee', { origin: 'triplet', supersedes: [old?.uuid ?? ''] })
    await store.addFacts('main', { entities: [], facts: [coffee] })
    const [again] = (await store.addFacts('main', { entities: [], facts: [tea] })).facts
    expect(again?.uuid).not.toBe(old?.uuid)
    expect(again).toMatchObject({ fact: 'Ann likes Tea', invalidAt: undefined, expiredAt: undefined })
  })

  test('a fact cannot supersede one of another group', async () => {
    const store = await temporaryStore()
    const { facts } = await store.addFacts('a', { entities: [], facts: [stated('Ann', 'LIKES', 'Tea')] })
    const other = stated('Ann', 'LIKES', 'Coffee', { supersedes: [facts[0]?.uuid ?? ''] })
    await expect(store.addFacts('b', { entities: [], facts: [other] })).rejects.toThrow(/no fact .* in group b/)
    expect(await store.fact(facts[0]?.uuid ?? '')).toMatchObject({ expiredAt: undefined })
  })
})
