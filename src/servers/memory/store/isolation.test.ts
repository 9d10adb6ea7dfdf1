import { describe, expect, test } from 'vitest'
import { ENGINES } from '../../../../test/support/memory/engines.ts'
import { interleave } from '../../../../test/support/memory/interleave.ts'
import { DOC_WEIGHTS, stated, tell } from '../../../../test/support/memory/sqlite-store.ts'
import { queryTerms } from '../../../text/query.ts'
import { normaliseName } from '../text/names.ts'

describe.each(ENGINES)('$name', ({ temporaryStore }) => {
  /** Two groups that say and call everything alike, but for one word. */
  const twins = async () => {
    const store = await temporaryStore()
    for (const group of ['a', 'b'])
      for (const line of [`Ann: The vault is at ${group}-place.`, 'Bob: Noted, thanks.', 'Ann: Good.'])
        await tell(store, line, {
          group,
          chain: 'messages',
          saga: 'talk',
          facts: [stated('Ann', 'KEEPS', `Vault of ${group}`), stated('Bob', 'KNOWS', 'Ann')],
        })
    return store
  }

  test('passages have neighbours of their own group only', async () => {
    const store = await twins()
    const hits = await store.searchDocs({
      terms: queryTerms('vault place noted'),
      groups: ['a'],
      limit: 99,
      weights: DOC_WEIGHTS,
    })
    expect(hits.length).toBeGreaterThan(1)
    expect(JSON.stringify(hits)).not.toContain('b-place')
  })

  test('a walk along facts stays in its group', async () => {
    const store = await twins()
    const [ann] = await store.entitiesNamed(['ann'], ['a'])
    const steps = await store.neighbours([ann?.id ?? 0], 99)
    const met = await store.entitiesById(steps.map(({ to }) => to))
    expect(new Set(met.map(({ group }) => group))).toEqual(new Set(['a']))
  })

  test('sagas, links, communities, jobs and exports are those of the groups asked for', async () => {
    const store = await twins()
    for (const group of ['a', 'b']) await store.enqueue(group, { kind: 'communities' })
    const links = await store.links(['a'])
    expect(new Set(links.map(({ group }) => group))).toEqual(new Set(['a']))
    const members = (await store.entities(['b'], 9)).map(({ uuid }) => uuid)
    await store.replaceCommunities(['a'], [{ group: 'a', name: 'mixed', summary: '', members }])
    expect((await store.communities('all')).map(({ members: found }) => found)).toEqual([[]])
    expect((await store.sagas(['a'])).map(({ group }) => group)).toEqual(['a'])
    expect((await store.jobs({ groups: ['a'], limit: 9 })).map(({ group }) => group)).toEqual(['a'])
    for await (const line of store.exportLines(['a'])) expect(line).not.toContain('"group":"b"')
  })

  test('forgetting a subject in one group leaves it in the other', async () => {
    const store = await twins()
    await store.forget({ kind: 'subject', name: 'Ann', groups: ['a'] })
    expect(await store.entitiesNamed(['ann'], ['a'])).toEqual([])
    expect((await store.episodes({ groups: ['b'], limit: 9 })).length).toBe(3)
    expect((await store.entitiesNamed(['ann'], ['b'])).length).toBe(1)
  })

  test('an entity of another group is not pointed to, renamed into or replaced by its uuid', async () => {
    const store = await twins()
    const [theirs] = await store.entitiesNamed(['ann'], ['b'])
    const uuid = theirs?.uuid ?? ''
    const fact = stated('Cid', 'KNOWS', 'Ann', { target: { uuid } })
    await expect(store.addFacts('a', { entities: [], facts: [fact] })).rejects.toMatchObject({ kind: 'missing' })
    await expect(store.addFacts('a', { entities: [{ name: 'Ann', uuid }], facts: [] })).rejects.toThrow(/another group/)
    const [episode] = await store.episodes({ groups: ['b'], limit: 1 })
    await expect(tell(store, 'Ann: x', { group: 'a', saga: 'talk', sagaPrevious: episode?.uuid })).rejects.toThrow(
      /no episode .* in group a/,
    )
  })

  test('adds of many groups at once make no name twice and leak nothing', async () => {
    const store = await temporaryStore()
    const groups = 20
    await interleave(store, { adds: 300, groups }) // `npm run soak` adds more
    const entities = await store.entities('all', 100_000)
    const keys = entities.map(entity => `${entity.group}/${normaliseName(entity.name)}`)
    expect(keys.length - new Set(keys).size).toBe(0)
    expect(new Set(entities.map(entity => entity.group)).size).toBe(groups)
    const group = new Map(entities.map(entity => [entity.uuid, entity.group]))
    const facts = await store.facts('all', 100_000)
    expect(
      facts.filter(fact => group.get(fact.source) !== fact.group || group.get(fact.target) !== fact.group),
    ).toEqual([])
    for (const fact of facts) expect(fact.fact).toContain(`in ${fact.group} `)
  }, 60_000)
})
