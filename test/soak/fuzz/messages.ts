import { META } from '../../../src/protocol/meta.ts'
import type { Random } from './random.ts'

/** A request or notification of a client, without what its dialect adds. */
export interface Said {
  readonly method: string
  readonly params: Readonly<Record<string, unknown>>
  readonly isNotification?: boolean
}

const ITEM = { annotations: { title: 'T', audience: ['user'], priority: 1 }, icons: [{ src: 'a:b' }], title: 'T' }
const SCHEMA = {
  type: 'object',
  properties: {
    a: { type: 'string', 'x-mcp-header': 'A' },
    b: { anyOf: [{ type: 'integer' }, { $ref: '#/$defs/c' }] },
  },
  required: ['a'],
  $defs: { c: { type: 'boolean' } },
}
const FORM = {
  mode: 'form',
  message: 'Name?',
  requestedSchema: {
    type: 'object',
    properties: {
      name: { type: 'string', title: 'Name', default: 'x' },
      one: { type: 'string', oneOf: [{ const: 'a', title: 'A' }, { const: 'b' }] },
      many: { type: 'array', items: { anyOf: [{ const: 'a', title: 'A' }, { const: 'b' }] }, minItems: 1 },
    },
    required: ['name', 'many'],
  },
}
const SAMPLING = {
  messages: [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'hi' },
        { type: 'audio', data: 'AA==', mimeType: 'a/b' },
      ],
    },
  ],
  maxTokens: 5,
}

/** What a server may ask a client. */
export const QUESTIONS: readonly Said[] = [
  { method: 'elicitation/create', params: FORM },
  {
    method: 'elicitation/create',
    params: { mode: 'url', message: 'Go', url: 'https://a.example', elicitationId: 'e' },
  },
  { method: 'sampling/createMessage', params: SAMPLING },
  { method: 'roots/list', params: {} },
  { method: 'constructor', params: {} },
  { method: 'ping', params: {} },
]

/** What a client answers to a question, if it answers well. */
export const answerTo = (method: unknown): object => {
  if (method === 'roots/list') return { roots: [{ uri: 'file:///a', name: 'a' }] }
  if (method === 'sampling/createMessage')
    return { role: 'assistant', model: 'm', content: { type: 'text', text: 'hi' }, stopReason: 'endTurn' }
  return { action: 'accept', content: { name: 'Ada', one: 'a', many: ['a'] } }
}

const CONTENT = [
  { type: 'text', text: 'hello', ...ITEM },
  { type: 'audio', data: 'AA==', mimeType: 'audio/wav' },
  { type: 'resource_link', uri: 'test://a', name: 'a', description: 'd' },
  { type: 'resource', resource: { uri: 'test://b', text: 'b', mimeType: 'text/plain' } },
]

/** What a server answers to a request, if it answers well. */
export const RESULTS: Readonly<Record<string, () => object>> = {
  'tools/list': () => ({
    tools: ['t', 'constructor', '__proto__'].map(name => ({
      name,
      description: 'd',
      inputSchema: SCHEMA,
      outputSchema: { type: 'array', items: { type: 'string' } },
      execution: { taskSupport: 'optional' },
      _meta: { ui: { resourceUri: 'ui://a' } },
      ...ITEM,
    })),
  }),
  'prompts/list': () => ({ prompts: [{ name: 'p', arguments: [{ name: 'a', required: true }], ...ITEM }] }),
  'resources/list': () => ({ resources: [{ uri: 'test://a', name: 'a', ...ITEM }], nextCursor: undefined }),
  'resources/templates/list': () => ({ resourceTemplates: [{ uriTemplate: 'test://{+path}', name: 'a' }] }),
  'tools/call': () => ({ content: CONTENT, structuredContent: ['a'], _meta: { 'a/b': 1 } }),
  'prompts/get': () => ({ description: 'd', messages: CONTENT.map(content => ({ role: 'user', content })) }),
  'resources/read': () => ({
    contents: [
      { uri: 'test://a', text: 'a' },
      { uri: 'test://b', blob: 'AA==' },
    ],
  }),
  'completion/complete': () => ({ completion: { values: ['a', 'b'], total: 2, hasMore: false } }),
}

