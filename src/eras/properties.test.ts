import fc from 'fast-check'
import { expect, test } from 'vitest'
import { META, TASKS_EXTENSION } from '../protocol/meta.ts'
import { REVISIONS, type Revision } from '../protocol/revisions.ts'
import { Json, type Plain } from '../wire/json/json.ts'
import { convertAnswer, convertError, convertNotice, convertParams, convertQuestion, convertResult } from './convert.ts'

const NEW: Revision = '2026-07-28'
const revision = fc.constantFrom(...REVISIONS)
const method = fc.constantFrom(
  ...['server/discover', 'tools/list', 'tools/call', 'prompts/get', 'resources/read', 'completion/complete'],
  ...['elicitation/create', 'sampling/createMessage', 'roots/list', 'notifications/progress', 'acme/do'],
)

// Names and words the rules look for, put where they belong and where they do not.
const NAMES = [
  ...['_meta', 'resultType', 'ttlMs', 'cacheScope', 'content', 'structuredContent', 'tools', 'messages', 'context'],
  ...['inputSchema', 'outputSchema', 'properties', 'type', '$ref', '$id', '$defs', 'anyOf', 'oneOf', 'items', 'enum'],
  ...['const', 'title', 'annotations', 'execution', 'capabilities', 'tasks', 'extensions', 'completions', 'data'],
  ...['requestedSchema', 'required', 'minItems', 'maxItems', 'default', 'mode', 'action', 'role', 'message', 'uri'],
  ...[META.serverInfo, META.clientInfo, META.subscriptionId, TASKS_EXTENSION, 'elicitations', 'name', 'x'],
]
const WORDS = [
  'text',
  'audio',
  'resource_link',
  'object',
  'array',
  'complete',
  '#',
  '#/anyOf/0',
  'url',
  'accept',
  'tool_use',
]
const { value: json } = fc.letrec<{ value: Plain }>(tie => ({
  value: fc.oneof(
    { depthSize: 'medium' },
    fc.constantFrom<Plain>(...WORDS, 0, 1, 2.5, true, false, null),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom(...NAMES), tie('value'), { maxKeys: 6 }),
  ),
}))
const some = fc.dictionary(fc.constantFrom(...NAMES), json, { maxKeys: 8 })
const few = fc.array(some, { maxLength: 3 })
const payload = fc
  .oneof(
    json,
    some,
    fc.record({ tools: few }),
    fc.record({ content: few, structuredContent: json }),
    fc.record({ messages: fc.array(fc.record({ content: fc.oneof(json, some, few) }), { maxLength: 3 }) }),
    fc.record({ requestedSchema: fc.record({ properties: fc.dictionary(fc.string(), some), required: json }) }),
    fc.record({ action: fc.constant('accept'), content: some }),
    fc.record({ capabilities: fc.oneof(json, some) }),
  )
  .map(value => Json.of(value))

test('nothing a peer may send makes a conversion throw', () => {
  fc.assert(
    fc.property(method, payload, payload, revision, revision, fc.integer(), (name, value, other, from, to, code) => {
      for (const convert of [convertParams, convertResult, convertNotice, convertQuestion]) {
        const converted = convert(name, value, from, to)
        if (converted instanceof Json) converted.toValue()
      }
      const answer = convertAnswer(name, value, other, from, to)
      if (answer instanceof Json) answer.toValue()
      for (const each of [code, -32042, -32021, -32602])
        convertError(name, { code: each, message: 'm', data: value }, other, from, to)
    }),
    { numRuns: 1000 },
  )
})

test.each<[string, Plain]>([
  ['tools/list', { tools: [{ title: 'T', annotations: 'x' }, 5, null, { outputSchema: [] }, { inputSchema: 'x' }] }],
  ['tools/list', { tools: { title: 'T' } }],
  ['tools/call', { content: { type: 'audio' }, structuredContent: null, _meta: [] }],
  [
    'tools/call',
    { content: [{ type: 'audio' }, { type: ['audio'], data: 1 }, { type: 'resource_link', uri: 5 }, 'x'] },
  ],
  ['prompts/get', { messages: [{ content: 'x' }, { content: [{ type: 'audio' }] }, 5] }],
  ['server/discover', { capabilities: 'all' }],
  ['server/discover', { capabilities: { extensions: 'all', tasks: null } }],
])('odd members of %s cause no exception', (name, odd) => {
  for (const [from, to] of REVISIONS.flatMap(from => REVISIONS.map(to => [from, to] as const)))
    expect(convertResult(name, Json.of(odd), from, to).isObject).toBe(true)
})

const OFFERS_TASKS: ReadonlySet<string> = new Set(['tools/list', 'server/discover'])

test('what already has the form of its reader is the same object', () => {
  fc.assert(
    fc.property(method, payload, revision, revision, (name, value, from, to) => {
      for (const convert of [convertParams, convertResult, convertNotice, convertQuestion]) {
        const once = convert(name, value, from, to)
        if (!(once instanceof Json)) continue
        // Tasks come with 2025-11-25, and go with the revision before it.
        const isPassed = from === NEW && OFFERS_TASKS.has(name)
        if (isPassed) expect(String(convert(name, once, from, to))).toBe(String(once))
        else expect(convert(name, once, from, to)).toBe(once)
      }
    }),
    { numRuns: 1000 },
  )
})

test('a legacy result is what it was after the way up and down again', () => {
  const added = ['resultType', 'ttlMs', 'cacheScope']
  const object = payload.filter(value => value.isObject)
  const calls = fc.constantFrom('tools/call', 'prompts/get', 'resources/read', 'prompts/list', 'acme/do')
  fc.assert(
    fc.property(calls, object, (name, value) => {
      const complete = { content: [], structuredContent: {}, _meta: { a: 1 } }
      const legacy = Object.entries(complete)
        .reduce((json, [key, each]) => json.with(key, each), value)
        .without(...added)
      const modern = convertResult(name, legacy, '2025-11-25', NEW)
      expect(modern.get('resultType')?.asString()).toBe('complete')
      expect(convertResult(name, modern, NEW, '2025-11-25').toString()).toBe(legacy.toString())
    }),
  )
})
