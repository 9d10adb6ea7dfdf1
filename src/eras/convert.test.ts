import { expect, test } from 'vitest'
import { META, TASKS_EXTENSION } from '../protocol/meta.ts'
import { REVISIONS, type Revision } from '../protocol/revisions.ts'
import { Json, type Plain, type PlainObject } from '../wire/json/json.ts'
import { convertAnswer, convertError, convertNotice, convertParams, convertQuestion, convertResult } from './convert.ts'

const NEW: Revision = '2026-07-28'
const ERROR = { code: -32042, message: 'm' }

test('between equal revisions everything is the same object', () => {
  const value = Json.parse(Buffer.from('{ "resultType":"complete", "n": 1.0, "_meta": {} }'))
  for (const revision of REVISIONS) {
    expect(convertParams('tools/call', value, revision, revision)).toBe(value)
    expect(convertResult('tools/call', value, revision, revision)).toBe(value)
    expect(convertNotice('notifications/progress', value, revision, revision)).toBe(value)
    expect(convertQuestion('elicitation/create', value, revision, revision)).toBe(value)
    expect(convertAnswer('elicitation/create', value, Json.empty, revision, revision)).toBe(value)
    expect(convertError('tools/call', ERROR, value, revision, revision)).toBe(ERROR)
  }
})

const ENVELOPE = {
  [META.protocolVersion]: NEW,
  [META.clientInfo]: { name: 'x', version: '1' },
  [META.clientCapabilities]: {},
  [META.logLevel]: 'info',
}

test.each<[string, string, Plain, Plain]>([
  [
    'the envelope goes, the rest of _meta stays',
    'tools/call',
    { name: 'a', _meta: { ...ENVELOPE, progressToken: 1, traceparent: 't', 'acme/x': 2 } },
    { name: 'a', _meta: { progressToken: 1, traceparent: 't', 'acme/x': 2 } },
  ],
  ['an empty _meta goes too', 'tools/list', { _meta: ENVELOPE }, {}],
  [
    'answers and state go where they mean something',
    'prompts/get',
    { name: 'a', inputResponses: {}, requestState: 's' },
    { name: 'a' },
  ],
  [
    'and stay where they are an extension’s',
    'acme/do',
    { inputResponses: {}, requestState: 's' },
    { inputResponses: {}, requestState: 's' },
  ],
])('params to 2025-11-25: %s', (_name, method, modern, legacy) => {
  expect(convertParams(method, Json.of(modern), NEW, '2025-11-25').toValue()).toEqual(legacy)
})

test('completion context is for 2025-06-18 and newer', () => {
  const params = Json.of({ ref: { type: 'ref/prompt', name: 'p' }, context: { arguments: {} } })
  const has = (to: Revision) => convertParams('completion/complete', params, NEW, to).has('context')
  expect(REVISIONS.map(has)).toEqual([false, false, true, true, true])
})

const TOOL = {
  name: 't',
  title: 'T',
  inputSchema: { type: 'object' },
  outputSchema: { type: 'object' },
  execution: { taskSupport: 'optional' },
  acme: 1,
}

test('tools per revision', () => {
  const list = (to: Revision) =>
    convertResult(
      'tools/list',
      Json.of({ resultType: 'complete', ttlMs: 5, cacheScope: 'public', tools: [TOOL], nextCursor: 'c' }),
      NEW,
      to,
    ).toValue()
  const { execution, ...without } = TOOL
  expect(list('2025-11-25')).toEqual({ tools: [TOOL], nextCursor: 'c' })
  expect(list('2025-06-18')).toEqual({ tools: [without], nextCursor: 'c' })
  expect(list('2025-03-26')).toEqual({ tools: [{ ...without, annotations: { title: 'T' } }], nextCursor: 'c' })
  expect(execution).toBeTruthy()
})

