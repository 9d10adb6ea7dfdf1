import { expect, test } from 'vitest'
import { said } from '../../../../test/support/memory/endpoint.ts'
import { ANN, entity, fact, finding, moving, startExtraction } from '../../../../test/support/memory/extract.ts'

test('one call brings entities and facts beside what rules read, with their origin, kind, time and passage', async () => {
  const { addText, idle, asked, use, facts } = await startExtraction(() =>
    finding(ANN, [fact('Ann', 'LIVES_IN', 'Berlin', { valid_at: '2024-05' })]),
  )
  const { uuid } = await addText('Ann has lived in Berlin since May.', { validAt: Date.UTC(2024, 7, 1) })
  const rules = await use(store => store.facts(['main'], 99))
  await idle()
  expect(asked).toHaveLength(1)
  expect(asked[0]?.body.model).toBe('large')
  expect(await facts()).toMatchObject([
    {
      source: expect.any(String),
      name: 'LIVES_IN',
      fact: 'Ann lives_in Berlin',
      validAt: Date.UTC(2024, 4, 1),
      granularity: 'month',
      episodes: [uuid],
      docId: expect.any(Number),
    },
  ])
  const after = await use(store => store.facts(['main'], 99))
  expect(after.filter(({ origin }) => origin === 'rule')).toEqual(rules)
  const [berlin] = await use(store => store.entitiesNamed(['berlin'], ['main']))
  expect(berlin).toMatchObject({ labels: expect.arrayContaining(['Location']), summary: 'Berlin is known.' })
  expect((await use(store => store.episode(uuid)))?.state).toBe('ready')
})

test("the caller's wishes reach the model, and excluded kinds are dropped from the answer", async () => {
  const lively = finding(
    [entity('Ann'), entity('Jazz', 'Topic'), entity('Bob')],
    [fact('Ann', 'LIKES', 'Jazz'), fact('Ann', 'KNOWS', 'Bob')],
  )
  const { addText, idle, asked, use, facts } = await startExtraction(({ body }) =>
    body.messages[1]?.content.includes('Jazz') ? lively : finding([]),
  )
  const first = await addText('Ann used to sing.', { name: 'first' })
  await idle()
  const other = await addText('No other group may read of Xanadu.', { group: 'other' })
  await idle()
  const extraction = { excluded: ['topic'], instructions: 'Mind the music.', previous: [first.uuid, other.uuid] }
  await addText('Ann likes Jazz and knows Bob.', { extraction })
  await idle()
  const user = asked.at(-1)?.body.messages[1]?.content ?? ''
  expect(user).toContain('Mind the music.')
  expect(user).toContain('leave out everything of the kind topic')
  expect(user).not.toContain('- Topic:')
  expect(user).toContain('Ann used to sing.')
  expect(user).not.toContain('Xanadu')
  expect((await facts()).map(({ name }) => name)).toEqual(['KNOWS'])
  const [jazz] = await use(store => store.entitiesNamed(['jazz'], ['main']))
  expect(jazz?.labels ?? []).not.toContain('Topic')
})

test('a message is read with the earlier messages', async () => {
  const { addText, idle, asked } = await startExtraction(() => finding([]))
  await addText('Ann: I found a flat.', { source: 'message', validAt: 1_000 })
  await addText('Ann: It is in Berlin.', { source: 'message', validAt: 2_000 })
  await idle()
  expect(asked[0]?.body.messages[1]?.content).not.toContain('## Earlier')
  expect(asked[1]?.body.messages[1]?.content).toContain('## Earlier episodes\nAnn: I found a flat.')
})

const move = async (judgement: unknown) => {
  const memory = await startExtraction(moving(judgement))
  await memory.addText('Ann lives in Berlin.')
  await memory.idle()
  await memory.addText('Ann lives in Paris now.')
  await memory.idle()
  return memory
}

test('a second call finds contradicted facts, which end when the new one begins; there is no third', async () => {
  const judgement = { entities: [], facts: [{ fact: 0, same_as: null, contradicts: [0] }] }
  const { asked, facts } = await move(judgement)
  expect(asked.map(({ body }) => body.model)).toEqual(['large', 'large', 'small'])
  expect(asked[2]?.body.messages[1]?.content).toContain('known 0: Ann lives_in Berlin')
  expect(await facts()).toMatchObject([
    { fact: 'Ann lives_in Berlin', invalidAt: Date.UTC(2025, 0, 1), expiredAt: expect.any(Number) },
    { fact: 'Ann lives_in Paris', invalidAt: undefined, expiredAt: undefined },
  ])
})

test.each([
  [
    'numbers that were not offered',
    { entities: [{ entity: 7, same_as: 3 }], facts: [{ fact: 0, contradicts: [5, -1] }] },
  ],
  ['uuids it made up', { entities: [], facts: [{ fact: 0, same_as: 'a-b', contradicts: ['a-b'] }] }],
  ['facts that were not found', { entities: [], facts: [{ fact: 9, same_as: 0, contradicts: [0] }] }],
  ['sameness of facts about different things', { entities: [], facts: [{ fact: 0, same_as: 0, contradicts: [] }] }],
  ['things that are no judgements', { entities: [null, 'x'], facts: [4] }],
])('a judgement of %s changes nothing', async (_, judgement) => {
  const { facts } = await move(judgement)
  expect((await facts()).map(({ invalidAt }) => invalidAt)).toEqual([undefined, undefined])
})

test('a fact in other words is stored once, with both episodes', async () => {
  const again = { entities: [], facts: [{ fact: 0, same_as: 0, contradicts: [] }] }
  const { addText, idle, facts } = await startExtraction(({ body }) => {
    if (body.model === 'small') return said(again)
    const words = body.messages[1]?.content.includes('resides') ? 'Ann resides in Berlin' : 'Ann lives in Berlin'
    return finding(ANN, [fact('Ann', 'LIVES_IN', 'Berlin', { fact: words })])
  })
  await addText('Ann lives in Berlin.')
  await idle()
  await addText('Ann resides in Berlin, she says.')
  await idle()
  const all = await facts()
  expect(all.map(({ fact }) => fact)).toEqual(['Ann lives in Berlin'])
  expect(all[0]?.episodes).toHaveLength(2)
})

test('an entity under another name is the known one if the model says so', async () => {
  const { addText, idle, facts, use } = await startExtraction(({ body }) => {
    if (body.model === 'small') return said({ entities: [{ entity: 1, same_as: 0 }], facts: [] })
    return body.messages[1]?.content.includes('the city of York')
      ? finding([entity('Bob'), entity('city of York', 'Location')], [fact('Bob', 'LIKES', 'city of York')])
      : finding([entity('Ann'), entity('York', 'Location')], [fact('Ann', 'LIVES_IN', 'York')])
  })
  await addText('Ann lives in York.')
  await idle()
  const [york] = await use(store => store.entitiesNamed(['york'], ['main']))
  await addText('bob likes the city of York. Bob too.')
  await idle()
  const [, likes] = await facts()
  expect(likes).toMatchObject({ name: 'LIKES', targetId: york?.id })
})
