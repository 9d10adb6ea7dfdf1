import { describe, expect, test } from 'vitest'
import { diffJson, type JsonDiff, type MovedPart } from './diff.ts'
import { formatJsonPath, type JsonNode, readJsonNode } from './json-node.ts'

const read = (value: unknown): JsonNode =>
  readJsonNode(typeof value === 'string' ? value : JSON.stringify(value)) as JsonNode

const diff = (before: unknown, after: unknown, moved?: readonly MovedPart[]): JsonDiff =>
  diffJson(read(before), read(after), moved)

const changesOf = ({ changes }: JsonDiff): string[] =>
  changes.map(({ kind, path, to }) =>
    kind === 'moved' && to
      ? `moved ${formatJsonPath(path)} → ${formatJsonPath(to)}`
      : `${kind} ${formatJsonPath(path)}`,
  )

/** One side as text, as it is printed. */
const textOf = ({ lines }: JsonDiff, side: 'before' | 'after'): string =>
  lines
    .flatMap(line => line[side] ?? [])
    .reduce((text, { depth, text: own }) => `${text}${'  '.repeat(depth)}${own}\n`, '')

describe('diffJson', () => {
  test('equal texts have no changes, whatever their notation and order', () => {
    expect(changesOf(diff('{"a":1,"b":{"c":[1,2]}}', '{ "b": {"c": [1, 2]}, "a": 1 }'))).toEqual([])
  })

  test('prints each side as the JSON that it is', () => {
    const [before, after] = [
      { a: 1, b: { c: [1, 2, { d: 'x' }] }, e: [], f: {} },
      { b: { c: [1, { d: 'y' }, 3] }, g: null, f: { h: 1 } },
    ]
    const found = diff(before, after)
    expect(JSON.parse(textOf(found, 'before'))).toEqual(before)
    expect(JSON.parse(textOf(found, 'after'))).toEqual(after)
  })

  test('numbers are compared digit by digit', () => {
    expect(changesOf(diff('{"n":12345678901234567890}', '{"n":12345678901234567891}'))).toEqual(['changed n'])
    expect(changesOf(diff('{"n":1.0}', '{"n":1}'))).toEqual(['changed n'])
    expect(textOf(diff('{"n":1.0}', '{"n":1}'), 'before')).toContain('1.0')
  })

  test('names each member of an added or removed _meta', () => {
    const legacy = { method: 'tools/list' }
    const modern = { method: 'tools/list', params: { _meta: { 'io.x/a': 1, 'io.x/b': { c: 2 } } } }
    expect(changesOf(diff(legacy, modern))).toEqual(['added params._meta["io.x/a"]', 'added params._meta["io.x/b"]'])
    expect(changesOf(diff(modern, legacy))).toEqual([
      'removed params._meta["io.x/a"]',
      'removed params._meta["io.x/b"]',
    ])
  })

  test('every line that is not equal belongs to a change', () => {
    const { lines, changes } = diff({ a: { b: 1 }, c: [1, 2] }, { a: { b: 2 }, c: [1], d: { e: {} } })
    for (const { before, after, change } of lines) {
      if (change === undefined) expect(before?.text.replace(/,$/, '')).toBe(after?.text.replace(/,$/, ''))
      else expect(changes[change]).toBeDefined()
    }
    expect(changesOf({ lines, changes })).toEqual(['changed a.b', 'removed c[1]', 'added d'])
  })

  test('elements are matched by equality and by name', () => {
    const tool = (name: string, more = {}) => ({ name, description: `about ${name}`, ...more })
    const origin = (name: string) => ({ _meta: { 'dragoman/origin': { server: 's', name } } })
    const before = { tools: [tool('a'), tool('b'), tool('c')] }
    const after = {
      tools: [
        { ...tool('a'), name: 's__a', ...origin('a') },
        { ...tool('c'), name: 's__c', ...origin('c') },
      ],
    }
    expect(changesOf(diff(before, after))).toEqual([
      'changed tools[0].name',
      'added tools[0]._meta["dragoman/origin"]',
      'removed tools[1]',
      'changed tools[2].name',
      'added tools[1]._meta["dragoman/origin"]',
    ])
  })

  test('a part that is elsewhere has moved', () => {
    const found = diff({ a: { x: 'a long enough text' }, b: {} }, { b: { c: { x: 'a long enough text' } } })
    expect(changesOf(found)).toEqual(['moved a → b.c'])
    expect(found.lines.filter(line => line.change === 0)).toHaveLength(6)
  })

  test('a question that becomes part of a result is compared where it is', () => {
    const question = { jsonrpc: '2.0', id: 4, method: 'elicitation/create', params: { message: 'Name?', mode: 'form' } }
    const result = {
      jsonrpc: '2.0',
      id: 1,
      result: {
        resultType: 'input_required',
        inputRequests: { q1: { method: 'elicitation/create', params: { message: '[a] Name?', mode: 'form' } } },
        requestState: 'gw1.x',
      },
    }
    const at = ['result', 'inputRequests', 'q1'] as const
    const found = diff(question, result, [
      { from: ['method'], to: [...at, 'method'] },
      { from: ['params'], to: [...at, 'params'] },
    ])
    expect(changesOf(found)).toEqual([
      'changed id',
      'added result.resultType',
      'moved method → result.inputRequests.q1.method',
      'moved params → result.inputRequests.q1.params',
      'changed params.message',
      'added result.requestState',
    ])
    expect(JSON.parse(textOf(found, 'after'))).toEqual(result)
    const mode = found.lines.find(({ before }) => before?.text.includes('"mode"'))
    expect(mode).toMatchObject({ change: undefined, before: { depth: 2 }, after: { depth: 5 } })
  })

  test('an answer that leaves a request is compared where it was', () => {
    const answer = { action: 'accept', content: { name: 'Ann' } }
    const retry = {
      id: 8,
      method: 'tools/call',
      params: { name: 'a', inputResponses: { q1: answer }, requestState: 's' },
    }
    const found = diff(retry, { id: 4, result: answer }, [{ from: ['params', 'inputResponses', 'q1'], to: ['result'] }])
    expect(JSON.parse(textOf(found, 'before'))).toEqual(retry)
    expect(JSON.parse(textOf(found, 'after'))).toEqual({ id: 4, result: answer })
    const action = found.lines.find(({ before }) => before?.text.includes('"action"'))
    expect(action).toMatchObject({ change: undefined, before: { depth: 4 }, after: { depth: 2 } })
    expect(changesOf(found)).toContain('moved params.inputResponses.q1 → result')
  })

  test('a list that is too long for a table of all pairs is compared in its order', () => {
    const tools = Array.from({ length: 8000 }, (_, at) => ({ name: `tool-${at}`, n: at }))
    const renamed = tools.map((tool, at) => ({ ...tool, name: `s__${tool.name}`, n: at % 7 === 0 ? -1 : tool.n }))
    const { changes } = diff({ tools }, { tools: renamed })
    expect(changes).toHaveLength(8000 + Math.ceil(8000 / 7))
    expect(changes.every(({ kind }) => kind === 'changed')).toBe(true)
  })
})
