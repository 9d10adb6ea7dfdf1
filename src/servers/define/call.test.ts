import { describe, expect, test } from 'vitest'
import { isLast, noticesOf, reply, type Talk, type TalkOptions, talk } from '../../../test/support/embedded.ts'
import { rpcError } from '../../protocol/errors.ts'
import { Json, type PlainObject } from '../../wire/json/json.ts'
import type { Call } from './call.ts'
import { defineServer } from './define.ts'
import { type Ask, AskFailure, elicit, elicitUrl, listRoots, sample } from './questions.ts'
import { type ToolOutput, tool } from './tools.ts'

/** Runs one handler as a tool of a server of its own. */
const call = (
  run: (call: Call) => ToolOutput | Promise<ToolOutput>,
  params: PlainObject | Json = {},
  options?: TalkOptions,
): Promise<Talk> =>
  talk(
    defineServer({
      name: 's',
      version: '1',
      tools: [tool({ name: 't', description: 'T', run: (_args, c) => run(c) })],
    }),
    'tools/call',
    Json.of(params).with('name', 't'),
    options,
  )

const NAME = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] } as const

describe('progress', () => {
  test('goes out under the token the caller gave, source text and all', async () => {
    for (const token of ['"abc"', '7', '12345678901234567890']) {
      const params = Json.parse(Buffer.from(`{"_meta":{"progressToken":${token}}}`))
      const t = await call(c => {
        void c.progress(0, 2, 'first')
        void c.progress(2, 2)
        return ''
      }, params)
      await t.result()
      const texts = t.frames.flatMap(frame => (frame.kind === 'notice' ? [frame.params.toString()] : []))
      expect(texts).toEqual([
        `{"progressToken":${token},"progress":0,"total":2,"message":"first"}`,
        `{"progressToken":${token},"progress":2,"total":2}`,
      ])
    }
  })

  test.each<[string, PlainObject]>([
    ['no token', {}],
    ['a token that is none', { _meta: { progressToken: {} } }],
  ])('is silent with %s', async (_name, params) => {
    const t = await call(c => {
      void c.progress(1)
      return ''
    }, params)
    await t.result()
    expect(noticesOf(t)).toEqual([])
  })

  test('never goes back or stands still', async () => {
    const t = await call(
      c => {
        for (const value of [1, 1, 0, Number.NaN, 2.5, Number.POSITIVE_INFINITY]) void c.progress(value)
        return ''
      },
      { _meta: { progressToken: 1 } },
    )
    await t.result()
    expect(noticesOf(t).map(({ params }) => (params as { progress: number }).progress)).toEqual([1, 2.5])
  })

  test('waits with the handler while the reader is behind', async () => {
    let catchUp = (): void => {}
    const steps: string[] = []
    const t = await call(
      async c => {
        await c.progress(1)
        steps.push('went on')
        return ''
      },
      { _meta: { progressToken: 1 } },
      { onFrame: frame => (frame.kind === 'notice' ? new Promise<void>(resolve => (catchUp = resolve)) : undefined) },
    )
    await new Promise(setImmediate)
    expect(steps).toEqual([])
    catchUp()
    await t.result()
    expect(steps).toEqual(['went on'])
  })
})

describe('log lines', () => {
  const chatty = (c: Call): string => {
    void c.log('debug', 'd')
    void c.log('warning', { code: 1 }, 'disk')
    return ''
  }

  test('reach only callers that named a level', async () => {
    const t = await call(chatty)
    await t.result()
    expect(noticesOf(t)).toEqual([])
  })

  test('below the level are left out', async () => {
    const t = await call(chatty, {}, { caller: { logLevel: 'warning' } })
    await t.result()
    expect(noticesOf(t)).toEqual([
      { method: 'notifications/message', params: { level: 'warning', logger: 'disk', data: { code: 1 } } },
    ])
  })

  test('at or above the level come in order', async () => {
    const t = await call(chatty, {}, { caller: { logLevel: 'debug' } })
    await t.result()
    expect(noticesOf(t).map(({ params }) => (params as { level: string }).level)).toEqual(['debug', 'warning'])
  })
})

