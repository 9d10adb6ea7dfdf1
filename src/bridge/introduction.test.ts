import { expect, test } from 'vitest'
import type { Caller, Dispatch } from '../protocol/exchange.ts'
import { META } from '../protocol/meta.ts'
import { Json } from '../wire/json/json.ts'
import { Introduction } from './introduction.ts'

const CALLER: Caller = {
  workspace: 'w',
  principal: 'me',
  revision: '2026-07-28',
  capabilities: Json.empty,
  headers: new Map(),
}

const start = (say: () => Parameters<Parameters<Dispatch>[0]['sink']>[0]) => {
  let asked = 0
  const introduction = new Introduction(({ sink }) => {
    asked++
    void sink(say())
  })
  const sign = (text: string) => introduction.sign(Json.parse(Buffer.from(text)), CALLER).toString()
  return { introduction, sign, asked: () => asked }
}
const named = (name: string) => () =>
  ({ kind: 'result', result: Json.of({ _meta: { [META.serverInfo]: { name } } }) }) as const

test('the server is asked once, and its name is on every result; the rest stays as it was written', () => {
  const { sign, asked } = start(named('x'))
  expect(sign('{ "n" : 1.0 }')).toBe(`{ "n" : 1.0,"_meta":{"${META.serverInfo}":{"name":"x"}}}`)
  expect(sign('{"_meta":{"a":12345678901234567890}}')).toBe(
    `{"_meta":{"a":12345678901234567890,"${META.serverInfo}":{"name":"x"}}}`,
  )
  expect(asked()).toBe(1)
})

test('what the server wrote itself, and what has no place for it, is left alone', () => {
  const { sign, asked } = start(named('x'))
  const own = `{"_meta":{"${META.serverInfo}":{"name":"own"}}}`
  expect(sign(own)).toBe(own)
  expect(sign('[1]')).toBe('[1]')
  expect(asked()).toBe(0)
})

test('a server that may be another by now is asked again', () => {
  let name = 'old'
  const { introduction, sign } = start(() => named(name)())
  expect(sign('{}')).toContain('old')
  name = 'new'
  expect(sign('{}')).toContain('old')
  introduction.forget()
  expect(sign('{}')).toContain('new')
})

test('a server that never said who it is costs nothing but the question', () => {
  const { sign } = start(() => ({ kind: 'failure', error: { code: -32603, message: 'closing' } }))
  expect(sign('{"content":[]}')).toBe('{"content":[]}')
})
