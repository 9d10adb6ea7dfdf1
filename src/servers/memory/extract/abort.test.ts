import { expect, test, vi } from 'vitest'
import { embedded, meaning, type Scripted, scriptedEndpoint } from '../../../../test/support/memory/endpoint.ts'
import { startExtraction } from '../../../../test/support/memory/extract.ts'
import { startModels } from '../../../../test/support/memory/models.ts'

test('closing does not wait for a silent model; its job stays enqueued', async () => {
  const { addText, jobs, asked, worker } = await startExtraction(() => 'silence', { timeoutMs: 3_600_000 })
  await addText('Ann lives in Berlin.')
  await vi.waitFor(() => expect(asked).toHaveLength(1))
  await worker.close()
  expect(await jobs()).toMatchObject([{ kind: 'extract', state: 'waiting', attempts: 0 }])
})

test('the estimate of an aborted call is refunded', async () => {
  const { addText, use, asked, worker } = await startExtraction(() => 'silence', {
    timeoutMs: 3_600_000,
    dailyTokens: 100_000,
  })
  await addText('Ann lives in Berlin.')
  await vi.waitFor(() => expect(asked).toHaveLength(1))
  await worker.close()
  expect(await use(store => store.amend('budget extraction', kept => kept))).toMatchObject({ tokens: 0 })
})

const answerThen = (calls: number) => {
  let nth = 0
  return ({ body }: { readonly body: { readonly input: readonly string[] } }): Scripted =>
    ++nth > calls ? 'silence' : embedded(body.input, text => meaning(text))
}

test.each([
  ['the first look at the model', 0],
  ['a batch of texts', 1],
])('closing aborts %s', async (_, calls) => {
  const endpoint = await scriptedEndpoint(answerThen(calls))
  const memory = await startModels({ embedding: { url: endpoint.url, model: 'm', timeoutMs: 3_600_000 } })
  await memory.addText('the cat sleeps')
  await vi.waitFor(() => expect(endpoint.asked).toHaveLength(calls + 1))
  await memory.worker.close()
  expect(await memory.jobs()).toMatchObject([{ kind: 'embed', state: 'waiting', attempts: 0 }])
})
