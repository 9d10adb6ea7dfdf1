import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { scriptedMember, toolsOf } from '../../../test/support/scripted-member.ts'
import { toolsIn, workspaceOf } from '../../../test/support/workspace.ts'
import type { Exchange } from '../../protocol/exchange.ts'
import { Json, type PlainObject } from '../../wire/json/json.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const ASKABLE = { capabilities: Json.of({ elicitation: {} }) }
const CALLED = { content: [{ type: 'text', text: 'here' }] }
const isAskable = ({ caller }: Exchange): boolean => caller.capabilities.has('elicitation')

/** A server with one more tool for clients with elicitation. */
const ready = (server: string, ...names: string[]) =>
  scriptedMember(server, {
    answers: {
      'tools/list': (_, exchange) => ({ tools: toolsOf(...names, ...(isAskable(exchange) ? ['more'] : [])) }),
      'tools/call': () => CALLED,
    },
  })

/** Lists once, and then never again. */
const once = (server: string, ...names: string[]) => {
  let lists = 0
  const list = (): PlainObject | Promise<PlainObject> =>
    lists++ === 0 ? { tools: toolsOf(...names) } : new Promise<never>(() => {})
  return scriptedMember(server, { answers: { 'tools/list': list, 'tools/call': () => CALLED } })
}

test('a call with new capabilities neither waits for nor fetches other servers', async () => {
  const b = once('b', 'y')
  const w = workspaceOf([ready('a', 'x'), b], { names: 'plain' })
  expect(toolsIn(await w.ask('tools/list'))).toEqual(['x', 'y'])
  expect(await w.ask('tools/call', { name: 'x' }, ASKABLE)).toEqual(CALLED)
  await vi.advanceTimersByTimeAsync(2000)
  expect(b.count('tools/list')).toBe(1)
  w.close()
})

test('a tool that exists only with certain capabilities can be called', async () => {
  const a = ready('a', 'x')
  const w = workspaceOf([a, ready('b', 'y')], { names: 'plain' })
  expect(toolsIn(await w.ask('tools/list'))).toEqual(['x', 'y'])
  expect(await w.ask('tools/call', { name: 'more' }, ASKABLE)).toEqual(CALLED)
  expect(a.count('tools/call')).toBe(1)
  w.close()
})

test('the lists of one principal are not used for another', async () => {
  const a = ready('a', 'x')
  const w = workspaceOf([a, once('b', 'y')], { names: 'plain' })
  await w.ask('tools/list')
  const asking = w.ask('tools/call', { name: 'x' }, { principal: 'ann\nbob' })
  const anonymous = w.ask('tools/call', { name: 'x' }, { principal: undefined })
  await vi.advanceTimersByTimeAsync(11_999)
  expect(a.count('tools/call')).toBe(0)
  await vi.advanceTimersByTimeAsync(1)
  expect([await asking, await anonymous]).toEqual([CALLED, CALLED])
  w.close()
})
