import { describe, expect, test } from 'vitest'
import { type Talk, talk } from '../../../test/support/embedded.ts'
import { Json, type PlainObject } from '../../wire/json/json.ts'
import { image, text } from './content.ts'
import { defineServer } from './define.ts'
import { assistant, type PromptOutput, prompt, user } from './prompts.ts'

const serve = (output: () => PromptOutput) =>
  defineServer({
    name: 's',
    version: '1',
    prompts: [
      prompt({
        name: 'brew',
        title: 'Brew',
        description: 'Brews',
        arguments: { leaf: { description: 'Which leaf', required: true }, sugar: { title: 'Sugar' } },
        get: ({ leaf, sugar }) => `Brew ${leaf.toUpperCase()} with ${sugar ?? 'no sugar'}`,
      }),
      prompt({ name: 'free', description: 'Anything', get: () => output() }),
    ],
  })

const get = (params: PlainObject, output: () => PromptOutput = () => ''): Promise<Talk> =>
  talk(serve(output), 'prompts/get', params)

describe('prompts', () => {
  test('are listed with their arguments', async () => {
    const { prompts } = (await (
      await talk(
        serve(() => ''),
        'prompts/list',
      )
    ).result()) as { prompts: unknown }
    expect(prompts).toEqual([
      {
        name: 'brew',
        title: 'Brew',
        description: 'Brews',
        arguments: [
          { name: 'leaf', description: 'Which leaf', required: true },
          { name: 'sugar', title: 'Sugar' },
        ],
      },
      { name: 'free', description: 'Anything' },
    ])
  })

  test('get their arguments', async () => {
    const one = await get({ name: 'brew', arguments: { leaf: 'assam' } })
    expect(await one.result()).toMatchObject({
      messages: [{ role: 'user', content: { type: 'text', text: 'Brew ASSAM with no sugar' } }],
    })
    const two = await get({ name: 'brew', arguments: { leaf: 'assam', sugar: 'honey', other: 'x' } })
    expect(await two.result()).toMatchObject({ messages: [{ content: { text: 'Brew ASSAM with honey' } }] })
  })

  test('may be messages, or a result by hand', async () => {
    const messages = () => [user(image('aa==', 'image/png')), assistant(text('I see'))]
    expect(await (await get({ name: 'free' }, messages)).result()).toMatchObject({
      messages: [
        { role: 'user', content: { type: 'image', data: 'aa==', mimeType: 'image/png' } },
        { role: 'assistant', content: { type: 'text', text: 'I see' } },
      ],
    })
    const raw = () => Json.of({ description: 'By hand', messages: [] })
    expect(await (await get({ name: 'free' }, raw)).result()).toMatchObject({ description: 'By hand', messages: [] })
  })

  test.each<[PlainObject, string]>([
    [{ name: 'brow' }, 'Unknown prompt: brow'],
    [{}, 'name must be a string'],
    [{ name: 'brew' }, 'brew: argument "leaf" is required (string)'],
    [{ name: 'brew', arguments: { leaf: 1 } }, 'brew: argument "leaf" must be of type string, not number'],
    [
      { name: 'brew', arguments: { leaf: 'a', sugar: null } },
      'brew: argument "sugar" must be of type string, not null',
    ],
    [{ name: 'brew', arguments: 'assam' }, 'arguments must be an object'],
  ])('%j is refused in words that help', async (params, message) => {
    expect(await (await get(params)).failure()).toMatchObject({ code: -32602, message })
  })

  test('that throw are internal errors', async () => {
    const broken = (): never => {
      throw new Error('Kettle is cold')
    }
    expect(await (await get({ name: 'free' }, broken)).failure()).toMatchObject({
      code: -32603,
      message: 'Kettle is cold',
    })
  })
})
