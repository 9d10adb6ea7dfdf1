import { describe, expect, test } from 'vitest'
import { type Talk, talk } from '../../../test/support/embedded.ts'
import type { PlainObject } from '../../wire/json/json.ts'
import { oneOf } from './completion.ts'
import { defineServer } from './define.ts'
import { prompt } from './prompts.ts'
import { template } from './resources.ts'

const server = defineServer({
  name: 's',
  version: '1',
  prompts: [
    prompt({
      name: 'travel',
      description: 'Travel',
      arguments: {
        country: { complete: oneOf('france', 'finland', 'norway') },
        city: { complete: async (typed, { country }) => [`${country}:${typed}`] },
        day: { complete: () => Array.from({ length: 250 }, (_, i) => String(i)) },
        note: {},
      },
      get: () => '',
    }),
  ],
  templates: [template({ uriTemplate: 'x://{id}', name: 'x', complete: { id: oneOf('1', '12') }, read: () => '' })],
})

const PROMPT = { type: 'ref/prompt', name: 'travel' }
const complete = (ref: PlainObject, argument: PlainObject, more: PlainObject = {}): Promise<Talk> =>
  talk(server, 'completion/complete', { ref, argument, ...more })

describe('completion', () => {
  test('proposes values for an argument of a prompt', async () => {
    expect(await (await complete(PROMPT, { name: 'country', value: 'f' })).result()).toMatchObject({
      resultType: 'complete',
      completion: { values: ['france', 'finland'], total: 2, hasMore: false },
    })
  })

  test('proposes values for a variable of a template', async () => {
    const t = await complete({ type: 'ref/resource', uri: 'x://{id}' }, { name: 'id', value: '12' })
    expect(await t.result()).toMatchObject({ completion: { values: ['12'] } })
  })

  test('knows the arguments given so far', async () => {
    const context = { arguments: { country: 'norway', odd: 5 } }
    const t = await complete(PROMPT, { name: 'city', value: 'os' }, { context })
    expect(await t.result()).toMatchObject({ completion: { values: ['norway:os'] } })
  })

  test('gives a hundred at most and says how many there are', async () => {
    const { completion } = (await (await complete(PROMPT, { name: 'day', value: '' })).result()) as {
      completion: { values: string[]; total: number; hasMore: boolean }
    }
    expect(completion.values).toHaveLength(100)
    expect(completion).toMatchObject({ total: 250, hasMore: true })
  })

  test.each(['note', 'unheard-of', 'constructor'])('of %s, which has no proposals, is empty', async name => {
    expect(await (await complete(PROMPT, { name, value: '' })).result()).toMatchObject({
      completion: { values: [], total: 0, hasMore: false },
    })
  })

  test.each<[PlainObject, string]>([
    [{ ref: { type: 'ref/prompt', name: 'x' }, argument: { name: 'a', value: '' } }, 'Unknown prompt: x'],
    [{ ref: { type: 'ref/resource', uri: 'x' }, argument: { name: 'a', value: '' } }, 'Unknown resource template: x'],
    [
      { ref: { type: 'ref/tool', name: 'x' }, argument: { name: 'a', value: '' } },
      'ref.type must be ref/prompt or ref/resource, not ref/tool',
    ],
    [{ ref: {}, argument: { name: 'a', value: '' } }, 'type must be a string'],
    [{ argument: { name: 'a', value: '' } }, 'ref must be an object'],
    [{ ref: PROMPT }, 'argument must be an object'],
    [{ ref: PROMPT, argument: { name: 'country' } }, 'value must be a string'],
    [{ ref: PROMPT, argument: { name: 1, value: '' } }, 'name must be a string'],
  ])('of %j is refused', async (params, message) => {
    expect(await (await talk(server, 'completion/complete', params)).failure()).toMatchObject({ code: -32602, message })
  })
})
