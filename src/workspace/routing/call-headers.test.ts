import { describe, expect, test } from 'vitest'
import { callerOf } from '../../../test/support/embedded.ts'
import { Json, type PlainObject } from '../../wire/json/json.ts'
import { checkCallHeaders, isAnnotated, usableTool, withCallHeaders } from './call-headers.ts'

const tool = (properties: PlainObject, more: PlainObject = {}): Json =>
  Json.of({ name: 'x', inputSchema: { type: 'object', properties, ...more } })
const REGION = { type: 'string', 'x-mcp-header': 'Region' }
const BROKEN = { type: 'string', 'x-mcp-header': 'No Name' }

describe('tools with broken annotations', () => {
  test('are hidden over HTTP with a reason', () => {
    expect(usableTool(tool({ a: BROKEN }), true)).toEqual({ reason: expect.stringContaining('not an HTTP field name') })
  })

  test('are used without the annotations over stdio', () => {
    const odd = tool({
      a: BROKEN,
      'x-mcp-header': { type: 'string' },
      list: { type: 'array', items: { anyOf: [BROKEN] } },
    })
    const usable = usableTool(odd, false)
    expect('item' in usable && usable.item.toValue()).toEqual({
      name: 'x',
      inputSchema: {
        type: 'object',
        properties: {
          a: { type: 'string' },
          'x-mcp-header': { type: 'string' },
          list: { type: 'array', items: { anyOf: [{ type: 'string' }] } },
        },
      },
    })
  })

  test.each([
    [tool({ region: REGION })],
    [tool({})],
    [Json.of({ name: 'x' })],
    [Json.of({ name: 'x', inputSchema: true })],
  ])('valid ones stay as they are: %s', item => {
    for (const isRemote of [true, false]) expect(usableTool(item, isRemote)).toEqual({ item })
  })
})

test('the word in a description is no annotation', () => {
  expect(isAnnotated(Json.of({ name: 'x', description: '"x-mcp-header"', inputSchema: {} }))).toBe(false)
  expect(isAnnotated(tool({ region: REGION }))).toBe(true)
})

describe('headers of a caller', () => {
  const args = Json.of({ region: 'eu' })

  test('are compared only where they must be sent', () => {
    const shown = tool({ region: REGION })
    expect(checkCallHeaders(callerOf(), shown, args)?.code).toBe(-32020)
    expect(checkCallHeaders(callerOf({ headers: new Map([['mcp-param-region', 'eu']]) }), shown, args)).toBeUndefined()
    expect(checkCallHeaders(callerOf({ session: 's' }), shown, args)).toBeUndefined()
    expect(checkCallHeaders(callerOf({ revision: '2025-11-25' }), shown, args)).toBeUndefined()
    expect(checkCallHeaders(callerOf(), tool({}), args)).toBeUndefined()
  })

  test("are built from the server's definition and its arguments", () => {
    const caller = callerOf({
      headers: new Map([
        ['mcp-param-region', 'us'],
        ['mcp-param-own', '1'],
      ]),
    })
    const own = tool({ region: REGION, zone: { type: 'string', 'x-mcp-header': 'Zone' } })
    const sent = withCallHeaders(caller, tool({ region: REGION }), own, Json.of({ zone: 'ü' }))
    expect(Object.fromEntries(sent.headers)).toEqual({ 'mcp-param-own': '1', 'mcp-param-zone': '=?base64?w7w=?=' })
  })

  test('stay the same value where there is nothing to do', () => {
    const caller = callerOf()
    expect(withCallHeaders(caller, tool({}), tool({}), args)).toBe(caller)
  })
})
