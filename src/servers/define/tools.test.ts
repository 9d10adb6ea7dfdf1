import { describe, expect, test } from 'vitest'
import { type Talk, talk } from '../../../test/support/embedded.ts'
import { Json, type PlainObject } from '../../wire/json/json.ts'
import { audio, embedded, image, link, text } from './content.ts'
import { defineServer } from './define.ts'
import { type ToolOutput, tool } from './tools.ts'

const call = (run: () => ToolOutput | Promise<ToolOutput>): Promise<Talk> =>
  talk(defineServer({ name: 's', version: '1', tools: [tool({ name: 't', description: 'T', run })] }), 'tools/call', {
    name: 't',
  })

describe('declaring a tool', () => {
  test('the list shows each declared tool, its schema verbatim', async () => {
    const input = {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      properties: { a: { type: 'string' } },
      allOf: [{ required: ['a'] }],
    } as const
    const server = defineServer({
      name: 's',
      version: '1',
      tools: [
        tool({
          name: 'whole',
          title: 'Whole',
          description: 'All members',
          input,
          output: { type: 'object' },
          annotations: { readOnlyHint: true },
          _meta: { 'x/y': 1 },
          run: () => '',
        }),
        tool({ name: 'bare', description: 'As few as possible', run: () => '' }),
      ],
    })
    expect(await (await talk(server, 'tools/list')).result()).toMatchObject({
      tools: [
        {
          name: 'whole',
          title: 'Whole',
          description: 'All members',
          inputSchema: input,
          outputSchema: { type: 'object' },
          annotations: { readOnlyHint: true },
          _meta: { 'x/y': 1 },
        },
        { name: 'bare', description: 'As few as possible', inputSchema: { type: 'object', properties: {} } },
      ],
    })
  })
})

describe('what a tool gives back', () => {
  test.each<[string, ToolOutput, PlainObject]>([
    ['words', 'Hi', { content: [{ type: 'text', text: 'Hi' }] }],
    ['no words', '', { content: [{ type: 'text', text: '' }] }],
    [
      'pieces',
      [
        text('a', { annotations: { priority: 1 } }),
        image('aa==', 'image/png'),
        audio('bb==', 'audio/wav'),
        embedded({ uri: 'x://1', text: 'one' }),
        link({ uri: 'x://2', name: 'two' }),
        Json.of({ type: 'new', n: 1 }),
      ],
      {
        content: [
          { type: 'text', text: 'a', annotations: { priority: 1 } },
          { type: 'image', data: 'aa==', mimeType: 'image/png' },
          { type: 'audio', data: 'bb==', mimeType: 'audio/wav' },
          { type: 'resource', resource: { uri: 'x://1', text: 'one' } },
          { type: 'resource_link', uri: 'x://2', name: 'two' },
          { type: 'new', n: 1 },
        ],
      },
    ],
    ['nothing', [], { content: [] }],
    [
      'structured content, spoken too',
      { structuredContent: { n: 1 } },
      { structuredContent: { n: 1 }, content: [{ type: 'text', text: '{"n":1}' }] },
    ],
    [
      'structured content and words of its own',
      { structuredContent: [1], content: [text('one')], isError: false, _meta: { a: 1 } },
      { structuredContent: [1], content: [{ type: 'text', text: 'one' }], isError: false, _meta: { a: 1 } },
    ],
    ['structured null', { structuredContent: null }, { structuredContent: null, content: [{ text: 'null' }] }],
    ['a result by hand', Json.of({ content: [], x: 1 }), { content: [], x: 1 }],
  ])('%s', async (_name, output, expected) => {
    expect(await (await call(() => output)).result()).toMatchObject(expected)
    expect(await (await call(async () => output)).result()).toMatchObject(expected)
  })

  test.each<[string, unknown, string]>([
    ['an error', new Error('No connection'), 'No connection'],
    ['an error without words', new Error(''), 'Unknown error'],
    ['a text', 'plain', 'plain'],
    ['undefined', undefined, 'undefined'],
  ])('a thrown %s is a failed tool, not a failed call', async (_name, thrown, words) => {
    const expected = { resultType: 'complete', isError: true, content: [{ type: 'text', text: words }] }
    const run = (): never => {
      throw thrown
    }
    expect(await (await call(run)).result()).toMatchObject(expected)
    expect(await (await call(async () => run())).result()).toMatchObject(expected)
  })

  test('what cannot be written as JSON is a failed tool', async () => {
    const t = await call(() => ({ structuredContent: 1n as unknown as number }))
    expect(await t.result()).toMatchObject({ isError: true })
  })
})

