import { expect, test } from 'vitest'
import { REVISIONS, type Revision } from '../protocol/revisions.ts'
import { Json, type Plain } from '../wire/json/json.ts'
import { convertError } from './convert.ts'

const NEW: Revision = '2026-07-28'
const READ = Json.of({ uri: 'a:b' })

const convert = (method: string, code: number, data: Plain | undefined, from: Revision, to: Revision) => {
  const error = { code, message: 'm', ...(data !== undefined && { data: Json.of(data) }) }
  const converted = convertError(method, error, READ, from, to)
  return 'code' in converted
    ? { code: converted.code, message: converted.message, data: converted.data?.toValue() }
    : { result: converted.result.toValue() }
}

const NEEDS = { requiredCapabilities: { elicitation: { url: {} }, sampling: {} } }

test.each<[string, Revision, Revision, number, Plain | undefined, string, number]>([
  ['an unknown resource', '2025-11-25', NEW, -32002, { uri: 'a:b' }, 'resources/read', -32602],
  ['an unknown resource of any method', '2024-11-05', NEW, -32002, undefined, 'acme/do', -32602],
  ['a missing capability by name', '2025-11-25', NEW, -32021, NEEDS, 'tools/call', -32021],
  ['an ordinary code', '2025-11-25', NEW, -32000, { a: 1 }, 'tools/call', -32000],
  ['a code next to the reserved ones', '2025-11-25', NEW, -32019, undefined, 'tools/call', -32019],
  ['an unknown resource, back', NEW, '2025-11-25', -32602, { uri: 'a:b' }, 'resources/read', -32002],
  ['an unknown resource, back to the oldest', NEW, '2024-11-05', -32602, { uri: 'a:b' }, 'resources/read', -32002],
  ['another resource', NEW, '2025-11-25', -32602, { uri: 'c:d' }, 'resources/read', -32602],
  ['no resource named', NEW, '2025-11-25', -32602, undefined, 'resources/read', -32602],
  ['a tool that takes a uri', NEW, '2025-11-25', -32602, { uri: 'a:b' }, 'tools/call', -32602],
  ['links required', '2025-11-25', '2025-11-25', -32042, undefined, 'tools/call', -32042],
])('error of %s, %s to %s', (_name, from, to, code, data, method, expected) => {
  expect(convert(method, code, data, from, to)).toEqual({ code: expected, message: 'm', data })
})

test.each([-32000, -32019, -32023, -32041, -32043, -32050, -32099, -31000, 42])(
  'a server’s own code %d reaches a modern client as it is',
  code => {
    for (const from of REVISIONS)
      expect(convert('tools/call', code, { a: 1 }, from, NEW)).toEqual({ code, message: 'm', data: { a: 1 } })
  },
)

test.each([-32020, -32022, -32042, -32021])(
  'a private %d is kept apart from what it means to a modern client',
  code => {
    expect(convert('tools/call', code, { a: 1 }, '2025-06-18', NEW)).toEqual({
      code: -32603,
      message: 'm',
      data: { upstreamCode: code, data: { a: 1 } },
    })
  },
)

test('an older client is told in words which capability a server needs', () => {
  for (const to of REVISIONS.slice(0, -1))
    expect(convert('tools/call', -32021, NEEDS, NEW, to)).toEqual({
      code: -32603,
      message: 'The server needs a capability that this client does not have (elicitation.url, sampling): m',
      data: NEEDS,
    })
  expect(convert('tools/call', -32021, undefined, NEW, '2025-11-25')).toMatchObject({
    message: 'The server needs a capability that this client does not have: m',
  })
})

test.each([-32020, -32022])('a %d of a modern server is our affair, not an older client’s', code => {
  expect(convert('tools/call', code, undefined, NEW, '2025-11-25')).toEqual({
    code: -32603,
    message: 'm',
    data: { upstreamCode: code },
  })
})

const LINKS = { elicitations: [{ mode: 'url', url: 'https://a.example', message: 'Sign in', elicitationId: 'e' }] }
const TEXT = 'm\nSign in\nhttps://a.example'

test('links a client cannot open are told in the result of a tool, in the error of anything else', () => {
  const told = { result: { content: [{ type: 'text', text: TEXT }], isError: true } }
  for (const to of ['2024-11-05', '2025-03-26', '2025-06-18'] as const) {
    expect(convert('tools/call', -32042, LINKS, '2025-11-25', to)).toEqual(told)
    expect(convert('resources/read', -32042, LINKS, '2025-11-25', to)).toEqual({
      code: -32603,
      message: TEXT,
      data: LINKS,
    })
  }
  expect(convert('prompts/get', -32042, undefined, '2025-11-25', '2025-06-18')).toMatchObject({ message: 'm' })
})

test('a server too old to say that it cannot complete has no completions', () => {
  const none = { completion: { values: [], hasMore: false } }
  const up = (to: Revision) => convert('completion/complete', -32601, undefined, '2024-11-05', to)
  expect(REVISIONS.map(up)).toEqual([
    { code: -32601, message: 'm', data: undefined },
    { result: none },
    { result: none },
    { result: none },
    { result: { ...none, resultType: 'complete' } },
  ])
  expect(convert('tools/call', -32601, undefined, '2024-11-05', NEW)).toMatchObject({ code: -32601 })
})
