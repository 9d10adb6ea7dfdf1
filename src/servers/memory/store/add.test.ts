import { describe, expect, test } from 'vitest'
import { ENGINES } from '../../../../test/support/memory/engines.ts'
import {
  DAY,
  DOC_WEIGHTS,
  ENTITY_WEIGHTS,
  FACT_WEIGHTS,
  START,
  stated,
  tell,
} from '../../../../test/support/memory/sqlite-store.ts'
import { queryTerms } from '../../../text/query.ts'
import type { MemoryStore } from '../store.ts'

describe.each(ENGINES)('$name', ({ temporaryStore }) => {
  const found = async (store: MemoryStore, query: string, groups: readonly string[] | 'all' = 'all') =>
    (await store.searchDocs({ terms: queryTerms(query), groups, limit: 10, weights: DOC_WEIGHTS })).map(doc => doc.text)

  test('an episode is found by the next search, with its passages, entities and facts', async () => {
    const store = await temporaryStore()
    const added = await tell(store, 'Ann: I bought a cello in Cremona.\nBob: Lovely!')
    expect(added.outcome).toBe('created')
    expect(await found(store, 'cello')).toContain('I bought a cello in Cremona.')
    expect(added.entities.map(entity => entity.name)).toEqual(expect.arrayContaining(['Ann', 'Bob', 'Cremona']))
    const [fact] = await store.factsOfDocs([added.facts[0]?.docId ?? 0])
    expect(fact).toMatchObject({ fact: 'I bought a cello in Cremona.', origin: 'rule', episodes: [added.episode.uuid] })
  })

  test('the same episode of the same time is stored once, of another time again', async () => {
    const store = await temporaryStore()
    const first = await tell(store, 'Ann: Hello there Bob.')
    const again = await tell(store, 'Ann: Hello there Bob.')
    const later = await tell(store, 'Ann: Hello there Bob.', { validAt: START + DAY })
    expect(again).toMatchObject({ outcome: 'same', episode: { uuid: first.episode.uuid } })
    expect(later.outcome).toBe('created')
    expect(await store.episodes({ groups: 'all', limit: 10 })).toHaveLength(2)
    expect((await store.stats()).groups[0]).toMatchObject({ episodes: 2 })
  })

  test('a uuid creates, and replaces what it created', async () => {
    const store = await temporaryStore()
    const uuid = '11111111-2222-4333-8444-555555555555'
    expect((await tell(store, 'Ann: The zebra is in Kenya.', { uuid })).outcome).toBe('created')
    expect((await tell(store, 'Ann: The giraffe is in Chad.', { uuid })).outcome).toBe('replaced')
    expect(await found(store, 'zebra')).toEqual([])
    expect(await found(store, 'giraffe')).toEqual(['The giraffe is in Chad.'])
    expect((await store.entities('all', 10)).map(entity => entity.name)).not.toContain('Kenya')
    expect((await store.audit(5))[0]).toMatchObject({ op: 'replace episode', ids: [uuid] })
  })

  test('a uuid of another group, or for an episode stored under another uuid, is rejected', async () => {
    const store = await temporaryStore()
    const { episode } = await tell(store, 'Ann: One thing.')
    await expect(tell(store, 'Ann: Other.', { uuid: episode.uuid, group: 'b' })).rejects.toThrow(/another group/)
    await expect(tell(store, 'Ann: One thing.', { uuid: '1' })).rejects.toThrow(episode.uuid)
  })

  test('what cannot be stored whole is not stored at all', async () => {
    const store = await temporaryStore()
    const facts = [stated('Ann', 'KNOWS', 'Bob', { supersedes: ['nothing'] })]
    await expect(tell(store, 'Ann: A half thing.', { facts })).rejects.toMatchObject({ kind: 'invalid' })
    expect(await store.stats()).toMatchObject({ groups: [], docs: 0 })
    expect(await found(store, 'half')).toEqual([])
  })

  test('turns of one conversation are context to each other across episodes, and only there', async () => {
    const store = await temporaryStore()
    const chat = { chain: 'chat' }
    for (const line of ['Ann: alpha', 'Bob: beta', 'Ann: gamma', 'Bob: delta']) await tell(store, line, chat)
    await tell(store, 'Cat: elsewhere', { chain: 'other' })
    const { episode } = await tell(store, 'Ann: epsilon', chat)
    const docs = await store.docs([1, 2, 3, 4, 5, 6])
    expect(docs.map(({ text, prev, next }) => [text, prev, next])).toEqual([
      ['alpha', '', 'Bob: beta'],
      ['beta', 'Ann: alpha', 'Ann: gamma'],
      ['gamma', 'Ann: alpha\nBob: beta', 'Bob: delta'],
      ['delta', 'Bob: beta\nAnn: gamma', 'Ann: epsilon'],
      ['elsewhere', '', ''],
      ['epsilon', 'Ann: gamma\nBob: delta', ''],
    ])
    expect(await found(store, 'epsilon')).toEqual(['epsilon', 'delta'])
    await store.deleteEpisode(episode.uuid)
    expect(await found(store, 'epsilon')).toEqual([])
  })

  test('a deleted turn disappears from its neighbours, which become each other’s neighbours', async () => {
    const store = await temporaryStore()
    const told = []
    for (const line of ['Ann: alpha', 'Bob: beta', 'Ann: gamma']) told.push(await tell(store, line, { chain: 'chat' }))
    await store.deleteEpisode(told[1]?.episode.uuid ?? '')
    expect((await store.docs([1, 3])).map(({ prev, next }) => [prev, next])).toEqual([
      ['', 'Ann: gamma'],
      ['Ann: alpha', ''],
    ])
    expect(await found(store, 'beta')).toEqual([])
  })

  test('groups do not see each other', async () => {
    const store = await temporaryStore()
    await tell(store, 'Ann: the secret of group a', { group: 'a' })
    await tell(store, 'Ann: the secret of group b', { group: 'b' })
    expect(await found(store, 'secret', ['a'])).toEqual(['the secret of group a'])
    expect((await store.entitiesNamed(['ann'], ['a'])).map(entity => entity.group)).toEqual(['a'])
    expect(
      (await store.searchEntities({ terms: queryTerms('ann'), groups: ['b'], limit: 9, weights: ENTITY_WEIGHTS }))[0]
        ?.group,
    ).toBe('b')
    expect((await store.factsByTime(['a'], 9, {})).map(fact => fact.group)).toEqual(['a'])
  })

  test('given facts are found by their own words, and by their dates', async () => {
    const store = await temporaryStore()
    const facts = [
      stated('Ann', 'WORKS_AT', 'Acme', { validAt: START }),
      stated('Ann', 'KNOWS', 'Bob', { validAt: START + 9 * DAY }),
    ]
    await tell(store, 'Ann: Hi.', { facts })
    const search = (filter = {}) =>
      store.searchFacts({ terms: queryTerms('ann'), groups: ['main'], limit: 9, weights: FACT_WEIGHTS }, filter)
    expect((await search()).map(fact => fact.name).toSorted()).toEqual(['KNOWS', 'WORKS_AT'])
    expect((await search({ validAfter: START + DAY })).map(fact => fact.name)).toEqual(['KNOWS'])
    expect((await search({ names: ['WORKS_AT'] })).map(fact => fact.name)).toEqual(['WORKS_AT'])
  })

  test('search takes no syntax from a query', async () => {
    const store = await temporaryStore()
    await tell(store, 'Ann: the plain text')
    for (const query of [
      '"',
      '*',
      'NEAR(',
      'text:',
      '-text',
      '^plain AND',
      "'; DROP TABLE doc; --",
      '\u0000',
      '( OR )',
    ])
      await expect(found(store, query)).resolves.toBeInstanceOf(Array)
    expect(await found(store, '"plain')).toEqual(['the plain text'])
  })

  test('a saga is a chain whose links close when one goes', async () => {
    const store = await temporaryStore()
    const uuids: string[] = []
    for (const text of ['Ann: one', 'Ann: two', 'Ann: three'])
      uuids.push((await tell(store, text, { saga: 'trip' })).episode.uuid)
    const previous = async () =>
      (await store.episodes({ groups: ['main'], limit: 9, saga: 'trip', order: 'arrival' })).map(e => e.previous)
    expect(await previous()).toEqual([undefined, uuids[0], uuids[1]])
    await store.deleteEpisode(uuids[1] ?? '')
    expect(await previous()).toEqual([undefined, uuids[0]])
    await expect(tell(store, 'Ann: four', { saga: 'trip', sagaPrevious: 'missing' })).rejects.toThrow(
      /no episode missing/,
    )
  })

  test('a clock that goes back confuses neither order nor times', async () => {
    let now = START
    const store = await temporaryStore(() => now)
    await tell(store, 'Ann: first', {
      facts: [stated('Ann', 'LIVES_IN', 'Rome', { singleValued: true, validAt: START })],
    })
    now -= DAY
    const { closed } = await tell(store, 'Ann: second', {
      facts: [stated('Ann', 'LIVES_IN', 'Oslo', { singleValued: true, validAt: START + 1 })],
    })
    const listed = await store.episodes({ groups: 'all', limit: 9, order: 'arrival' })
    expect(listed.map(episode => episode.content)).toEqual(['Ann: first', 'Ann: second'])
    const old = await store.fact(closed[0] ?? '')
    expect(old?.expiredAt).toBeGreaterThanOrEqual(old?.createdAt ?? Number.POSITIVE_INFINITY)
  })

  test('what is stated with an episode that is stored already is kept, too', async () => {
    const store = await temporaryStore()
    const first = await tell(store, 'Ann: Hello there Bob.')
    const again = await tell(store, 'Ann: Hello there Bob.', {
      entities: [{ name: 'Bob', summary: 'A plumber' }],
      facts: [stated('Bob', 'WORKS_AT', 'Acme')],
    })
    expect(again).toMatchObject({ outcome: 'same', episode: { uuid: first.episode.uuid } })
    const facts = (await store.facts('all', 9)).map(({ fact, episodes }) => [fact, episodes])
    expect(facts).toEqual([
      ['Hello there Bob.', [first.episode.uuid]],
      ['Bob works at Acme', [first.episode.uuid]],
    ])
    expect((await store.entitiesNamed(['bob'], 'all'))[0]?.summary).toBe('A plumber')
  })
})
