import { expect, onTestFinished, test } from 'vitest'
import { type Asked, type Scripted, said, scriptedEndpoint } from '../../../../test/support/memory/endpoint.ts'
import { createChat, parseModelJson } from './chat.ts'
import { createEndpoint, RejectedRequest } from './endpoint.ts'

const QUESTION = { model: 'm', system: 'Be brief.', user: 'What?', name: 'answer', schema: { type: 'object' } }

const start = async (script: (asked: Asked, nth: number) => Scripted) => {
  const { url, asked, become } = await scriptedEndpoint(script)
  const endpoint = createEndpoint({ url })
  onTestFinished(() => endpoint.close())
  return { chat: createChat(endpoint), asked, become }
}

const formats = (asked: readonly Asked[]) => asked.map(({ body }) => body.response_format?.type)

test('a schema is asked for first, and the tokens are counted', async () => {
  const { chat, asked } = await start(() => said({ a: 1 }, { total_tokens: 42 }))
  expect(await chat(QUESTION)).toEqual({ kind: 'value', value: { a: 1 }, tokens: 42 })
  expect(asked[0]?.body).toMatchObject({
    model: 'm',
    response_format: { type: 'json_schema', json_schema: { name: 'answer', strict: true, schema: { type: 'object' } } },
  })
})

test('an endpoint that rejects schemas is asked for an object, one that rejects formats for plain JSON; once', async () => {
  const { chat, asked } = await start(({ body }) => (body.response_format ? { status: 400 } : said('{"a":1}')))
  expect(await chat(QUESTION)).toMatchObject({ value: { a: 1 } })
  await chat(QUESTION)
  expect(formats(asked)).toEqual(['json_schema', 'json_object', undefined, undefined])
  expect(asked[3]?.body.messages[0]?.content).toContain('Its schema: {"type":"object"}')
})

test('a request rejected in every format fails, and the best format is tried again the next time', async () => {
  const { chat, asked } = await start(() => ({ status: 400 }))
  await expect(chat(QUESTION)).rejects.toBeInstanceOf(RejectedRequest)
  await expect(chat(QUESTION)).rejects.toBeInstanceOf(RejectedRequest)
  expect(formats(asked)[3]).toBe('json_schema')
})

test('an endpoint that ignores a format is asked in the next one from then on', async () => {
  const { chat, asked } = await start(() => said('I would rather not.'))
  expect(await chat(QUESTION)).toMatchObject({ kind: 'problem', problem: expect.stringContaining('not JSON') })
  await chat(QUESTION)
  expect(formats(asked)).toEqual(['json_schema', 'json_object'])
})

test('without a usage report the tokens are estimated from the texts', async () => {
  const { chat } = await start(() => said({ text: 'x'.repeat(4_000) }))
  const { tokens } = await chat(QUESTION)
  expect(tokens).toBeGreaterThan(1_000)
  expect(tokens).toBeLessThan(1_100)
})

test.each<[string, unknown, string]>([
  ['is cut off', { choices: [{ message: { content: '{"a":' }, finish_reason: 'length' }] }, 'cut off'],
  ['is a refusal', { choices: [{ message: { content: null, refusal: 'No.' } }] }, 'declined'],
  ['has no choices', { object: 'nothing' }, 'not JSON'],
  ['is of another shape', [1, 2], 'not JSON'],
])('an answer that %s is a problem with its reason', async (_, json, problem) => {
  const { chat } = await start(() => ({ json }))
  expect(await chat(QUESTION)).toMatchObject({ kind: 'problem', problem: expect.stringContaining(problem) })
})

test.each(['{"a":1}', '```json\n{"a":1}\n```', 'Here you are: {"a":1} – is there anything else?'])(
  'JSON is found in %j',
  text => {
    expect(parseModelJson(text)).toEqual({ a: 1 })
  },
)