describe('calling a tool', () => {
  const server = defineServer({
    name: 's',
    version: '1',
    tools: [
      tool({
        name: 'greet',
        description: 'Greets',
        input: {
          type: 'object',
          properties: {
            name: { type: 'string' },
            times: { type: 'integer' },
            mood: { type: 'string', enum: ['glad', 'sad'] },
          },
          required: ['name'],
        },
        run: ({ name, times = 1, mood }) => `${mood ?? 'plain'} hello ${name.toUpperCase()} `.repeat(times),
      }),
    ],
  })
  const greet = (params: PlainObject): Promise<Talk> => talk(server, 'tools/call', params)

  test('hands over the arguments as the schema types them', async () => {
    const t = await greet({ name: 'greet', arguments: { name: 'Ada', times: 2, mood: 'glad', other: null } })
    expect(await t.result()).toMatchObject({ content: [{ text: 'glad hello ADA glad hello ADA ' }] })
  })

  test.each<[string, PlainObject, string]>([
    ['an unknown tool', { name: 'great' }, 'Unknown tool: great'],
    ['no name', {}, 'name must be a string'],
    ['a name that is no text', { name: 5 }, 'name must be a string'],
    ['a name that every object has', { name: 'constructor' }, 'Unknown tool: constructor'],
    ['arguments that are a list', { name: 'greet', arguments: [] }, 'arguments must be an object'],
    ['arguments that are null', { name: 'greet', arguments: null }, 'arguments must be an object'],
    ['no arguments', { name: 'greet' }, 'greet: Argument "name" is required (string)'],
    [
      'an argument of the wrong type',
      { name: 'greet', arguments: { name: 'a', times: 'x' } },
      'greet: Argument "times" must be of type integer, not string',
    ],
  ])('%s is refused in words that help', async (_name, params, message) => {
    expect(await (await greet(params)).failure()).toMatchObject({ code: -32602, message })
  })
})

describe('arguments mirrored in headers', () => {
  const server = defineServer({
    name: 's',
    version: '1',
    tools: [
      tool({
        name: 'route',
        description: 'Routes',
        input: {
          type: 'object',
          properties: { region: { type: 'string', 'x-mcp-header': 'Region' } },
          required: ['region'],
        },
        run: ({ region }) => region,
      }),
    ],
  })
  const params = { name: 'route', arguments: { region: 'eu' } }

  test('that agree are accepted', async () => {
    const t = await talk(server, 'tools/call', params, { caller: { headers: new Map([['mcp-param-region', 'eu']]) } })
    expect(await t.result()).toMatchObject({ content: [{ text: 'eu' }] })
  })

  test.each<[string, [string, string][]]>([
    ['that differ', [['mcp-param-region', 'us']]],
    ['that are missing', []],
    ['that cannot be decoded', [['mcp-param-region', '=?base64?x?=']]],
  ])('%s are refused', async (_name, headers) => {
    const t = await talk(server, 'tools/call', params, { caller: { headers: new Map(headers) } })
    expect((await t.failure()).code).toBe(-32020)
  })

  test.each([
    ['a pipe', { session: 'pipe-1' }],
    ['a legacy session', { revision: '2025-11-25', session: 's1' }],
  ] as const)('are not expected from %s', async (_name, caller) => {
    expect(await (await talk(server, 'tools/call', params, { caller })).result()).toMatchObject({
      content: [{ text: 'eu' }],
    })
  })
})
