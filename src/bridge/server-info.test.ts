import { expect, test } from 'vitest'
import type { Caller, Dispatch } from '../protocol/exchange.ts'
import { META } from '../protocol/meta.ts'
import { Json } from '../wire/json/json.ts'
import { createServerInfo } from './server-info.ts'

const CALLER: Caller = {
  workspace: 'w',
  principal: 'me',
  revision: '2026-07-28',
  capabilities: Json.empty,
  headers: new Map(),
}

const start = (say: () => Parameters<Parameters<Dispatch>[0]['sink']>[0]) => {
  let asked = 0
  const introduction = createServerInfo(({ sink }) => {
    asked++
    void sink(say())
  })
  const sign = (text: string) => introduction.addTo(Json.parse(Buffer.from(text)), CALLER).toString()
  return { introduction, sign, asked: () => asked }
}
const named = (name: string) => () =>
  ({ kind: 'result', result: Json.of({ _meta: { [META.serverInfo]: { name } } }) }) as const

test('the server is asked once, and its info is on every result; the rest of the bytes is unchanged', () => {
  const { sign, asked } = start(named('x'))
  expect(sign('{ "n" : 1.0 }')).toBe(`{ "n" : 1.0,"_meta":{"${META.serverInfo}":{"name":"x"}}}`)
  expect(sign('{"_meta":{"a":12345678901234567890}}')).toBe(
    `{"_meta":{"a":12345678901234567890,"${META.serverInfo}":{"name":"x"}}}`,
  )
  expect(asked()).toBe(1)
})

test('info that the server wrote itself, and results that are no objects, are unchanged', () => {
  const { sign, asked } = start(named('x'))
  const own = `{"_meta":{"${META.serverInfo}":{"name":"own"}}}`
  expect(sign(own)).toBe(own)
  expect(sign('[1]')).toBe('[1]')
  expect(asked()).toBe(0)
})

test('a server that may have been replaced is asked again', () => {
  let name = 'old'
  const { introduction, sign } = start(() => named(name)())
  expect(sign('{}')).toContain('old')
  name = 'new'
  expect(sign('{}')).toContain('old')
  introduction.forget()
  expect(sign('{}')).toContain('new')
})

test('results are unchanged if the server has no info', () => {
  const { sign } = start(() => ({ kind: 'failure', error: { code: -32603, message: 'closing' } }))
  expect(sign('{"content":[]}')).toBe('{"content":[]}')
})