/** What a server says of itself. */
export const INTRODUCTION = {
  capabilities: {
    tools: { listChanged: true },
    prompts: { listChanged: true },
    resources: { listChanged: true, subscribe: true },
    logging: {},
    completions: {},
    extensions: { 'acme.example/x': { a: [1] } },
  },
  instructions: 'be kind',
}

/** Failures a server may answer with. */
export const FAILURES: readonly object[] = [
  {
    code: -32042,
    message: 'links',
    data: { elicitations: [{ mode: 'url', url: 'https://a.example', elicitationId: 'e', message: 'm' }] },
  },
  { code: -32002, message: 'not found', data: { uri: 'test://a' } },
  { code: -32021, message: 'capability', data: { requiredCapabilities: { elicitation: { url: {} } } } },
  { code: -32050, message: 'own' },
  { code: -32602, message: 'params', data: { uri: 'test://a' } },
  { code: -32601, message: 'Method not found' },
]

/** Notices a server may send at any time. */
export const NOTICES: readonly Said[] = [
  { method: 'notifications/tools/list_changed', params: {} },
  { method: 'notifications/resources/list_changed', params: {} },
  { method: 'notifications/resources/updated', params: { uri: 'test://a' } },
  { method: 'notifications/message', params: { level: 'info', logger: 'l', data: { a: 1 } } },
  { method: 'notifications/elicitation/complete', params: { elicitationId: 'e' } },
  { method: 'notifications/cancelled', params: { requestId: 1, reason: 'r' } },
  { method: 'toString', params: {} },
]

/** Requests and notifications of a client, of both eras. */
export const sayings = (random: Random): Said => {
  const tool = random.pick(['t', 'example-echo', 'example-add', 'constructor', '__proto__', 'elicit', 'nothing'])
  return random.pick<Said>([
    { method: 'tools/list', params: {} },
    { method: 'tools/list', params: { cursor: 'c' } },
    { method: 'tools/call', params: { name: tool, arguments: { a: 'x', text: 'hello', message: 'm' } } },
    { method: 'tools/call', params: { name: tool, arguments: {}, _meta: { progressToken: random.below(1000) } } },
    { method: 'prompts/list', params: {} },
    { method: 'prompts/get', params: { name: 'p', arguments: { a: 'x' } } },
    { method: 'resources/list', params: {} },
    { method: 'resources/templates/list', params: {} },
    { method: 'resources/read', params: { uri: random.pick(['test://a', 'test://zzz', 'constructor']) } },
    {
      method: 'completion/complete',
      params: { ref: { type: 'ref/prompt', name: 'p' }, argument: { name: 'a', value: '' } },
    },
    {
      method: 'completion/complete',
      params: {
        ref: { type: 'ref/resource', uri: 'test://{+path}' },
        argument: { name: 'path', value: '' },
        context: { arguments: { path: 'x' } },
      },
    },
    { method: 'server/discover', params: {} },
    { method: 'ping', params: {} },
    { method: 'logging/setLevel', params: { level: 'info' } },
    { method: 'resources/subscribe', params: { uri: 'test://a' } },
    { method: 'resources/unsubscribe', params: { uri: 'test://a' } },
    { method: 'tasks/get', params: { taskId: 'x' } },
    { method: 'constructor', params: {} },
    { method: 'acme/do', params: { name: 't', uri: 'test://a' } },
    { method: 'notifications/cancelled', params: { requestId: 1 }, isNotification: true },
    { method: 'notifications/progress', params: { progressToken: 1, progress: 1 }, isNotification: true },
    { method: 'notifications/roots/list_changed', params: {}, isNotification: true },
    { method: 'toString', params: {}, isNotification: true },
  ])
}

export const CLIENT_CAPABILITIES = {
  elicitation: { form: {}, url: {} },
  sampling: { tools: {} },
  roots: { listChanged: true },
}

/** The envelope of a modern request. */
export const envelope = (random: Random): Record<string, unknown> => ({
  [META.protocolVersion]: '2026-07-28',
  [META.clientInfo]: { name: 'fuzz', version: '1' },
  [META.clientCapabilities]: random.chance(0.7) ? CLIENT_CAPABILITIES : {},
  ...(random.chance(0.3) && { [META.logLevel]: 'debug' }),
  ...(random.chance(0.1) && { [META.affinity]: random.pick(['a', 'b']) }),
})
