import { expect, test } from 'vitest'
import { createServerCalls } from './server-calls.ts'

test('requests are counted by server, and calls of tools by tool besides', () => {
  const calls = createServerCalls()
  const count = calls.of('a')
  count(undefined, undefined, 0.5)
  count('read', undefined, 1)
  count('read', 'it failed', 2)
  calls.of('b')('read', undefined, 4)
  expect(calls.rows()).toEqual([
    { server: 'a', tool: undefined, ok: 2, error: 1, seconds: 3.5 },
    { server: 'a', tool: 'read', ok: 1, error: 1, seconds: 3 },
    { server: 'b', tool: undefined, ok: 1, error: 0, seconds: 4 },
    { server: 'b', tool: 'read', ok: 1, error: 0, seconds: 4 },
  ])
  calls.forget('a')
  expect(calls.rows().map(({ server }) => server)).toEqual(['b', 'b'])
})

test('a server with any number of tools has a bounded number of rows, and nothing is lost', () => {
  const calls = createServerCalls()
  const count = calls.of('a')
  for (let i = 0; i < 10_000; i++) count(`tool${i}`, undefined, 0)
  const tools = calls.rows().slice(1)
  expect(tools.length).toBe(201)
  expect(tools.at(-1)).toMatchObject({ tool: 'other', ok: 9800 })
})

test('the activity of a server has its calls, its last error and its history', () => {
  const calls = createServerCalls()
  expect(calls.activityOf('a')).toBeUndefined()
  const count = calls.of('a')
  count('read', undefined, 0.01)
  count('read', 'x'.repeat(5000), 0.03)
  const { history, lastError, ...sums } = calls.activityOf('a') ?? {}
  expect(sums).toEqual({ calls: 2, errors: 1 })
  expect([lastError?.message.length, history?.ms.at(-1), history?.errors.at(-1)]).toEqual([2000, 20, 1])
})