describe('asking', () => {
  test('sends a question with its key and gives the answer to the handler', async () => {
    const t = await call(async c => {
      const { action, content } = await c.ask('who', elicit('Who?', NAME))
      return `${action} ${content?.name}`
    })
    const question = await t.question('who')
    expect(question).toMatchObject({ method: 'elicitation/create' })
    expect(question.params.toValue()).toEqual({ message: 'Who?', requestedSchema: NAME })
    expect(t.frames.some(isLast)).toBe(false)
    question.answer({ kind: 'progress', params: Json.empty })
    reply(question, { action: 'accept', content: { name: 'Ada' } })
    expect(await t.result()).toMatchObject({ content: [{ text: 'accept Ada' }] })
    expect(question.withdrawn.reason).toBeUndefined()
  })

  test('several questions may be open at once and be answered in any order', async () => {
    const t = await call(async c => {
      const [a, b] = await Promise.all([c.ask('a', listRoots()), c.ask('b', sample('Hi', { maxTokens: 5 }))])
      return `${a[0]?.uri} ${b.text} (${b.model})`
    })
    const [a, b] = [await t.question('a'), await t.question('b')]
    reply(b, {
      role: 'assistant',
      model: 'm',
      content: [
        { type: 'text', text: 'He' },
        { type: 'text', text: 'y' },
      ],
    })
    reply(a, { roots: [{ uri: 'file:///a' }] })
    expect(await t.result()).toMatchObject({ content: [{ text: 'file:///a Hey (m)' }] })
  })

  test('a second answer to one question is ignored', async () => {
    const t = await call(async c => (await c.ask('v', elicit('Who?', NAME))).action)
    const question = await t.question('v')
    reply(question, { action: 'decline' })
    reply(question, { action: 'accept', content: { name: 'Ada' } })
    expect(await t.result()).toMatchObject({ content: [{ text: 'decline' }] })
  })

  test.each<[string, PlainObject, boolean]>([
    ['a fitting answer is taken', { who: { action: 'accept', content: { name: 'Ada' } }, other: 5 }, true],
    ['a refusal by the user is an answer', { who: { action: 'decline' } }, true],
    ['another key is not', { whom: { action: 'accept', content: { name: 'Ada' } } }, false],
    ['a number is not', { who: 12345 }, false],
    ['an unknown action is not', { who: { action: 'perhaps' } }, false],
    ['content that breaks the form is not', { who: { action: 'accept', content: { name: 5 } } }, false],
    ['content that lacks a field is not', { who: { action: 'accept' } }, false],
    ['an answer of another kind is not', { who: { roots: [] } }, false],
  ])('in inputResponses, %s', async (_name, inputResponses, taken) => {
    const t = await call(async c => (await c.ask('who', elicit('Who?', NAME))).action, { inputResponses })
    if (taken) await t.result()
    else await t.question('who')
    expect(t.frames.map(({ kind }) => kind)).toEqual([taken ? 'result' : 'question'])
  })

  test.each([[null], [7], ['x'], [[]]])('inputResponses of %j holds no answers', async inputResponses => {
    const t = await call(async c => (await c.ask('who', elicit('Who?', NAME))).action, { inputResponses })
    await t.question('who')
  })

  test('each kind takes its own answers from inputResponses and no others', async () => {
    const kinds: [Ask<unknown>, PlainObject, PlainObject[]][] = [
      [listRoots(), { roots: [{ uri: 'file:///a', name: 'A' }] }, [{}, { roots: {} }, { roots: [{ name: 'A' }] }]],
      [
        sample('Hi', { maxTokens: 5 }),
        { role: 'assistant', content: { type: 'text', text: 'Hey' }, model: 'm' },
        [{}, { role: 'assistant', content: 'Hey', model: 'm' }, { role: 'assistant', content: { type: 'text' } }],
      ],
      [elicitUrl('Go', 'https://example.com'), { action: 'accept' }, [{}, { action: 'later' }]],
    ]
    const caller = { capabilities: Json.of({ sampling: {}, elicitation: { url: {} }, roots: {} }) }
    for (const [question, good, bads] of kinds) {
      const run = async (c: Call): Promise<string> => String(await c.ask('q', question))
      await (await call(run, { inputResponses: { q: good } }, { caller })).result()
      for (const bad of bads) await (await call(run, { inputResponses: { q: bad } }, { caller })).question('q')
    }
  })

  test('an error from the client is a refusal that names it', async () => {
    const t = await call(async c => {
      const refused: unknown = await c.ask('who', elicit('Who?', NAME)).catch((error: unknown) => error)
      expect(refused).toBeInstanceOf(AskFailure)
      expect(refused).toMatchObject({ kind: 'refused', key: 'who', error: { code: -1 } })
      throw refused
    })
    const question = await t.question('who')
    question.answer({ kind: 'error', error: { ...rpcError('internal', 'User said no'), code: -1 } })
    expect(await t.result()).toMatchObject({
      isError: true,
      content: [{ text: 'The client refused "who": User said no' }],
    })
  })

  test('a live answer that makes no sense is no answer', async () => {
    const t = await call(async c => (await c.ask('who', elicit('Who?', NAME))).action)
    reply(await t.question('who'), { action: 'accept', content: { name: 5 } })
    expect(await t.result()).toMatchObject({
      isError: true,
      content: [{ text: 'The answer to "who" is not a valid result of elicitation/create' }],
    })
  })

  test('when the caller cancels, the question is withdrawn and the handler gets an error', async () => {
    const failures: unknown[] = []
    const t = await call(async c => {
      await c.ask('who', elicit('Who?', NAME)).catch((error: unknown) => failures.push(error))
      return ''
    })
    const question = await t.question('who')
    t.abort.abort({ kind: 'gone' })
    await new Promise(setImmediate)
    expect(question.withdrawn.reason).toEqual({ kind: 'gone' })
    expect(failures).toMatchObject([{ kind: 'withdrawn', key: 'who' }])
    reply(question, { action: 'cancel' })
    await new Promise(setImmediate)
    expect(t.frames).toHaveLength(1)
  })

  test('a question still open when the tool ends is withdrawn', async () => {
    const t = await call(c => {
      void c.ask('who', elicit('Who?', NAME))
      return 'I cannot wait'
    })
    const question = await t.question('who')
    await t.result()
    expect(question.withdrawn.reason).toMatchObject({ kind: 'cancelled' })
  })

  test('one key is good for one question', async () => {
    const t = await call(async c => {
      void c.ask('who', elicit('Who?', NAME))
      await c.ask('who', elicit('Who else?', NAME))
      return ''
    })
    expect(await t.result()).toMatchObject({
      isError: true,
      content: [{ text: 'The question "who" was already asked in this call' }],
    })
  })
})

