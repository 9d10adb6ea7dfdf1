import { afterEach, expect, test } from 'vitest'
import { FakeSession } from '../../../test/support/fake-session.ts'
import { callerOf } from '../../../test/support/scripted-server.ts'
import type { Caller } from '../../protocol/exchange.ts'
import { Json } from '../../wire/json/json.ts'
import { SessionPool } from './pool.ts'
import { SessionReplay } from './session-replay.ts'

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

const PAD = 'x'.repeat(1 << 20)
const bodyWith = (member: object): Json =>
  Json.parse(Buffer.from(JSON.stringify({ member, PAD }))).get('member') as Json

test('a session at a server keeps its caller, and not the request it was opened for', async () => {
  const opened: Caller[] = []
  const pool = new SessionPool({
    name: 'far',
    idleMs: 60_000,
    open: async (caller, { onClosed }) => {
      opened.push(caller)
      return new FakeSession(async () => onClosed(Promise.resolve()))
    },
  })
  closing.push(() => pool.close())
  await pool.open(callerOf({ capabilities: bodyWith({ roots: {} }), info: bodyWith({ name: 'c' }) }))
  const [kept] = opened
  expect(kept?.capabilities.toString()).toBe('{"roots":{}}')
  expect(kept?.info?.toString()).toBe('{"name":"c"}')
  expect(kept?.capabilities.retained).toBeLessThan(1024)
  expect(kept?.info?.retained).toBeLessThan(1024)
})

test('what a session told its server is kept without the messages it came in', () => {
  const replay = new SessionReplay()
  const exchange = {
    kind: 'request',
    caller: callerOf(),
    signal: { reason: undefined, onAbort: () => () => {} },
  } as const
  const tell = (method: string, params: object) =>
    replay.remember({ ...exchange, method, params: bodyWith(params), sink: () => {} })
  tell('resources/subscribe', { uri: 'a:b' })
  tell('logging/setLevel', { level: 'info' })
  expect(replay.requests().map(([method, params]) => [method, params.toString()])).toEqual([
    ['resources/subscribe', '{"uri":"a:b"}'],
    ['logging/setLevel', '{"level":"info"}'],
  ])
  for (const [, params] of replay.requests()) expect(params.retained).toBeLessThan(1024)
})
