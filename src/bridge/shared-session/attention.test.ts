import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { Caller, Exchange } from '../../protocol/exchange.ts'
import { Json } from '../../wire/json/json.ts'
import { Attention } from './attention.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const PAD = 'x'.repeat(1 << 20)
const request = Json.parse(Buffer.from(JSON.stringify({ capabilities: { roots: {} }, PAD })))
const caller: Caller = {
  workspace: 'w',
  principal: 'me',
  revision: '2026-07-28',
  capabilities: request.get('capabilities') as Json,
  headers: new Map(),
}

const start = () => {
  const sent: Exchange[] = []
  const attention = new Attention({ dispatch: exchange => void sent.push(exchange), heard: () => {}, over: () => {} })
  attention.pay(caller)
  return { attention, standing: sent[0] as Exchange }
}

test('a standing exchange that only lingers says so, until a call comes', () => {
  const { attention, standing } = start()
  expect(standing.isIdle?.()).toBe(false)
  attention.rest()
  expect(standing.isIdle?.()).toBe(true)
  attention.pay(caller)
  expect(standing.isIdle?.()).toBe(false)
})

test('a standing exchange that stays for a question is not idle', () => {
  const { attention, standing } = start()
  attention.rest()
  attention.stay()
  expect(standing.isIdle?.()).toBe(false)
})

test('nothing keeps a session in memory that ended while its standing exchange lingered', () => {
  const { attention, standing } = start()
  attention.rest()
  void standing.sink({ kind: 'result', result: Json.empty })
  expect(vi.getTimerCount()).toBe(0)
})

test('a standing exchange does not keep the request alive that began it', () => {
  const { standing } = start()
  expect(standing.caller.capabilities.toString()).toBe('{"roots":{}}')
  expect(standing.caller.capabilities.retained).toBeLessThan(1024)
})
