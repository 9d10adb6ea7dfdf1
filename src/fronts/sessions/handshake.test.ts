import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { Json } from '../../wire/json/json.ts'
import { initializeResult } from './handshake.ts'

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')

const RESULT = { capabilities: { tools: {} }, instructions: 'Be kind.', _meta: { 'io.x/y': 1 } }
const discovered = (message = Buffer.from(JSON.stringify({ result: RESULT }))): Json =>
  Json.parse(message).get('result') as Json

test('the result of initialize is made once for each answer and revision', () => {
  const known = discovered()
  const result = initializeResult('2025-11-25', known)
  expect(result.toValue()).toEqual({
    protocolVersion: '2025-11-25',
    capabilities: { tools: {} },
    serverInfo: { name: 'dragoman', version: 'unknown' },
    instructions: 'Be kind.',
    _meta: { 'io.x/y': 1 },
  })
  expect(initializeResult('2025-11-25', known)).toBe(result)
  expect(initializeResult('2025-06-18', known).get('protocolVersion')?.asString()).toBe('2025-06-18')
  expect(initializeResult('2025-06-18', discovered())).not.toBe(result)
})

test('the message with the answer is not kept', async () => {
  const memory = (() => {
    const message = Buffer.from(JSON.stringify({ result: RESULT, rest: 'x'.repeat(100_000) }))
    initializeResult('2025-11-25', discovered(message))
    return new WeakRef(message)
  })()
  await new Promise(setImmediate) // a WeakRef is kept for the turn it was made in
  collectGarbage()
  expect(memory.deref()).toBeUndefined()
})