test('legacy results become modern ones', () => {
  const up = (method: string, result: Plain) => convertResult(method, Json.of(result), '2025-11-25', NEW).toValue()
  expect(up('tools/list', { tools: [TOOL] })).toEqual({
    tools: [{ name: 't', title: 'T', inputSchema: { type: 'object' }, outputSchema: { type: 'object' }, acme: 1 }],
    resultType: 'complete',
    ttlMs: 0,
    cacheScope: 'private',
  })
  expect(up('tools/call', { structuredContent: {}, resultType: 'odd' })).toEqual({
    structuredContent: {},
    resultType: 'complete',
    content: [],
  })
  expect(up('resources/read', { contents: [], ttlMs: 7 })).toEqual({
    contents: [],
    ttlMs: 7,
    resultType: 'complete',
    cacheScope: 'private',
  })
})

test('modern results lose what legacy clients refuse, and nothing else', () => {
  const down = (method: string, result: Plain) => convertResult(method, Json.of(result), NEW, '2025-11-25').toString()
  expect(down('acme/do', { resultType: 'complete', _meta: { [META.serverInfo]: {} } })).toBe('{}')
  expect(down('tools/call', { content: [], resultType: 'complete', _meta: { a: 1, [META.serverInfo]: {} } })).toBe(
    '{"content":[],"_meta":{"a":1}}',
  )
})

test('the handshake keeps the server’s name and loses the tasks extension', () => {
  const found = {
    supportedVersions: [NEW],
    capabilities: { tools: {}, completions: {}, extensions: { [TASKS_EXTENSION]: {} } },
    _meta: { [META.serverInfo]: { name: 's' } },
  }
  const down = (to: Revision) =>
    convertResult('server/discover', Json.of(found), NEW, to).toValue() as { capabilities: object; _meta: object }
  expect(down('2025-11-25')).toMatchObject({
    capabilities: { tools: {}, completions: {} },
    _meta: { [META.serverInfo]: { name: 's' } },
  })
  expect(down('2025-11-25').capabilities).not.toHaveProperty('extensions')
  expect(down('2024-11-05').capabilities).toEqual({ tools: {}, completions: {} })
})

const AUDIO = { type: 'audio', data: 'UklGRg==', mimeType: 'audio/wav' }
const LINK = { type: 'resource_link', uri: 'a:b', name: 'B', description: 'the b', annotations: { priority: 1 } }

test('content per revision', () => {
  const call = (to: Revision, result: Plain) => convertResult('tools/call', Json.of(result), NEW, to).toValue()
  expect(call('2025-06-18', { content: [AUDIO, LINK], structuredContent: { a: 1 } })).toEqual({
    content: [AUDIO, LINK],
    structuredContent: { a: 1 },
  })
  const text = { ...LINK, type: 'text', text: 'B\na:b\nthe b' }
  const structure = { type: 'text', text: '{"a":1}' }
  expect(call('2025-03-26', { content: [AUDIO, LINK], structuredContent: { a: 1 } })).toEqual({
    content: [AUDIO, text, structure],
    structuredContent: { a: 1 },
  })
  expect(call('2024-11-05', { content: [AUDIO] })).toEqual({
    content: [
      {
        type: 'resource',
        resource: { uri: expect.stringMatching(/^audio:[0-9a-f]{64}$/), mimeType: 'audio/wav', blob: 'UklGRg==' },
      },
    ],
  })
  expect(call('2025-03-26', { content: [{ type: 'text', text: 'said' }], structuredContent: { a: 1 } })).toEqual({
    content: [{ type: 'text', text: 'said' }],
    structuredContent: { a: 1 },
  })
})

test('prompt messages are shaped like content', () => {
  const result = Json.of({
    messages: [
      { role: 'user', content: AUDIO },
      { role: 'user', content: LINK },
    ],
  })
  const types = (
    convertResult('prompts/get', result, NEW, '2024-11-05').toValue() as { messages: { content: { type: string } }[] }
  ).messages.map(({ content }) => content.type)
  expect(types).toEqual(['resource', 'text'])
})

test('notices lose what their clients have no use for', () => {
  const progress = Json.of({ progressToken: 1, progress: 1, message: 'm' })
  const has = (to: Revision) => convertNotice('notifications/progress', progress, NEW, to).has('message')
  expect(REVISIONS.map(has)).toEqual([false, true, true, true, true])
  const changed = Json.of({ _meta: { [META.subscriptionId]: 1 } })
  expect(convertNotice('notifications/tools/list_changed', changed, NEW, '2025-11-25').toString()).toBe('{}')
})

