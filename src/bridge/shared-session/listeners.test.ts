import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { Caller, Exchange } from '../../protocol/exchange.ts'
import { Json } from '../../wire/json/json.ts'
import { createSessionSubscription } from './listeners.ts'

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
  const subscription = createSessionSubscription({
    dispatch: exchange => void sent.push(exchange),
    received: () => {},
    ended: () => {},
  })
  subscription.open(caller)
  return { subscription, standing: sent[0] as Exchange }
}

test('a subscription that only lingers is idle, until a call comes', () => {
  const { subscription, standing } = start()
  expect(standing.isIdle?.()).toBe(false)
  subscription.linger()
  expect(standing.isIdle?.()).toBe(true)
  subscription.open(caller)
  expect(standing.isIdle?.()).toBe(false)
})

test('a subscription that stays open for a question is not idle', () => {
  const { subscription, standing } = start()
  subscription.linger()
  subscription.keepOpen()
  expect(standing.isIdle?.()).toBe(false)
})

test('no timer keeps a session in memory that ended while its subscription lingered', () => {
  const { subscription, standing } = start()
  subscription.linger()
  void standing.sink({ kind: 'result', result: Json.empty })
  expect(vi.getTimerCount()).toBe(0)
})

test('a subscription does not keep the request in memory that opened it', () => {
  const { standing } = start()
  expect(standing.caller.capabilities.toString()).toBe('{"roots":{}}')
  expect(standing.caller.capabilities.retained).toBeLessThan(1024)
})
