import { expect, test } from 'vitest'
import { callerOf } from '../../../test/support/workspace.ts'
import { NEVER } from '../../protocol/cancellation.ts'
import type { Exchange, Frame } from '../../protocol/exchange.ts'
import { SILENT } from '../../telemetry/log.ts'
import { Json, type PlainObject } from '../../wire/json/json.ts'
import { createRequestCheck } from './request-check.ts'

const check = (method: string, params: PlainObject) => {
  const passed: Exchange[] = []
  const frames: Frame[] = []
  const dispatch = createRequestCheck(exchange => void passed.push(exchange), SILENT)
  const text = Json.parse(Buffer.from(JSON.stringify(params)))
  dispatch({
    kind: 'request',
    method,
    params: text,
    caller: callerOf(),
    signal: NEVER,
    sink: frame => void frames.push(frame),
  })
  return { passed, frames }
}

const LONG = 'x'.repeat(64 * 1024)

test.each<[string, PlainObject, string]>([
  ['resources/read', { uri: `file:///${'a/../'.repeat(20_000)}` }, '"uri"'],
  ['tools/call', { name: LONG }, '"name"'],
  ['completion/complete', { ref: { type: 'ref/prompt', name: LONG } }, '"ref"'],
  ['tools/call', Object.fromEntries(Array.from({ length: 10_001 }, (_, i) => [`member ${i}`, i])), '10000 members'],
])('%s with params that take long to check is rejected before any rule reads them', (method, params, what) => {
  const { passed, frames } = check(method, params)
  expect(passed).toEqual([])
  expect(frames).toMatchObject([{ kind: 'failure', error: { code: -32602, message: expect.stringContaining(what) } }])
})

test('large arguments are not names, and pass', () => {
  const { passed } = check('tools/call', { name: 'write', arguments: { text: LONG.repeat(4) } })
  expect(passed).toHaveLength(1)
})
