import { describe, expect, test } from 'vitest'
import { formatJsonPath, isSameNode, type JsonNode, nodeAt, readJsonNode, stringAt } from './json-node.ts'

const read = (text: string): JsonNode => readJsonNode(text) as JsonNode

describe('readJsonNode', () => {
  test('keeps the text of numbers', () => {
    const node = read('{"a": 12345678901234567890, "b": [1.0, 1e400, -0]}')
    expect(nodeAt(node, ['a'])).toEqual({ kind: 'scalar', text: '12345678901234567890' })
    expect(nodeAt(node, ['b', 0])).toEqual({ kind: 'scalar', text: '1.0' })
    expect(nodeAt(node, ['b', 1])).toEqual({ kind: 'scalar', text: '1e400' })
    expect(nodeAt(node, ['b', 2])).toEqual({ kind: 'scalar', text: '-0' })
  })

  test('keeps keys that occur twice, and names such as __proto__', () => {
    const node = read('{"a":1,"a":2,"__proto__":{"x":true}}')
    expect(node.kind === 'object' && node.members.map(({ key }) => key)).toEqual(['a', 'a', '__proto__'])
    expect(nodeAt(node, ['__proto__', 'x'])).toEqual({ kind: 'scalar', text: 'true' })
  })

  test.each([
    '',
    '{',
    '{"a":',
    '{"a":1',
    '[1,]',
    '{"a":1,}',
    '{"a":1}x',
    '{a:1}',
    '[1 2]',
    '"\\x"',
    '{"a":1}}',
    '…',
    ',',
  ])('rejects %j', text => {
    expect(readJsonNode(text)?.kind === 'scalar' ? stringAt(readJsonNode(text), []) : readJsonNode(text)).toBe(
      undefined,
    )
  })

  test.each([' {} ', '[]', 'null', '"a"', '[[],{}]\n'])('reads %j', text => {
    expect(readJsonNode(text)).toBeDefined()
  })

  test('rejects a value that is nested too deeply', () => {
    expect(readJsonNode('['.repeat(100_000) + ']'.repeat(100_000))).toBeUndefined()
  })
})

describe('isSameNode', () => {
  test.each([
    ['{"a":1,"b":[2]}', '{ "b": [2], "a": 1 }', true],
    ['"caf\\u00e9"', '"café"', true],
    ['1.0', '1', false],
    ['9007199254740993', '9007199254740992', false],
    ['"1"', '1', false],
    ['[1,2]', '[2,1]', false],
    ['{"a":1}', '{"a":1,"b":1}', false],
    ['{}', '[]', false],
  ])('%s and %s: %s', (a, b, isSame) => {
    expect(isSameNode(read(a), read(b))).toBe(isSame)
    expect(isSameNode(read(b), read(a))).toBe(isSame)
  })
})

test('formatJsonPath writes a path as code does', () => {
  expect(formatJsonPath(['params', '_meta', 'io.modelcontextprotocol/logLevel'])).toBe(
    'params._meta["io.modelcontextprotocol/logLevel"]',
  )
  expect(formatJsonPath(['result', 'tools', 2, 'name'])).toBe('result.tools[2].name')
})