describe('what the client can do', () => {
  const ABILITIES = ['sampling', 'sampling.tools', 'elicitation', 'elicitation.url', 'roots'] as const

  test.each<[string, PlainObject, string]>([
    ['nothing', {}, ''],
    ['roots', { roots: {} }, 'roots'],
    ['a bare elicitation means forms', { elicitation: {} }, 'elicitation'],
    ['pages alone are no forms', { elicitation: { url: {} } }, 'elicitation.url'],
    ['both', { elicitation: { form: {}, url: {} } }, 'elicitation elicitation.url'],
    ['sampling with tools', { sampling: { tools: {} } }, 'sampling sampling.tools'],
    ['null is no declaration', { sampling: null, roots: null, elicitation: null }, ''],
  ])('%s', async (_name, declared, able) => {
    const capabilities = Json.of(declared)
    const t = await call(c => ABILITIES.filter(ability => c.can(ability)).join(' '), {}, { caller: { capabilities } })
    expect(await t.result()).toMatchObject({ content: [{ text: able }] })
  })

  test('only the missing capabilities are named', async () => {
    const t = await call(
      c => {
        c.require('roots', 'sampling', 'elicitation.url', 'elicitation')
        return ''
      },
      {},
      { caller: { capabilities: Json.of({ roots: {} }) } },
    )
    expect(await t.failure()).toMatchObject({
      code: -32021,
      data: { requiredCapabilities: { sampling: {}, elicitation: { url: {}, form: {} } } },
    })
  })

  test.each<[Ask<unknown>, PlainObject]>([
    [elicit('Who?', NAME), { elicitation: { form: {} } }],
    [elicitUrl('Go', 'https://example.com'), { elicitation: { url: {} } }],
    [sample('Hi', { maxTokens: 1 }), { sampling: {} }],
    [sample('Hi', { maxTokens: 1, tools: [] }), { sampling: { tools: {} } }],
    [listRoots(), { roots: {} }],
  ])('a question the client did not offer to answer is never sent: $method', async (question, requiredCapabilities) => {
    const t = await call(async c => String(await c.ask('q', question)), {}, { caller: { capabilities: Json.empty } })
    expect(await t.failure()).toMatchObject({ code: -32021, data: { requiredCapabilities } })
    expect(t.frames).toHaveLength(1)
  })
})
