import { expect, test, vi } from 'vitest'
import { said } from '../../../../test/support/memory/endpoint.ts'
import {
  ANN,
  type Answer,
  entity,
  fact,
  finding,
  moving,
  startExtraction,
} from '../../../../test/support/memory/extract.ts'
import { startModels } from '../../../../test/support/memory/models.ts'

const LIE = finding([entity('Zoe'), entity('Yan')], [fact('Zoe', 'KNOWS', 'Yan')])

test('an unusable answer is retried three times, then the job fails with the reason; nothing is stored', async () => {
  const { addText, use, facts, asked, settled, pass } = await startExtraction(() => LIE)
  const { uuid } = await addText('Ann lives in Berlin.')
  const before = await use(store => store.stats())
  const error = expect.stringContaining('none of them occurs in the episode')
  await settled([{ state: 'waiting', attempts: 1, error }])
  pass(60_000)
  await settled([{ state: 'waiting', attempts: 2, error }])
  pass(60_000)
  await settled([{ state: 'failed', attempts: 3, error }])
  expect(asked).toHaveLength(3)
  expect(await facts()).toEqual([])
  expect((await use(store => store.stats())).groups).toEqual(before.groups)
  expect(await use(store => store.episode(uuid))).toMatchObject({ state: 'failed', error })
})

test('a valid answer after an unusable one succeeds', async () => {
  const { addText, facts, settled, pass, idle } = await startExtraction((_, nth) =>
    nth === 1 ? said('not JSON') : finding(ANN, [fact('Ann', 'LIVES_IN', 'Berlin')]),
  )
  await addText('Ann lives in Berlin.')
  await settled([{ attempts: 1, error: expect.stringContaining('not JSON') }])
  pass(60_000)
  await idle()
  expect(await facts()).toHaveLength(1)
})

test('a rejected request fails at once, and the next episode is read', async () => {
  const { addText, settled, asked, facts } = await startExtraction(({ body }) =>
    body.messages[1]?.content.includes('huge')
      ? { status: 400, json: { error: { message: 'too long' } } }
      : finding(ANN, [fact('Ann', 'LIVES_IN', 'Berlin')]),
  )
  await addText('Ann has a huge garden.')
  await addText('Ann lives in Berlin.')
  await settled([{ state: 'failed', error: expect.stringContaining('too long') }])
  await vi.waitFor(async () => expect(await facts()).toHaveLength(1), 8_000)
  expect(asked).toHaveLength(4) // in three forms, and the second episode
})

test('while an endpoint is down jobs wait in order without counting attempts', async () => {
  const { addText, settled, become, asked, pass, idle, facts, lines } = await startExtraction(() => ({ status: 503 }))
  for (const city of ['Berlin', 'Paris', 'Rome']) await addText(`Ann was in ${city}.`)
  for (let hour = 1; hour <= 3; hour++) {
    const wait = { state: 'waiting', attempts: 0 }
    await settled([{ ...wait, error: expect.stringContaining('503') }, wait, wait])
    await vi.waitFor(() => expect(asked).toHaveLength(hour), 8_000)
    pass(3_600_000)
  }
  become(({ body }) => {
    const city = /Ann was in (\w+)/.exec(body.messages[1]?.content ?? '')?.[1] ?? ''
    return finding([entity('Ann'), entity(city)], [fact('Ann', 'WAS_IN', city)])
  })
  pass(3_600_000)
  await idle()
  expect((await facts()).map(({ fact }) => fact)).toEqual(['Ann was_in Berlin', 'Ann was_in Paris', 'Ann was_in Rome'])
  expect(JSON.stringify(lines)).not.toContain('sk-secret')
})

test('each timeout counts as an attempt, until the job fails', async () => {
  const { addText, settled, pass } = await startExtraction(() => 'silence', { timeoutMs: 30 })
  await addText('Ann lives in Berlin.')
  const error = expect.stringContaining('did not answer within')
  for (let attempt = 1; attempt < 12; attempt++) {
    await settled([{ state: 'waiting', attempts: attempt, error }])
    pass(3_600_000)
  }
  await settled([{ state: 'failed', attempts: 12, error }])
})

test('a job beyond the budget is postponed with the reason, and keeps the findings of its first call', async () => {
  const { addText, settled, asked, pass, idle, facts, clock } = await startExtraction(
    moving({ entities: [], facts: [{ fact: 0, same_as: null, contradicts: [0] }] }),
    { callsPerMinute: 2 },
  )
  clock.at = Math.ceil(clock.at / 60_000) * 60_000
  await addText('Ann lives in Berlin.')
  await idle()
  await addText('Ann lives in Paris now.')
  await settled([
    { state: 'waiting', attempts: 0, error: expect.stringContaining('2 calls is used up for this minute') },
  ])
  expect(asked.map(({ body }) => body.model)).toEqual(['large', 'large'])
  pass(60_000)
  await idle()
  expect(asked.map(({ body }) => body.model)).toEqual(['large', 'large', 'small'])
  expect((await facts()).map(({ invalidAt }) => invalidAt)).toEqual([Date.UTC(2025, 0, 1), undefined])
})

test('a budget of tokens holds over a restart', async () => {
  const answer: Answer = () => said({ entities: [], facts: [] }, { total_tokens: 3_000 })
  const first = await startExtraction(answer, { dailyTokens: 4_000 })
  first.clock.at = Date.UTC(2026, 2, 3, 12)
  await first.addText('Ann lives in Berlin.')
  await first.idle()
  await first.stop()
  const second = await startModels({ extraction: first.extraction }, first.folder, first.clock)
  await second.addText('Ann lives in Paris.')
  await second.settled([
    { state: 'waiting', nextAt: Date.UTC(2026, 2, 4), error: expect.stringContaining('4000 tokens') },
  ])
  expect(first.asked).toHaveLength(1)
  second.pass(12 * 3_600_000)
  await second.idle()
  expect(first.asked).toHaveLength(2)
})

test('of a long episode the first 40,000 characters are shown', async () => {
  const { addText, idle, asked } = await startExtraction(() => finding([]))
  await addText(Array.from({ length: 500 }, (_, at) => `Paragraph ${at} ${'goes on and on '.repeat(20)}`).join('\n\n'))
  await idle()
  const user = asked[0]?.body.messages[1]?.content ?? ''
  expect(user).toContain('[0] Paragraph 0')
  expect(user.length).toBeLessThan(44_000)
})

test('the job of a deleted episode does nothing', async () => {
  const { addText, use, idle, become, settled, pass, facts } = await startExtraction(() => ({ status: 503 }))
  const { uuid } = await addText('Ann lives in Berlin.')
  await settled([{ state: 'waiting', attempts: 0, error: expect.any(String) }])
  await use(store => store.deleteEpisode(uuid))
  become(() => finding(ANN))
  pass(3_600_000)
  await idle()
  expect(await facts()).toEqual([])
})

test('a stop aborts the call, and the job stays enqueued', async () => {
  const first = await startExtraction(() => 'silence')
  await first.addText('Ann lives in Berlin.')
  await vi.waitFor(() => expect(first.asked).toHaveLength(1), 8_000)
  await first.stop()
  const second = await startModels({ extraction: first.extraction }, first.folder, first.clock)
  expect(await second.jobs()).toMatchObject([{ state: 'waiting', attempts: 0, nextAt: first.clock.at + 1_000 }])
})