test('a progress message for the server is for 2025-03-26 and newer', () => {
  const progress = Json.of({ progressToken: 1, progress: 1, message: 'm' })
  const has = (to: Revision) => convertParams('notifications/progress', progress, NEW, to).has('message')
  expect(REVISIONS.map(has)).toEqual([false, true, true, true, true])
})

test('an oldest client gets sound, links and structure in blocks it knows, with equal bytes', () => {
  const result = Json.of({
    resultType: 'complete',
    content: [{ ...AUDIO, annotations: { priority: 1 }, _meta: { a: 1 }, acme: 2 }, LINK],
    structuredContent: { n: 1 },
  })
  const { content, ...rest } = convertResult('tools/call', result, NEW, '2024-11-05').toValue() as {
    content: { type: string }[]
  }
  expect(rest).toEqual({ structuredContent: { n: 1 } })
  expect(content.map(({ type }) => type)).toEqual(['resource', 'text', 'text'])
  expect(content[0]).toMatchObject({
    resource: { blob: 'UklGRg==', mimeType: 'audio/wav' },
    annotations: { priority: 1 },
    _meta: { a: 1 },
    acme: 2,
  })
})

test('unknown blocks, members and contents pass unchanged', () => {
  const call = Json.of({ content: [{ type: 'acme/block', x: 1 }], acme: { resultType: 'x' } })
  const read = Json.of({ contents: [{ uri: 'a:b', blob: 'UklGRg==', mimeType: 'audio/wav', _meta: { a: 1 } }] })
  const list = Json.of({ prompts: [{ name: 'p', title: 'P', icons: [], arguments: [{ name: 'a', title: 'A' }] }] })
  for (const to of REVISIONS) {
    expect(convertResult('tools/call', call, NEW, to)).toBe(call)
    expect(convertResult('resources/read', read, NEW, to)).toBe(read)
    expect(convertResult('prompts/list', list, NEW, to)).toBe(list)
  }
})

test('capabilities in the handshake per revision', () => {
  const capabilities = (server: Revision, known: PlainObject) =>
    REVISIONS.map(to => convertResult('server/discover', Json.of({ capabilities: known }), server, to)).map(result =>
      result.get('capabilities')?.toValue(),
    )
  const tasks = { tasks: { list: {} } }
  expect(capabilities('2025-11-25', { ...tasks, completions: {} })).toEqual([
    { completions: {} },
    { completions: {} },
    { completions: {} },
    { ...tasks, completions: {} },
    { completions: {} },
  ])
  const apps = { 'io.modelcontextprotocol/ui': {} }
  const extended = { extensions: { ...apps, [TASKS_EXTENSION]: {} } }
  const without = { extensions: apps }
  expect(capabilities(NEW, extended)).toEqual([without, without, without, without, extended])
  const old = { completions: {} }
  expect(capabilities('2024-11-05', {})).toEqual([{}, old, old, old, old])
})

test('questions keep their mode and their id in every revision: who is asked is not a matter of the revision', () => {
  const form = Json.of({ mode: 'form', message: 'm', requestedSchema: {} })
  const url = Json.of({ mode: 'url', url: 'u', elicitationId: 'e', _meta: { [META.relatedTask]: {} } })
  const ask = (params: Json, from: Revision, to: Revision): unknown => {
    const asked = convertQuestion('elicitation/create', params, from, to)
    return 'rejection' in asked ? asked.rejection.code : asked.toValue()
  }
  for (const to of REVISIONS) {
    expect(ask(form, NEW, to)).toEqual(form.toValue())
    expect(ask(url, NEW, to)).toEqual(url.toValue())
  }
  expect(ask(url, '2025-11-25', NEW)).toEqual({ mode: 'url', url: 'u', elicitationId: 'e' })
  expect(convertQuestion('roots/list', Json.empty, NEW, '2024-11-05')).toBe(Json.empty)
})
