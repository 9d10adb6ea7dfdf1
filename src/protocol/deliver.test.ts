import { expect, test } from 'vitest'
import { Json } from '../wire/json/json.ts'
import { deliver, failWith, GatewayError } from './deliver.ts'
import { RpcFailure, rpcError } from './errors.ts'
import type { Exchange, Frame, Sink } from './exchange.ts'

const RESULT: Frame = { kind: 'result', result: Json.empty }

/** A sink that refuses everything but failures in its own way, and keeps what it took. */
const refusing = (refuse: () => void | Promise<void>): { sink: Sink; taken: Frame[] } => {
  const taken: Frame[] = []
  return { sink: frame => (frame.kind === 'failure' ? void taken.push(frame) : refuse()), taken }
}

const broken = new TypeError('no members to change')

test.each([
  [
    'throws',
    () => {
      throw broken
    },
  ],
  ['rejects', () => Promise.reject(broken)],
])('a sink that %s ends its call with an internal error, and its caller hears nothing', async (_, refuse) => {
  const { sink, taken } = refusing(refuse)
  let brokeTimes = 0
  await deliver(sink, RESULT, () => brokeTimes++)
  expect(taken).toEqual([{ kind: 'failure', error: expect.any(GatewayError) }])
  expect(taken[0]).toMatchObject({ error: { code: -32603, cause: broken } })
  expect(taken[0]).not.toMatchObject({ error: { message: expect.stringContaining(broken.message) } })
  expect(brokeTimes).toBe(1)
})

test('a failure that was thrown on purpose is passed on as it is', () => {
  const error = rpcError('invalidParams', 'wrong')
  const { sink, taken } = refusing(() => {
    throw new RpcFailure(error)
  })
  void deliver(sink, RESULT)
  expect(taken).toEqual([{ kind: 'failure', error }])
})

test('a reader that is behind is waited for', async () => {
  let caughtUp = (): void => {}
  const waiting = deliver(() => new Promise(resolve => (caughtUp = resolve)), RESULT)
  expect(waiting).toBeInstanceOf(Promise)
  caughtUp()
  await waiting
})

test('a notification is never answered, whatever goes wrong', () => {
  const { sink, taken } = refusing(() => {})
  failWith({ kind: 'notification', sink } as Exchange, broken)
  expect(taken).toEqual([])
})
