import { describe, expect, test } from 'vitest'
import { ENGINES } from '../../../../test/support/memory/engines.ts'
import { stated } from '../../../../test/support/memory/sqlite-store.ts'
import { queryTerms } from '../../../text/query.ts'
import { WEIGHTS } from '../search/weights.ts'

const BY = { actor: 'console' }
const START = Date.UTC(2025, 0, 1)

describe.each(ENGINES)('$name', ({ temporaryStore }) => {
  const prepare = async () => {
    const store = await temporaryStore(() => Date.UTC(2026, 0, 1))
    const { facts } = await store.addFacts('main', {
      entities: [],
      facts: [{ ...stated('Ann', 'WORKS_AT', 'Acme'), fact: 'Ann works at Acme.', validAt: START }],
    })
    const [ann] = await store.entitiesNamed(['ann'], 'all')
    const find = async (text: string) =>
      (await store.searchFacts({ terms: queryTerms(text), groups: 'all', limit: 9, weights: WEIGHTS.facts })).map(
        ({ fact }) => fact,
      )
    return { store, fact: facts[0]?.uuid ?? '', ann: ann?.uuid ?? '', find }
  }

  test('an entity gets another name; the old one still leads to it, and facts are found by the new one', async () => {
    const { store, ann, find } = await prepare()
    const changed = await store.editEntity(
      ann,
      { name: ' Zelda Quist ', labels: ['Person'], summary: 'A cellist.' },
      BY,
    )
    expect(changed).toMatchObject({ uuid: ann, name: 'Zelda Quist', labels: ['Person'], summary: 'A cellist.' })
    expect(await store.aliases(changed.id)).toEqual(['Ann'])
    expect(await find('quist')).toEqual(['Ann works at Acme.'])
    expect((await store.entitiesNamed(['ann', 'zelda quist'], 'all')).map(({ uuid }) => uuid)).toEqual([ann, ann])
    expect(await store.audit(1)).toMatchObject([{ actor: 'console', op: 'change entity', ids: [ann] }])
    await store.editEntity(ann, { name: 'ZELDA QUIST' }, BY)
    expect(await store.aliases(changed.id)).toEqual(['Ann'])
  })

  test('a name of another entity is refused, and nothing changes', async () => {
    const { store, ann } = await prepare()
    await expect(store.editEntity(ann, { name: 'acme' }, BY)).rejects.toThrow('already names another entity')
    await expect(store.editEntity(ann, { name: ' ' }, BY)).rejects.toThrow('is no name')
    await expect(store.editEntity('missing', { summary: 'x' }, BY)).rejects.toThrow('There is no entity missing')
    expect(await store.entity(ann)).toMatchObject({ name: 'Ann' })
  })

  test('a fact ends, and can be true again', async () => {
    const { store, fact } = await prepare()
    const end = Date.UTC(2025, 5, 1)
    await store.editFact(fact, { invalidAt: end }, BY)
    expect(await store.fact(fact)).toMatchObject({ validAt: START, invalidAt: end, expiredAt: Date.UTC(2026, 0, 1) })
    await store.editFact(fact, { invalidAt: Date.UTC(2027, 0, 1) }, BY)
    expect(await store.fact(fact)).toMatchObject({ expiredAt: undefined })
    await store.editFact(fact, { invalidAt: null, validAt: null }, BY)
    expect(await store.fact(fact)).toMatchObject({ validAt: undefined, invalidAt: undefined, expiredAt: undefined })
    expect((await store.audit(9)).map(({ op }) => op)).toEqual(['change fact', 'change fact', 'change fact'])
  })

  test('a corrected fact is found by its new words only', async () => {
    const { store, fact, find } = await prepare()
    await store.editFact(fact, { fact: 'Ann directs the orchestra.', name: 'DIRECTS' }, BY)
    expect(await find('works')).toEqual([])
    expect(await find('orchestra')).toEqual(['Ann directs the orchestra.'])
    expect(await store.fact(fact)).toMatchObject({ name: 'DIRECTS', validAt: START, confidence: 1 })
  })

  test('a fact that ends before it begins is refused', async () => {
    const { store, fact } = await prepare()
    await expect(store.editFact(fact, { invalidAt: START - 1 }, BY)).rejects.toThrow('before it becomes true')
    await expect(store.editFact('missing', { fact: 'x' }, BY)).rejects.toThrow('There is no fact missing')
  })
})
