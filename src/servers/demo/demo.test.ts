import { beforeEach, describe, expect, test, vi } from 'vitest'
import { isLast, noticesOf, reply, type Talk, type TalkOptions, talk } from '../../../test/support/embedded.ts'
import type { Frame } from '../../protocol/exchange.ts'
import { Json, type Plain, type PlainObject } from '../../wire/json/json.ts'
import type { DefinedServer } from '../define/define.ts'
import { demo } from './demo.ts'

let server: DefinedServer
beforeEach(() => {
  server = demo('9.9.9')
})

const call = (name: string, args?: PlainObject, more: PlainObject = {}, options?: TalkOptions): Promise<Talk> =>
  talk(server, 'tools/call', { name, ...(args && { arguments: args }), ...more }, options)

const contentOf = async (t: Talk): Promise<{ type: string; text?: string; [member: string]: unknown }[]> =>
  ((await t.result()) as { content: { type: string }[] }).content

const textOf = async (t: Talk): Promise<string> => (await contentOf(t))[0]?.text ?? ''
const namesOf = async (method: string, member: string): Promise<string[]> =>
  ((await (await talk(server, method)).result()) as Record<string, { name: string; uri?: string }[]>)[member]?.map(
    ({ name, uri }) => uri ?? name,
  ) ?? []

describe('what the demo offers', () => {
  test('says who it is', async () => {
    expect(await (await talk(server, 'server/discover')).result()).toMatchObject({
      capabilities: {
        tools: { listChanged: true },
        prompts: { listChanged: true },
        resources: { listChanged: true, subscribe: true },
        logging: {},
        completions: {},
      },
      _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'demo', title: 'Demo', version: '9.9.9' } },
    })
  })

  test('every tool has a name that fits, a description and an object schema', async () => {
    const { tools } = (await (await talk(server, 'tools/list')).result()) as {
      tools: { name: string; description: string; inputSchema: { type: string } }[]
    }
    for (const { name, description, inputSchema } of tools) {
      expect(name).toMatch(/^[A-Za-z0-9_.-]{1,128}$/)
      expect(description).not.toBe('')
      expect(inputSchema.type).toBe('object')
    }
    expect(tools.map(({ name }) => name)).toEqual(
      expect.arrayContaining([
        'example-ping',
        'example-echo',
        'json_schema_2020_12_tool',
        'test_x_mcp_header',
        'test_reconnection',
        'test_missing_capability',
        'test_streaming_elicitation',
      ]),
    )
  })

  test('the tool for JSON Schema 2020-12 keeps every keyword', async () => {
    const { tools } = (await (await talk(server, 'tools/list')).result()) as {
      tools: { name: string; inputSchema: object }[]
    }
    const schema = tools.find(({ name }) => name === 'json_schema_2020_12_tool')?.inputSchema
    const NAMES = '$schema type $defs properties allOf if then else additionalProperties'
    expect(Object.keys(schema ?? {})).toEqual(NAMES.split(' '))
    expect(schema).toMatchObject({
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      $defs: { address: { $anchor: 'addressDef' } },
      properties: { address: { $ref: '#/$defs/address' }, contactMethod: { enum: ['phone', 'email'] } },
      allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
      if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
      then: { required: ['phone'] },
      else: { required: ['email'] },
      additionalProperties: false,
    })
    expect(await textOf(await call('json_schema_2020_12_tool', { email: 'a@b' }))).toBe('Received: {"email":"a@b"}')
  })
})

describe('examples', () => {
  test('ping and echo answer', async () => {
    expect(await textOf(await call('example-ping'))).toBe('pong')
    expect(await textOf(await call('example-echo', { message: 'Hello, World!' }))).toBe('Echo: Hello, World!')
  })

  test('echo without a message fails with the name of the argument', async () => {
    expect(await (await call('example-echo', {})).failure()).toMatchObject({
      code: -32602,
      message: 'example-echo: Argument "message" is required (string)',
    })
  })
})

