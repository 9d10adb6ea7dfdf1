import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ENGINES } from '../../../../test/support/memory/engines.ts'
import { stated, tell } from '../../../../test/support/memory/sqlite-store.ts'
import { fuzzySame, nameKeys, normaliseName } from '../text/names.ts'

describe.each(ENGINES)('$name', ({ temporaryStore }) => {
  const names = async (store: Awaited<ReturnType<typeof temporaryStore>>): Promise<string[]> =>
    (await store.entities('all', 999)).map(entity => entity.name)

  test('one name in any writing is one entity', async () => {
    const store = await temporaryStore()
    for (const name of ['José Müller', 'jose muller', 'JOSÉ  MÜLLER', '"José Müller"'])
      await store.addFacts('main', { entities: [{ name }], facts: [] })
    expect(await names(store)).toEqual(['José Müller'])
  })

  test('a name that cannot be stored as it is written is one entity too', async () => {
    const store = await temporaryStore()
    for (const name of ['Zero\0byte', 'Half a \ud83d pair', 'zero\0byte', 'half a \ud83d pair'])
      await store.addFacts('main', { entities: [{ name }], facts: [] })
    expect(await names(store)).toHaveLength(2)
    await store.addFacts('main', { entities: [], facts: [stated('Zero\0byte', 'IS', 'Half a \ud83d pair')] })
    expect(await names(store)).toHaveLength(2)
  })

  test('an add returns an entity as it is stored, also if the add changed it', async () => {
    const store = await temporaryStore()
    const add = (summary: string) =>
      store.addFacts('main', { entities: [{ name: 'Ann', summary, attributes: { born: new Date(0) } }], facts: [] })
    await add('A cellist.')
    const { entities } = await add('Zero\0byte')
    expect(await store.entities('all', 9)).toMatchObject(entities)
  })

  test('an alias names its entity, whichever of the two was known first', async () => {
    const store = await temporaryStore()
    await store.addFacts('main', { entities: [{ name: 'NYC' }], facts: [] })
    await store.addFacts('main', { entities: [{ name: 'New York City', aliases: ['NYC', 'Big Apple'] }], facts: [] })
    await store.addFacts('main', { entities: [{ name: 'big apple' }, { name: 'new york city' }], facts: [] })
    expect(await names(store)).toEqual(['NYC'])
    const [entity] = await store.entitiesNamed(['big apple'], ['main'])
    expect(entity?.name).toBe('NYC')
  })

  test('a long name with a slip is the same entity, a short or numbered one is not', async () => {
    const store = await temporaryStore()
    const given = ['Kubernetes cluster', 'Kubernetes clusters', 'Release 10', 'Release 11', 'Anna', 'Annas']
    for (const name of given) await store.addFacts('main', { entities: [{ name }], facts: [] })
    expect(await names(store)).toEqual(['Kubernetes cluster', 'Release 10', 'Release 11', 'Anna', 'Annas'])
  })

  test('addAlias rejects a name of another entity, and an alias given with an entity is skipped', async () => {
    const store = await temporaryStore()
    const { entities } = await store.addFacts('main', { entities: [{ name: 'Ann' }, { name: 'Bob' }], facts: [] })
    await expect(store.addAlias(entities[0]?.uuid ?? '', 'BOB')).rejects.toThrow(/already names another/)
    await store.addFacts('main', { entities: [{ name: 'Ann', aliases: ['Bob'] }], facts: [] })
    expect(await names(store)).toEqual(['Ann', 'Bob'])
    await store.addAlias(entities[0]?.uuid ?? '', 'Annie')
    expect((await store.entitiesNamed(['annie'], 'all'))[0]?.name).toBe('Ann')
  })

  test('labels gather, a new summary replaces, attributes are merged', async () => {
    const store = await temporaryStore()
    const say = (more: object) => store.addFacts('main', { entities: [{ name: 'Ann', ...more }], facts: [] })
    await say({ labels: ['Person'], summary: 'old', attributes: { a: 1 } })
    const { entities } = await say({ labels: ['Person', 'Cook'], summary: 'new', attributes: { b: 2 } })
    expect(entities[0]).toMatchObject({ labels: ['Person', 'Cook'], summary: 'new', attributes: { a: 1, b: 2 } })
  })

  test('an entity given under an own uuid can be pointed to by it, also when the name was known', async () => {
    const store = await temporaryStore()
    await tell(store, 'Ann: Hello.')
    const fact = stated('Ann', 'LIKES', 'Tea', { source: { uuid: 'mine' } })
    const { facts } = await store.addFacts('main', { entities: [{ name: 'Ann', uuid: 'mine' }], facts: [fact] })
    const [ann] = await store.entitiesNamed(['ann'], 'all')
    expect(facts[0]?.source).toBe(ann?.uuid)
  })

  test('names that differ by a number alone are not looked through one by one', () => {
    const keys = Array.from({ length: 200 }, (_, at) => nameKeys(`ticket number ${at}`))
    expect(new Set(keys.flat()).size).toBe(keys.flat().length)
  })

  test('names that are alike share a key to be found by', () => {
    const slips = fc.tuple(
      fc.string({ minLength: 5, maxLength: 70, unit: fc.constantFrom(...'abcdefghijklm no12') }),
      fc.nat(),
      fc.constantFrom('x', '', 'ab'),
    )
    fc.assert(
      fc.property(slips, ([name, at, put]) => {
        const place = at % (name.length + 1)
        const [one, other] = [name, name.slice(0, place) + put + name.slice(place + 1)].map(normaliseName) as [
          string,
          string,
        ]
        fc.pre(one !== other && fuzzySame(one, other))
        expect(nameKeys(one).some(key => nameKeys(other).includes(key))).toBe(true)
      }),
    )
  })
})
