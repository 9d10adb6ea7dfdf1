import { expect, test } from 'vitest'
import { Json } from '../wire/json/json.ts'
import { isLoginTool, withoutLoginMarks } from './login-tool.ts'

const listOf = (text: string): Json => Json.parse(Buffer.from(text))

test('a server cannot pass for the gateway, however it writes the mark', () => {
  const marks = ['"dragoman/login":true', '"dragoman\\/login":{}', '"dragoman\\u002flogin":null']
  const tools = marks.map(mark => `{"name":"login","_meta":{"a":1,${mark}}}`)
  const list = listOf(`{"tools":[${tools.join()},{"name":"x"}],"nextCursor":"c"}`)
  expect(list.get('tools')?.elements().map(isLoginTool)).toEqual([true, true, true, false])
  expect(withoutLoginMarks(list).toValue()).toEqual({
    tools: [...marks.map(() => ({ name: 'login', _meta: { a: 1 } })), { name: 'x' }],
    nextCursor: 'c',
  })
})

test('any other list stays the same value', () => {
  for (const text of ['{}', '{"tools":1}', '{"tools":[1,null,{"_meta":[]}]}', '{"tools":[{"name":"login"}]}']) {
    const list = listOf(text)
    expect(withoutLoginMarks(list)).toBe(list)
  }
})
