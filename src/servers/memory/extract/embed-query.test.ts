import { expect, onTestFinished, test } from 'vitest'
import { createTestLog } from '../../../../test/support/log.ts'
import {
  type Asked,
  embedded,
  meaning,
  type Scripted,
  scriptedEndpoint,
} from '../../../../test/support/memory/endpoint.ts'
import { createModels } from './models.ts'

const start = async (script: (asked: Asked, nth: number) => Scripted, queryTimeoutMs = 5_000) => {
  const endpoint = await scriptedEndpoint(script)
  const clock = { at: 1_000_000 }
  const { log, lines } = createTestLog()
  const embedding = { url: endpoint.url, model: 'm', queryTimeoutMs }
  const models = createModels({ embedding, now: () => clock.at }, log)
  onTestFinished(models.close)
  return { ...endpoint, embed: models.embed, clock, lines }
}

const answer = ({ body }: Asked): Scripted => embedded(body.input, text => meaning(text, 16))

test('a query is embedded once, and the model calibrated once', async () => {
  const { embed, asked } = await start(answer)
  const first = await embed('where is Ann?')
  expect(first).toMatchObject({ model: 'm@16', vector: expect.any(Float32Array) })
  expect(await embed(' where is Ann? ')).toBe(first)
  await embed('where is Bob?')
  expect(asked).toHaveLength(3)
  expect(await embed('  ')).toBeUndefined()
})

test('of many queries only the latest are kept', async () => {
  const { embed, asked } = await start(answer)
  for (let at = 0; at <= 500; at++) await embed(`query ${at}`)
  const before = asked.length
  await embed('query 500')
  await embed('query 1')
  expect(asked).toHaveLength(before)
  await embed('query 0')
  expect(asked).toHaveLength(before + 1)
})

test('an endpoint that times out delays one search only, and is asked again after a pause', async () => {
  const { embed, asked, clock, become, lines } = await start(() => 'silence', 40)
  expect(await embed('where is Ann?')).toBeUndefined()
  expect(await embed('where is Bob?')).toBeUndefined()
  expect(asked).toHaveLength(1)
  expect(lines).toMatchObject([{ level: 'warn', message: expect.stringContaining('words only') }])
  become(answer)
  clock.at += 4_999
  expect(await embed('where is Ann?')).toBeUndefined()
  expect(asked).toHaveLength(1)
})

test('an endpoint that recovered is used again', async () => {
  const { embed, clock, become, lines } = await start(() => ({ status: 500 }))
  expect(await embed('where is Ann?')).toBeUndefined()
  clock.at += 3_600_000
  become(answer)
  expect(await embed('where is Ann?')).toMatchObject({ model: 'm@16' })
  expect(lines.map(({ message }) => message).at(-1)).toBe('query embedding recovered')
})

test('without a configured endpoint there are no vectors and no work for them', async () => {
  const models = createModels({}, createTestLog().log)
  expect(await models.embed('anything')).toBeUndefined()
  expect(models).not.toHaveProperty('extract')
  expect(models).not.toHaveProperty('embedJob')
  await models.close()
})