describe('content', () => {
  test.each<[string, PlainObject[]]>([
    ['test_simple_text', [{ type: 'text', text: 'This is a simple text response for testing.' }]],
    ['test_image_content', [{ type: 'image', mimeType: 'image/png' }]],
    ['test_audio_content', [{ type: 'audio', mimeType: 'audio/wav' }]],
    [
      'test_embedded_resource',
      [
        {
          type: 'resource',
          resource: {
            uri: 'test://embedded-resource',
            mimeType: 'text/plain',
            text: 'This is an embedded resource content.',
          },
        },
      ],
    ],
    [
      'test_multiple_content_types',
      [
        { type: 'text', text: 'Multiple content types test:' },
        { type: 'image', mimeType: 'image/png' },
        {
          type: 'resource',
          resource: {
            uri: 'test://mixed-content-resource',
            mimeType: 'application/json',
            text: '{"test":"data","value":123}',
          },
        },
      ],
    ],
    ['test_resource_link', [{ type: 'resource_link', uri: 'test://static-text', name: 'static-text' }]],
  ])('%s', async (name, expected) => {
    expect(await contentOf(await call(name))).toMatchObject(expected)
  })

  test('the picture is a PNG and the sound a WAV', async () => {
    const bytes = async (name: string) => Buffer.from(String((await contentOf(await call(name)))[0]?.data), 'base64')
    expect((await bytes('test_image_content')).subarray(0, 8)).toEqual(Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'))
    const wav = await bytes('test_audio_content')
    expect(wav.toString('latin1', 0, 4) + wav.toString('latin1', 8, 12)).toBe('RIFFWAVE')
    expect(wav.readUInt32LE(4)).toBe(wav.length - 8)
  })

  test('structured content comes with its text', async () => {
    expect(await (await call('test_structured_content')).result()).toMatchObject({
      structuredContent: { temperature: 22.5, conditions: 'sunny' },
      content: [{ type: 'text', text: '{"temperature":22.5,"conditions":"sunny"}' }],
    })
  })

  test('a failing tool is a result', async () => {
    expect(await (await call('test_error_handling')).result()).toMatchObject({
      isError: true,
      content: [{ type: 'text', text: 'This tool intentionally returns an error for testing' }],
    })
  })
})

describe('notices', () => {
  test('progress 0, 50, 100 comes before the result, under the same token', async () => {
    const t = await call('test_tool_with_progress', {}, { _meta: { progressToken: 'progress-test-1' } })
    await t.result()
    expect(noticesOf(t).map(({ method, params }) => ({ method, params }))).toMatchObject(
      [0, 50, 100].map(progress => ({
        method: 'notifications/progress',
        params: { progressToken: 'progress-test-1', progress, total: 100 },
      })),
    )
    expect(t.frames.findIndex(isLast)).toBe(3)
  })

  test('a call cancelled half way stops at once and leaves no timer', async () => {
    vi.useFakeTimers()
    const t = await call('test_tool_with_progress', {}, { _meta: { progressToken: 1 } })
    await vi.advanceTimersByTimeAsync(10)
    expect(vi.getTimerCount()).toBe(1)
    t.abort.abort({ kind: 'gone' })
    expect(vi.getTimerCount()).toBe(0)
    await vi.advanceTimersByTimeAsync(500)
    vi.useRealTimers()
    expect(t.frames).toHaveLength(1)
  })

  test('three lines are logged for a caller that wants them', async () => {
    const t = await call('test_tool_with_logging', {}, {}, { caller: { logLevel: 'debug' } })
    await t.result()
    expect(noticesOf(t)).toEqual(
      ['Tool execution started', 'Tool processing data', 'Tool execution completed'].map(data => ({
        method: 'notifications/message',
        params: { level: 'info', data },
      })),
    )
  })

  test('the logging tool is silent unless a level is named', async () => {
    const silent = await call('test_logging_tool')
    await silent.result()
    expect(silent.frames).toHaveLength(1)
    const heard = await call('test_logging_tool', {}, {}, { caller: { logLevel: 'info' } })
    await heard.result()
    expect(heard.frames).toHaveLength(2)
  })

  test('the reconnection tool takes its time and answers', async () => {
    expect(await textOf(await call('test_reconnection'))).toBe('Reconnection test completed successfully')
  })
})

describe('changes', () => {
  const EVERYTHING = {
    toolsListChanged: true,
    promptsListChanged: true,
    resourcesListChanged: true,
    resourceSubscriptions: ['test://watched-resource'],
  }

  test.each([
    ['test_trigger_tool_change', 'notifications/tools/list_changed', 'tools/list', 'tools', 'test_changing_tool'],
    [
      'test_trigger_prompt_change',
      'notifications/prompts/list_changed',
      'prompts/list',
      'prompts',
      'test_changing_prompt',
    ],
    [
      'test_trigger_resource_change',
      'notifications/resources/list_changed',
      'resources/list',
      'resources',
      'test://changing-resource',
    ],
  ])('%s announces a change, and the list is another one', async (trigger, notice, method, member, extra) => {
    const listener = await talk(server, 'subscriptions/listen', { notifications: EVERYTHING })
    expect(await namesOf(method, member)).not.toContain(extra)
    await (await call(trigger)).result()
    expect(noticesOf(listener).slice(1)).toEqual([{ method: notice, params: {} }])
    expect(await namesOf(method, member)).toContain(extra)
    await (await call(trigger)).result()
    expect(await namesOf(method, member)).not.toContain(extra)
  })

  test('what appeared can be used', async () => {
    for (const kind of ['tool', 'prompt', 'resource']) await (await call(`test_trigger_${kind}_change`)).result()
    expect(await textOf(await call('test_changing_tool'))).toBe('Here for now')
    await (await talk(server, 'prompts/get', { name: 'test_changing_prompt' })).result()
    await (await talk(server, 'resources/read', { uri: 'test://changing-resource' })).result()
  })

  test('the watched resource changes and its subscribers are notified', async () => {
    const listener = await talk(server, 'subscriptions/listen', { notifications: EVERYTHING })
    await (await call('test_trigger_resource_update')).result()
    expect(noticesOf(listener).slice(1)).toEqual([
      { method: 'notifications/resources/updated', params: { uri: 'test://watched-resource' } },
    ])
    expect(await (await talk(server, 'resources/read', { uri: 'test://watched-resource' })).result()).toMatchObject({
      contents: [{ text: 'Updated 1 times' }],
    })
  })

  test('two demos do not share what changes', async () => {
    await (await call('test_trigger_tool_change')).result()
    server = demo('1')
    expect(await namesOf('tools/list', 'tools')).not.toContain('test_changing_tool')
  })
})

describe('questions', () => {
  const ANSWERS: Readonly<Record<string, Plain>> = {
    'sampling/createMessage': { role: 'assistant', content: { type: 'text', text: 'Paris' }, model: 'm' },
    'roots/list': { roots: [{ uri: 'file:///r' }] },
  }
  const accept = (content: PlainObject): PlainObject => ({ action: 'accept', content })

  /** Each tool with the questions it asks, in order, and what it makes of the answers. */
  test.each<[string, PlainObject, [string, string, Plain?][], string]>([
    ['test_sampling', { prompt: 'Hi' }, [['answer', 'sampling/createMessage']], 'LLM response: Paris'],
    [
      'test_elicitation',
      { message: 'Who?' },
      [['response', 'elicitation/create', accept({ username: 'u', email: 'e' })]],
      'User response: action=accept, content={"username":"u","email":"e"}',
    ],
    [
      'test_elicitation_url',
      {},
      [['visit', 'elicitation/create', { action: 'accept' }]],
      'User response: action=accept',
    ],
    [
      'test_streaming_elicitation',
      {},
      [['confirm', 'elicitation/create', { action: 'decline' }]],
      'User response: action=decline, content={}',
    ],
    [
      'test_elicitation_sep1034_defaults',
      {},
      [
        [
          'form',
          'elicitation/create',
          accept({ name: 'Jane', age: 25, score: 88, status: 'inactive', verified: false }),
        ],
      ],
      'Elicitation completed: action=accept, content={"name":"Jane","age":25,"score":88,"status":"inactive","verified":false}',
    ],
    [
      'test_elicitation_sep1330_enums',
      {},
      [['form', 'elicitation/create', accept({ untitledSingle: 'option1', titledMulti: ['value1', 'value2'] })]],
      'Elicitation completed: action=accept, content={"untitledSingle":"option1","titledMulti":["value1","value2"]}',
    ],
    [
      'test_input_required_result_elicitation',
      {},
      [['user_name', 'elicitation/create', accept({ name: 'Alice' })]],
      'Hello, Alice!',
    ],
    [
      'test_input_required_result_sampling',
      {},
      [['capital_question', 'sampling/createMessage']],
      'The model said: Paris',
    ],
    ['test_input_required_result_list_roots', {}, [['client_roots', 'roots/list']], 'Roots: file:///r'],
    [
      'test_input_required_result_request_state',
      {},
      [['confirm', 'elicitation/create', accept({ ok: true })]],
      'state-ok (accept)',
    ],
    [
      'test_input_required_result_tampered_state',
      {},
      [['confirm', 'elicitation/create', accept({ ok: true })]],
      'Confirmed (accept)',
    ],
    [
      'test_input_required_result_multi_round',
      {},
      [
        ['step1', 'elicitation/create', accept({ name: 'Alice' })],
        ['step2', 'elicitation/create', accept({ color: 'blue' })],
      ],
      'Alice likes blue',
    ],
  ])('%s', async (name, args, questions, text) => {
    const capabilities = Json.of({ sampling: {}, roots: {}, elicitation: { form: {}, url: {} } })
    const t = await call(name, args, {}, { caller: { capabilities } })
    for (const [key, method, answer] of questions) {
      const question = await t.question(key)
      expect(question.method).toBe(method)
      expect(t.frames.some(isLast)).toBe(false)
      reply(question, answer ?? ANSWERS[method] ?? null)
    }
    expect(await textOf(t)).toBe(text)
    expect(questionsOf(t)).toHaveLength(questions.length)
  })

  const questionsOf = ({ frames }: Talk) =>
    frames.flatMap((frame: Frame) => (frame.kind === 'question' ? [{ key: frame.key, method: frame.method }] : []))

  test('the three kinds are asked at once', async () => {
    const t = await call('test_input_required_result_multiple_inputs')
    await t.question('client_roots')
    expect(questionsOf(t)).toEqual([
      { key: 'user_name', method: 'elicitation/create' },
      { key: 'greeting', method: 'sampling/createMessage' },
      { key: 'client_roots', method: 'roots/list' },
    ])
    reply(await t.question('client_roots'), ANSWERS['roots/list'] ?? null)
    reply(await t.question('greeting'), ANSWERS['sampling/createMessage'] ?? null)
    reply(await t.question('user_name'), accept({ name: 'Alice' }))
    expect(await textOf(t)).toBe('Paris Alice has 1 roots')
  })

  test.each<[PlainObject, string[]]>([
    [{ sampling: {} }, ['sampling/createMessage']],
    [{ elicitation: {}, roots: {} }, ['elicitation/create', 'roots/list']],
    [{}, []],
  ])('a client that declares %j is asked no more than that', async (declared, methods) => {
    const t = await call(
      'test_input_required_result_capabilities',
      {},
      {},
      { caller: { capabilities: Json.of(declared) } },
    )
    await new Promise(setImmediate)
    expect(questionsOf(t).map(({ method }) => method)).toEqual(methods)
    if (methods.length === 0) expect(await textOf(t)).toBe('The client can answer no questions')
  })

  test('a client without sampling gets an error', async () => {
    const t = await call('test_missing_capability', {}, {}, { caller: { capabilities: Json.empty } })
    expect(await t.failure()).toMatchObject({ code: -32021, data: { requiredCapabilities: { sampling: {} } } })
    expect(await textOf(await call('test_missing_capability'))).toBe('The client can sample')
  })

  test('an answer that comes along is used, whatever else comes with it', async () => {
    const inputResponses = { user_name: accept({ name: 'Alice' }), unknown_extra_key: accept({ foo: 'bar' }) }
    const t = await call('test_input_required_result_elicitation', {}, { inputResponses })
    expect(await textOf(t)).toBe('Hello, Alice!')
    expect(t.frames).toHaveLength(1)
  })

  test('the forms are those the conformance suite looks for', async () => {
    const form = async (name: string): Promise<unknown> =>
      (await (await call(name)).question('form')).params.get('requestedSchema')?.toValue()
    expect(await form('test_elicitation_sep1034_defaults')).toMatchObject({
      properties: {
        name: { type: 'string', default: 'John Doe' },
        age: { type: 'integer', default: 30 },
        score: { type: 'number', default: 95.5 },
        status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
        verified: { type: 'boolean', default: true },
      },
      required: [],
    })
    expect(await form('test_elicitation_sep1330_enums')).toMatchObject({
      properties: {
        untitledSingle: { type: 'string', enum: ['option1', 'option2', 'option3'] },
        titledSingle: { type: 'string', oneOf: [{ const: 'value1', title: 'First Option' }, {}, {}] },
        legacyEnum: { enum: ['opt1', 'opt2', 'opt3'], enumNames: ['Option One', 'Option Two', 'Option Three'] },
        untitledMulti: { type: 'array', items: { type: 'string', enum: ['option1', 'option2', 'option3'] } },
        titledMulti: { type: 'array', items: { anyOf: [{ const: 'value1', title: 'First Choice' }, {}, {}] } },
      },
    })
  })
})

describe('resources and prompts', () => {
  test.each<[string, PlainObject]>([
    ['test://static-text', { mimeType: 'text/plain', text: 'This is the content of the static text resource.' }],
    ['test://static-binary', { mimeType: 'image/png', blob: expect.stringContaining('iVBOR') as unknown as string }],
    ['test://watched-resource', { mimeType: 'text/plain', text: 'Updated 0 times' }],
    [
      'test://template/123/data',
      { mimeType: 'application/json', text: '{"id":"123","templateTest":true,"data":"Data for ID: 123"}' },
    ],
  ])('%s can be read', async (uri, contents) => {
    expect(await (await talk(server, 'resources/read', { uri })).result()).toMatchObject({
      contents: [{ uri, ...contents }],
    })
  })

  test('an unknown resource is named', async () => {
    const uri = 'test://nonexistent-resource-for-conformance-testing'
    expect(await (await talk(server, 'resources/read', { uri })).failure()).toMatchObject({
      code: -32602,
      data: { uri },
    })
  })

  test.each<[string, PlainObject, PlainObject[]]>([
    ['test_simple_prompt', {}, [{ type: 'text', text: 'This is a simple prompt for testing.' }]],
    [
      'test_prompt_with_arguments',
      { arg1: 'hello', arg2: 'world' },
      [{ type: 'text', text: "Prompt with arguments: arg1='hello', arg2='world'" }],
    ],
    [
      'test_prompt_with_embedded_resource',
      { resourceUri: 'test://example-resource' },
      [
        { type: 'resource', resource: { uri: 'test://example-resource', mimeType: 'text/plain' } },
        { type: 'text', text: 'Please process the embedded resource above.' },
      ],
    ],
    [
      'test_prompt_with_image',
      {},
      [
        { type: 'image', mimeType: 'image/png' },
        { type: 'text', text: 'Please analyze the image above.' },
      ],
    ],
  ])('%s can be had', async (name, args, contents) => {
    expect(await (await talk(server, 'prompts/get', { name, arguments: args })).result()).toMatchObject({
      messages: contents.map(content => ({ role: 'user', content })),
    })
  })

  test('a prompt may ask', async () => {
    const t = await talk(server, 'prompts/get', { name: 'test_input_required_result_prompt' })
    reply(await t.question('user_context'), { action: 'accept', content: { context: 'tea' } })
    expect(await t.result()).toMatchObject({ messages: [{ content: { text: 'Use this context: tea' } }] })
  })

  test('arguments are completed', async () => {
    const ref = { type: 'ref/prompt', name: 'test_prompt_with_arguments' }
    const t = await talk(server, 'completion/complete', { ref, argument: { name: 'arg1', value: 'test' } })
    expect(await t.result()).toMatchObject({ completion: { values: ['test', 'testing'], total: 2, hasMore: false } })
  })
})

describe('mirrored headers', () => {
  const args = { region: 'Hello', level: 3 }
  const headers = (region: string): TalkOptions => ({
    caller: {
      headers: new Map([
        ['mcp-param-region', region],
        ['mcp-param-level', '3'],
      ]),
    },
  })

  test('are checked as the conformance suite checks them', async () => {
    expect(await textOf(await call('test_x_mcp_header', args, {}, headers('=?base64?SGVsbG8=?=')))).toContain(
      'Region Hello',
    )
    for (const wrong of ['=?base64?SGVsbG8?=', '=?base64?SGVs!!!bG8=?=', 'hello'])
      expect((await (await call('test_x_mcp_header', args, {}, headers(wrong))).failure()).code).toBe(-32020)
    expect((await (await call('test_x_mcp_header', { region: 'x' })).failure()).code).toBe(-32020)
  })
})
