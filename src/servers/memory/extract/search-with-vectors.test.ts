import { expect, test } from 'vitest'
import {
  type Asked,
  embedded,
  meaning,
  noise,
  type Scripted,
  scriptedEndpoint,
} from '../../../../test/support/memory/endpoint.ts'
import { entity, fact, finding } from '../../../../test/support/memory/extract.ts'
import { startModels } from '../../../../test/support/memory/models.ts'
import { QUESTIONS, SESSIONS } from '../../../../test/support/memory/quality.ts'
import type { Doc } from '../model.ts'
import { searchPassages } from '../search/passages.ts'
import { readQuestion } from '../search/question.ts'
import { WEIGHTS } from '../search/weights.ts'

const NOW = Date.UTC(2024, 6, 1)

const start = async (script: (asked: Asked) => Scripted) => {
  const { url, asked } = await scriptedEndpoint(script)
  const memory = await startModels({ embedding: { url, model: 'm', queryTimeoutMs: 5_000 } })
  const search = async (query: string, withVectors: boolean): Promise<readonly Doc[]> => {
    const embedding = withVectors ? await memory.embed(query) : undefined
    const question = readQuestion(query, NOW)
    return memory.use(store => searchPassages({ store, groups: ['main'], question, embedding, weights: WEIGHTS }))
  }
  return { ...memory, asked, search }
}

test('meaningless vectors do not change the search results', async () => {
  const { addText, settled, search, asked } = await start(({ body }) => embedded(body.input, text => noise(text)))
  for (const { at, lines } of SESSIONS) await addText(lines.join('\n'), { source: 'message', validAt: at })
  const error = expect.stringContaining('do not place similar texts')
  await settled(SESSIONS.map((_, place) => (place === 0 ? { error } : {})))
  for (const [query] of QUESTIONS) expect(await search(query, true)).toEqual(await search(query, false))
  expect(asked.length).toBeGreaterThan(0)
})

test('meaningful vectors find what no word matches', async () => {
  const concepts = { cat: 'pet', animal: 'pet', lorry: 'vehicle' }
  const { addText, idle, search } = await start(({ body }) => embedded(body.input, text => meaning(text, 64, concepts)))
  await addText('My cat is called Miu.')
  await addText('The lorry broke down.')
  await idle()
  expect(await search('which animal', false)).toEqual([])
  expect((await search('which animal', true))[0]?.text).toBe('My cat is called Miu.')
})

test('findings of a model are embedded, too', async () => {
  const answer = finding([entity('Ann'), entity('Miu')], [fact('Ann', 'FEEDS', 'Miu')])
  const { url } = await scriptedEndpoint(({ path, body }) =>
    path.endsWith('/embeddings') ? embedded(body.input, text => meaning(text)) : answer,
  )
  const options = { extraction: { url, model: 'large' }, embedding: { url, model: 'm', queryTimeoutMs: 5_000 } }
  const { addText, idle, use, embed } = await startModels(options)
  await addText('Ann feeds Miu.')
  await idle()
  const embedding = await embed('Ann feeds Miu')
  const near = await use(async store => {
    const query = { kind: 'fact', model: embedding?.model ?? '', groups: ['main'], limit: 1 } as const
    const [row] = await store.nearest({ ...query, vector: embedding?.vector ?? new Float32Array(64) })
    return store.factsById([row?.rowId ?? -1])
  })
  expect(near).toMatchObject([{ origin: 'llm', fact: 'Ann feeds Miu' }])
})
