import { describe, expect, test } from 'vitest'
import { ENGINES } from '../../../../test/support/memory/engines.ts'
import { stated, tell } from '../../../../test/support/memory/sqlite-store.ts'

describe.each(ENGINES)('$name', ({ temporaryStore }) => {
  const vector = (...values: number[]): Float32Array => Float32Array.from(values)

  test('the nearest rows come first, of the wanted groups and the wanted model only', async () => {
    const store = await temporaryStore()
    for (const group of ['a', 'a', 'b']) await tell(store, `Ann: ${Math.random()}`, { group })
    await store.putVectors([
      { kind: 'doc', rowId: 1, model: 'm', vector: vector(1, 0, 0) },
      { kind: 'doc', rowId: 2, model: 'm', vector: vector(3, 3, 0) },
      { kind: 'doc', rowId: 3, model: 'm', vector: vector(1, 0, 0) },
      { kind: 'doc', rowId: 1, model: 'other', vector: vector(0, 1, 0, 0) },
      { kind: 'doc', rowId: 99, model: 'm', vector: vector(1, 0, 0) },
    ])
    const query = { kind: 'doc', model: 'm', vector: vector(2, 0.1, 0), groups: ['a'], limit: 9 } as const
    const found = await store.nearest(query)
    expect(found.map(({ rowId }) => rowId)).toEqual([1, 2])
    expect(found[0]?.score).toBeCloseTo(1, 1)
    expect(found[1]?.score).toBeCloseTo(Math.SQRT1_2, 1)
    expect((await store.stats()).vectors).toBe(4)
    expect(await store.dropVectorsExcept('m')).toBe(1)
  })

  test('what has no embedding of the model is listed until it has one, and goes with its row', async () => {
    const store = await temporaryStore()
    const { episode } = await tell(store, 'Ann: Hello.', { facts: [stated('Ann', 'LIKES', 'Tea')] })
    expect((await store.unembedded('doc', 'm', 9)).map(row => row.text)).toEqual(['Ann: Hello.'])
    expect((await store.unembedded('fact', 'm', 9)).map(row => row.text)).toEqual(['Ann likes Tea'])
    await store.putVectors([{ kind: 'doc', rowId: 1, model: 'm', vector: vector(1, 0) }])
    expect(await store.unembedded('doc', 'm', 9)).toEqual([])
    await store.deleteEpisode(episode.uuid)
    expect((await store.stats()).vectors).toBe(0)
  })

  test('listeners hear what changed, and nothing after they left', async () => {
    const store = await temporaryStore()
    const heard: string[] = []
    const leave = store.onChange(change => heard.push(`${change.op} ${change.kind}`))
    const { episode } = await tell(store, 'Ann: Hello there.')
    await tell(store, 'Ann: Hello there.')
    await store.deleteEpisode(episode.uuid)
    leave()
    await tell(store, 'Ann: Bye.')
    expect(heard).toEqual(['put episode', 'put entity', 'put fact', 'delete episode'])
  })

  test('what has no embedding can be asked for among some rows', async () => {
    const store = await temporaryStore()
    for (const text of ['Ann: One.', 'Ann: Two.', 'Ann: Three.']) await tell(store, text)
    await store.putVectors([{ kind: 'doc', rowId: 2, model: 'm', vector: vector(1, 0) }])
    const found = await store.unembedded('doc', 'm', 9, [1, 2])
    expect(found.map(({ rowId }) => rowId)).toEqual([1])
    expect(await store.unembedded('doc', 'm', 9, [])).toEqual([])
  })
})
